"""The reason why a workload is not queued, as in its QuotaReserved condition; checks in Kueue's order."""

from __future__ import annotations

from scheduling.lifecycle.context import WorkloadContext
from scheduling.model.vocabulary import ConditionStatus, ConditionType, PendingReason, StopPolicy
from scheduling.model.workload import Condition, Workload

Verdict = tuple[PendingReason, str]

PENDING_EVALUATION: Verdict = (
    PendingReason.PENDING_EVALUATION,
    "Workload is pending evaluation in the scheduling queue",
)
"""The message on a workload that the scheduler has not evaluated yet."""
NAMESPACE_MISMATCH = "workload namespace doesn't match ClusterQueue selector"

_OF_THE_SCHEDULER = frozenset(
    {
        PendingReason.WAITING_FOR_QUOTA,
        PendingReason.NO_MATCHING_FLAVOR,
        PendingReason.EXCEEDS_MAX_QUOTA,
        PendingReason.TOPOLOGY_PLACEMENT_FAILED,
        PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS,
        PendingReason.WAITING_FOR_PODS_READY,
        PendingReason.PENDING_EVALUATION,
        PendingReason.WAITING_FOR_DEVICES,
        PendingReason.WAITING_FOR_NODES,
        PendingReason.WAITING_FOR_USER_LIMIT,
        PendingReason.WAITING_FOR_PLANNED_START,
    }
)
_OURS = ("LocalQueue ", "ClusterQueue ", NAMESPACE_MISMATCH, "Admission is gated by: ")


def inadmissible_reason(workload: Workload, context: WorkloadContext) -> Verdict | None:
    """Return the QuotaReserved condition of a workload without quota; None if it does not change. A verdict of the
    scheduler stands until the scheduler evaluates the workload again. A new workload has no verdict."""
    before = workload.condition(ConditionType.QUOTA_RESERVED)
    on_hold = before is not None and before.reason == PendingReason.ON_HOLD
    if context.claim_refusal is not None and not on_hold:
        return PendingReason.MISCONFIGURED, str(context.claim_refusal)
    if not context.wanted_active:
        return PendingReason.DEACTIVATED, "The workload is deactivated"
    if on_hold:
        return None
    found = _by_its_queues(workload, context) or _by_itself(workload, context)
    if found is not None:
        is_told = before is not None and before.reason == found[0] and before.message.startswith(NAMESPACE_MISMATCH)
        return None if is_told and found[1] == NAMESPACE_MISMATCH else found
    if before is None or is_of_the_scheduler(before):
        return None
    if before.reason == PendingReason.ADMISSION_GATED:
        return PendingReason.PENDING_EVALUATION, "AdmissionGatedBy cleared, waiting for quota reservation"
    return PendingReason.PENDING_EVALUATION, "Workload is pending evaluation in the scheduling queue"


def _by_its_queues(workload: Workload, context: WorkloadContext) -> Verdict | None:
    """Messages name the queues. The reason why one is inactive is in its own Active condition."""
    queue, cluster_queue = context.local_queue, context.cluster_queue
    if queue is None:
        return PendingReason.MISCONFIGURED, f"LocalQueue {workload.queue_name} doesn't exist"
    if queue.terminating:
        return PendingReason.MISCONFIGURED, f"LocalQueue {queue.name} is terminating or missing"
    if queue.stop_policy is not StopPolicy.NONE:
        return PendingReason.SUSPENDED, f"LocalQueue {queue.name} is inactive"
    if cluster_queue is None:
        return PendingReason.MISCONFIGURED, f"ClusterQueue {queue.cluster_queue} doesn't exist"
    stopped = cluster_queue.stop_policy is not StopPolicy.NONE or cluster_queue.terminating
    if stopped or context.inactive_reason:
        return PendingReason.SUSPENDED, f"ClusterQueue {cluster_queue.name} is inactive"
    return None


def _by_itself(workload: Workload, context: WorkloadContext) -> Verdict | None:
    if context.admissibility_error:
        return PendingReason.MISCONFIGURED, context.admissibility_error
    if workload.admission_gates:
        return PendingReason.ADMISSION_GATED, f"Admission is gated by: {','.join(workload.admission_gates)}"
    replacement = workload.condition(ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    if replacement is not None and replacement.status is ConditionStatus.TRUE:
        return PendingReason.POD_GROUP_INCOMPLETE, replacement.message
    return None


def is_of_the_scheduler(verdict: Condition) -> bool:
    """Return whether a cycle set the verdict. A cycle uses Misconfigured for LimitRange violations and
    AdmissionGated for closed preemption gates; this module uses them for a missing queue and an admission gate."""
    if verdict.reason in (PendingReason.MISCONFIGURED, PendingReason.ADMISSION_GATED):
        return not verdict.message.startswith(_OURS)
    return verdict.reason in _OF_THE_SCHEDULER
