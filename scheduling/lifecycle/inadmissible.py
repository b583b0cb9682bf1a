"""Why a workload is not even queued, as its QuotaReserved condition says, in the order in which Kueue asks."""

from __future__ import annotations

from scheduling.lifecycle.context import WorkloadContext
from scheduling.model.vocabulary import ConditionStatus, ConditionType, PendingReason, StopPolicy
from scheduling.model.workload import Condition, Workload

Verdict = tuple[PendingReason, str]

_KEPT_OUT = frozenset(
    {
        PendingReason.DEACTIVATED,
        PendingReason.SUSPENDED,
        PendingReason.MISCONFIGURED,
        PendingReason.ADMISSION_GATED,
    }
)
_KEPT_OUT_MARKS = ("The workload is deactivated", "LocalQueue ", "ClusterQueue ", "Admission is gated")


def inadmissible_reason(workload: Workload, context: WorkloadContext) -> Verdict | None:
    """What keeps the workload out of its queue, and in words; None when nothing does, or who put it on hold says it."""
    before = workload.condition(ConditionType.QUOTA_RESERVED)
    if not context.wanted_active:
        return PendingReason.DEACTIVATED, "The workload is deactivated"
    if before is not None and before.reason == PendingReason.ON_HOLD:
        return None
    return _by_its_queues(workload, context) or _by_itself(workload)


def _by_its_queues(workload: Workload, context: WorkloadContext) -> Verdict | None:
    queue, cluster_queue = context.local_queue, context.cluster_queue
    if queue is None:
        name = workload.queue_key if workload.queue_name else "of no name"
        return PendingReason.MISCONFIGURED, f"LocalQueue {name} does not exist"
    if queue.terminating:
        return PendingReason.MISCONFIGURED, f"LocalQueue {queue.key} is being deleted"
    if queue.stop_policy is not StopPolicy.NONE:
        return PendingReason.SUSPENDED, f"LocalQueue {queue.key} is stopped ({queue.stop_policy})"
    if cluster_queue is None:
        return PendingReason.MISCONFIGURED, f"ClusterQueue {queue.cluster_queue} does not exist"
    if cluster_queue.stop_policy is not StopPolicy.NONE:
        return PendingReason.SUSPENDED, f"ClusterQueue {cluster_queue.name} is stopped ({cluster_queue.stop_policy})"
    if context.queue_problem:
        return PendingReason.SUSPENDED, f"ClusterQueue {cluster_queue.name} is inactive: {context.queue_problem}"
    return None


def _by_itself(workload: Workload) -> Verdict | None:
    if workload.admission_gates:
        return PendingReason.ADMISSION_GATED, f"Admission is gated by {', '.join(workload.admission_gates)}"
    replacement = workload.condition(ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    if replacement is not None and replacement.status is ConditionStatus.TRUE:
        return PendingReason.POD_GROUP_INCOMPLETE, replacement.message
    return None


def was_kept_out(verdict: Condition) -> bool:
    """Whether the condition says one of these, not a verdict of the cycle, which may use the same reason."""
    if verdict.reason == PendingReason.POD_GROUP_INCOMPLETE:
        return True
    return verdict.reason in _KEPT_OUT and verdict.message.startswith(_KEPT_OUT_MARKS)
