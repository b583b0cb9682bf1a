"""Kueue's metrics by name: their type and labels (pkg/metrics/metrics.go), without `replica_role`, which all have."""

from typing import Final

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

_QUEUE: Final = ("cluster_queue", "priority_class")
_LOCAL: Final = ("name", "namespace", "priority_class")
_EVICTED: Final = ("reason", "underlying_cause")
_CELL: Final = ("cohort", "cluster_queue", "flavor", "resource")
_LOCAL_CELL: Final = ("name", "namespace", "flavor", "resource")

KUEUE_FAMILIES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "admission_attempts_total": (COUNTER, ("result",)),
    "admission_attempt_duration_seconds": (HISTOGRAM, ("result",)),
    "build_info": (GAUGE, ("git_version", "git_commit", "build_date", "go_version", "compiler", "platform")),
    "pending_workloads": (GAUGE, ("cluster_queue", "status")),
    "pending_scheduling_hashes": (GAUGE, ("cluster_queue", "status")),
    "local_queue_pending_workloads": (GAUGE, ("name", "namespace", "status")),
    "finished_workloads": (GAUGE, ("cluster_queue",)),
    "local_queue_finished_workloads": (GAUGE, ("name", "namespace")),
    "quota_reserved_workloads_total": (COUNTER, _QUEUE),
    "local_queue_quota_reserved_workloads_total": (COUNTER, _LOCAL),
    "quota_reserved_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_quota_reserved_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "admitted_workloads_total": (COUNTER, _QUEUE),
    "local_queue_admitted_workloads_total": (COUNTER, _LOCAL),
    "admission_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_admission_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "admission_checks_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_admission_checks_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "ready_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_ready_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "admitted_until_ready_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_admitted_until_ready_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "finished_workloads_total": (COUNTER, _QUEUE),
    "local_queue_finished_workloads_total": (COUNTER, _LOCAL),
    "execution_time_seconds": (HISTOGRAM, _QUEUE),
    "local_queue_execution_time_seconds": (HISTOGRAM, _LOCAL),
    "workload_creation_latency_seconds": (HISTOGRAM, ("job_kind",)),
    "evicted_workloads_total": (COUNTER, (*_QUEUE, *_EVICTED)),
    "local_queue_evicted_workloads_total": (COUNTER, (*_LOCAL, *_EVICTED)),
    "evicted_workloads_once_total": (COUNTER, (*_QUEUE, *_EVICTED)),
    "preempted_workloads_total": (COUNTER, ("preempting_cluster_queue", "reason")),
    "workload_eviction_latency_seconds": (HISTOGRAM, ("cluster_queue", "reason")),
    "pods_ready_to_evicted_time_seconds": (HISTOGRAM, ("cluster_queue", *_EVICTED)),
    "replaced_workload_slices_total": (COUNTER, ("cluster_queue",)),
    "reserving_active_workloads": (GAUGE, ("cluster_queue",)),
    "local_queue_reserving_active_workloads": (GAUGE, ("name", "namespace")),
    "admitted_active_workloads": (GAUGE, ("cluster_queue",)),
    "local_queue_admitted_active_workloads": (GAUGE, ("name", "namespace")),
    "unadmitted_workloads": (GAUGE, ("cluster_queue", *_EVICTED)),
    "local_queue_unadmitted_workloads": (GAUGE, ("name", "namespace", "cluster_queue", *_EVICTED)),
    "cluster_queue_status": (GAUGE, ("cluster_queue", "status")),
    "local_queue_status": (GAUGE, ("name", "namespace", "active")),
    "cluster_queue_resource_reservation": (GAUGE, _CELL),
    "cluster_queue_resource_usage": (GAUGE, _CELL),
    "cluster_queue_nominal_quota": (GAUGE, _CELL),
    "cluster_queue_borrowing_limit": (GAUGE, _CELL),
    "cluster_queue_lending_limit": (GAUGE, _CELL),
    "cluster_queue_resource_pending": (GAUGE, ("cluster_queue", "resource")),
    "local_queue_resource_reservation": (GAUGE, _LOCAL_CELL),
    "local_queue_resource_usage": (GAUGE, _LOCAL_CELL),
    "local_queue_admission_fair_sharing_usage": (GAUGE, ("name", "namespace", "cluster_queue")),
    "cluster_queue_weighted_share": (GAUGE, ("cluster_queue", "cohort")),
    "cohort_weighted_share": (GAUGE, ("cohort",)),
    "cohort_subtree_quota": (GAUGE, ("cohort", "flavor", "resource")),
    "cohort_subtree_resource_reservations": (GAUGE, ("cohort", "flavor", "resource")),
    "cohort_subtree_admitted_workloads_total": (COUNTER, ("cohort", "priority_class")),
    "cohort_subtree_admitted_active_workloads": (GAUGE, ("cohort",)),
    "cohort_info": (GAUGE, ("cohort", "parent_cohort", "root_cohort")),
    "cluster_queue_info": (GAUGE, ("cluster_queue", "parent_cohort", "root_cohort")),
}

NOT_GIVEN: Final[dict[str, str]] = {
    "admission_cycle_preemption_skips": "a gauge of the last cycle alone, which a scrape sees by chance",
    "preemption_target_recomputations_total": "an inner step of the cycle, not a decision",
    "pod_scheduling_gate_removal_seconds": "we bind pods; none waits at a gate of ours once its workload is admitted",
    "multikueue_workloads_dispatched_total": "nothing is dispatched to other clusters yet",
    "multikueue_workloads_admitted_total": "nothing is dispatched to other clusters yet",
}
