"""Kueue's 64 metrics by name: their type and labels (pkg/metrics/metrics.go), without `replica_role`, which all have.

Only those of MultiKueue do not begin with `kueue_`.
"""

from typing import Final

COUNTER, GAUGE, HISTOGRAM = "counter", "gauge", "histogram"

_QUEUE: Final = ("cluster_queue", "priority_class")
_LOCAL: Final = ("name", "namespace", "priority_class")
_EVICTED: Final = ("reason", "underlying_cause")
_CELL: Final = ("cohort", "cluster_queue", "flavor", "resource")
_LOCAL_CELL: Final = ("name", "namespace", "flavor", "resource")

KUEUE_FAMILIES: Final[dict[str, tuple[str, tuple[str, ...]]]] = {
    "kueue_admission_attempts_total": (COUNTER, ("result",)),
    "kueue_admission_attempt_duration_seconds": (HISTOGRAM, ("result",)),
    "kueue_admission_cycle_preemption_skips": (GAUGE, ("cluster_queue",)),
    "kueue_preemption_target_recomputations_total": (COUNTER, ("cluster_queue", "result")),
    "kueue_build_info": (GAUGE, ("git_version", "git_commit", "build_date", "go_version", "compiler", "platform")),
    "kueue_pending_workloads": (GAUGE, ("cluster_queue", "status")),
    "kueue_pending_scheduling_hashes": (GAUGE, ("cluster_queue", "status")),
    "kueue_local_queue_pending_workloads": (GAUGE, ("name", "namespace", "status")),
    "kueue_finished_workloads": (GAUGE, ("cluster_queue",)),
    "kueue_local_queue_finished_workloads": (GAUGE, ("name", "namespace")),
    "kueue_quota_reserved_workloads_total": (COUNTER, _QUEUE),
    "kueue_local_queue_quota_reserved_workloads_total": (COUNTER, _LOCAL),
    "kueue_quota_reserved_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_quota_reserved_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_admitted_workloads_total": (COUNTER, _QUEUE),
    "kueue_local_queue_admitted_workloads_total": (COUNTER, _LOCAL),
    "kueue_admission_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_admission_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_admission_checks_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_admission_checks_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_ready_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_ready_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_admitted_until_ready_wait_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_admitted_until_ready_wait_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_finished_workloads_total": (COUNTER, _QUEUE),
    "kueue_local_queue_finished_workloads_total": (COUNTER, _LOCAL),
    "kueue_execution_time_seconds": (HISTOGRAM, _QUEUE),
    "kueue_local_queue_execution_time_seconds": (HISTOGRAM, _LOCAL),
    "kueue_workload_creation_latency_seconds": (HISTOGRAM, ("job_kind",)),
    "kueue_pod_scheduling_gate_removal_seconds": (HISTOGRAM, ("name", "cluster_queue", "is_group")),
    "kueue_evicted_workloads_total": (COUNTER, (*_QUEUE, *_EVICTED)),
    "kueue_local_queue_evicted_workloads_total": (COUNTER, (*_LOCAL, *_EVICTED)),
    "kueue_evicted_workloads_once_total": (COUNTER, (*_QUEUE, *_EVICTED)),
    "kueue_preempted_workloads_total": (COUNTER, ("preempting_cluster_queue", "reason")),
    "kueue_workload_eviction_latency_seconds": (HISTOGRAM, ("cluster_queue", "reason")),
    "kueue_pods_ready_to_evicted_time_seconds": (HISTOGRAM, ("cluster_queue", *_EVICTED)),
    "kueue_replaced_workload_slices_total": (COUNTER, ("cluster_queue",)),
    "kueue_reserving_active_workloads": (GAUGE, ("cluster_queue",)),
    "kueue_local_queue_reserving_active_workloads": (GAUGE, ("name", "namespace")),
    "kueue_admitted_active_workloads": (GAUGE, ("cluster_queue",)),
    "kueue_local_queue_admitted_active_workloads": (GAUGE, ("name", "namespace")),
    "kueue_unadmitted_workloads": (GAUGE, ("cluster_queue", *_EVICTED)),
    "kueue_local_queue_unadmitted_workloads": (GAUGE, ("name", "namespace", "cluster_queue", *_EVICTED)),
    "kueue_cluster_queue_status": (GAUGE, ("cluster_queue", "status")),
    "kueue_local_queue_status": (GAUGE, ("name", "namespace", "active")),
    "kueue_cluster_queue_resource_reservation": (GAUGE, _CELL),
    "kueue_cluster_queue_resource_usage": (GAUGE, _CELL),
    "kueue_cluster_queue_nominal_quota": (GAUGE, _CELL),
    "kueue_cluster_queue_borrowing_limit": (GAUGE, _CELL),
    "kueue_cluster_queue_lending_limit": (GAUGE, _CELL),
    "kueue_cluster_queue_resource_pending": (GAUGE, ("cluster_queue", "resource")),
    "kueue_local_queue_resource_reservation": (GAUGE, _LOCAL_CELL),
    "kueue_local_queue_resource_usage": (GAUGE, _LOCAL_CELL),
    "kueue_local_queue_admission_fair_sharing_usage": (GAUGE, ("name", "namespace", "cluster_queue")),
    "kueue_cluster_queue_weighted_share": (GAUGE, ("cluster_queue", "cohort")),
    "kueue_cohort_weighted_share": (GAUGE, ("cohort",)),
    "kueue_cohort_subtree_quota": (GAUGE, ("cohort", "flavor", "resource")),
    "kueue_cohort_subtree_resource_reservations": (GAUGE, ("cohort", "flavor", "resource")),
    "kueue_cohort_subtree_admitted_workloads_total": (COUNTER, ("cohort", "priority_class")),
    "kueue_cohort_subtree_admitted_active_workloads": (GAUGE, ("cohort",)),
    "kueue_cohort_info": (GAUGE, ("cohort", "parent_cohort", "root_cohort")),
    "kueue_cluster_queue_info": (GAUGE, ("cluster_queue", "parent_cohort", "root_cohort")),
    "multikueue_workloads_dispatched_total": (COUNTER, ("cluster_queue", "cluster")),
    "multikueue_workloads_admitted_total": (COUNTER, ("cluster_queue", "cluster")),
}
