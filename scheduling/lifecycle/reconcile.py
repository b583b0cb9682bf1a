"""What happens to a workload outside the cycle: one step at a time, from what is known of it now.

`next_step` looks at a workload the way Kueue's workload controller reconciles one, in its order, and returns the first
step that is due, or None. The caller applies it and asks again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from scheduling.lifecycle import conditions as to
from scheduling.lifecycle.context import WorkloadContext, execution_times, pods_ready_times, waits_for
from scheduling.lifecycle.inadmissible import inadmissible_reason, was_kept_out
from scheduling.model.admission_check import AdmissionCheckState, required_checks
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import (
    AdmissionCheckStatus,
    ConditionStatus,
    ConditionType,
    DeactivationCause,
    EvictionReason,
    PendingReason,
    RequeuedReason,
    StopPolicy,
)
from scheduling.model.workload import RequeueState, Workload

_EVICTED_FOR_A_WHILE = frozenset({EvictionReason.PODS_READY_TIMEOUT, EvictionReason.ADMISSION_CHECK})


@dataclass(frozen=True, slots=True)
class Step:
    """A workload after a step, and what to say of it.

    `evicted` is (reason, cause) when the step evicts; `deactivates` sets spec.active to false; `accumulated_seconds`
    replaces what is kept of earlier runs.
    """

    workload: Workload
    reason: str
    message: str
    warning: bool = False
    evicted: tuple[EvictionReason, str] | None = None
    deactivates: bool = False
    accumulated_seconds: int | None = None


def next_step(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """The first step that is due, or None."""
    if workload.is_true(ConditionType.FINISHED):
        return None
    holds = workload.admission is not None
    if context.wanted_active:
        step = _move_requeue_at(workload) or _wanted_again(workload, context, now)
    else:
        step = _deactivated(workload, now)
    if step is None:
        step = _sync_checks(workload, context, now)
    if step is None and holds:
        step = _holding(workload, context, now)
    if step is None and not holds:
        step = _refresh_verdict(workload, context, now)
    return step


# --- Requeuing and deactivation ---------------------------------------------------------------------------------------


def _move_requeue_at(workload: Workload) -> Step | None:
    """A check that asks for a retry later delays the workload, never hastens it."""
    delays = [
        check.last_transition_time + (check.requeue_after_seconds or 0.0)
        for check in workload.admission_checks
        if check.state is AdmissionCheckStatus.RETRY
    ]
    state = workload.requeue_state or RequeueState()
    if not delays or (state.requeue_at is not None and state.requeue_at >= max(delays)):
        return None
    moved = replace(workload, requeue_state=replace(state, requeue_at=max(delays)))
    return Step(moved, "RequeueDelayed", "An admission check asked to try again later")


def _deactivated(workload: Workload, now: float) -> Step | None:
    """Inactive: evict once, with the cause that Kueue itself gave, and forget the back-off.

    One that waits is evicted as well, which is complete at once: there is nothing to stop. One that is being stopped
    for another reason goes on with that.
    """
    target = workload.condition(ConditionType.DEACTIVATION_TARGET)
    cause = target.reason if target is not None and target.status is ConditionStatus.TRUE else ""
    forgotten = replace(to.without_condition(workload, ConditionType.DEACTIVATION_TARGET), requeue_state=None)
    if _is_evicted_already(workload):
        return None if forgotten == workload else Step(forgotten, "Deactivated", "Its back-off is forgotten")
    message = f"The workload is deactivated: {target.message}" if cause and target else "The workload is deactivated"
    stopping = to.evict(forgotten, EvictionReason.DEACTIVATED, message, now, cause)
    if workload.admission is None:
        stopping = to.requeue(stopping, now)
    return _eviction(stopping, EvictionReason.DEACTIVATED, cause, message)


def _is_evicted_already(workload: Workload) -> bool:
    evicted = workload.condition(ConditionType.EVICTED)
    if evicted is None or evicted.status is not ConditionStatus.TRUE:
        return False
    return workload.admission is not None or evicted.reason.startswith(EvictionReason.DEACTIVATED)


def _wanted_again(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Kueue deactivates it, or what kept it from the queue is over."""
    if workload.is_true(ConditionType.DEACTIVATION_TARGET):
        target = workload.conditions[ConditionType.DEACTIVATION_TARGET]
        return Step(workload, f"Deactivated{target.reason}", target.message, warning=True, deactivates=True)
    if workload.admission is not None:
        return None
    requeued = workload.condition(ConditionType.REQUEUED)
    state = workload.requeue_state
    waits = state is not None and state.requeue_at is not None and state.requeue_at > now
    if requeued is not None and requeued.status is ConditionStatus.FALSE:
        reason = _requeue_reason(requeued.reason, context, waits)
        if reason is not None:
            message = "Back in the queue"
            again = to.with_condition(workload, ConditionType.REQUEUED, ConditionStatus.TRUE, reason, message, now)
            return Step(_without_requeue_at(again), "Requeued", f"{message}: {reason}")
        return None
    if state is not None and state.requeue_at is not None and not waits:
        return Step(_without_requeue_at(workload), "Requeued", "Its back-off is over")
    return None


def _requeue_reason(kept_out_by: str, context: WorkloadContext, waits: bool) -> RequeuedReason | None:
    if kept_out_by.startswith(EvictionReason.DEACTIVATED):
        return RequeuedReason.REACTIVATED
    if kept_out_by in _EVICTED_FOR_A_WHILE and not waits:
        return RequeuedReason.BACKOFF_FINISHED
    if kept_out_by == EvictionReason.CLUSTER_QUEUE_STOPPED and _admits(context.cluster_queue):
        return RequeuedReason.CLUSTER_QUEUE_RESTARTED
    if kept_out_by == EvictionReason.LOCAL_QUEUE_STOPPED and _admits(context.local_queue):
        return RequeuedReason.LOCAL_QUEUE_RESTARTED
    return None


def _admits(queue: ClusterQueue | LocalQueue | None) -> bool:
    return queue is not None and queue.stop_policy is StopPolicy.NONE


def _without_requeue_at(workload: Workload) -> Workload:
    state = workload.requeue_state
    if state is None:
        return workload
    return replace(workload, requeue_state=replace(state, requeue_at=None) if state.count else None)


def _eviction(workload: Workload, reason: EvictionReason, cause: str, message: str) -> Step:
    """The event names the cause only of a deactivation, as Kueue's does."""
    return Step(workload, to.eviction_event(reason, cause), message, evicted=(reason, cause))


# --- Admission checks -------------------------------------------------------------------------------------------------


def _sync_checks(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """The list of checks is what the ClusterQueue asks of it now, and Admitted follows.

    A workload that is admitted stays so: a check that comes later, or is asked anew, stops nothing that runs;
    Retry and Rejected do.
    """
    if context.cluster_queue is None or workload.is_true(ConditionType.EVICTED):
        return None
    names = sorted(_wanted_checks(workload, context.cluster_queue))
    have = {check.name: check for check in workload.admission_checks}
    if names != [check.name for check in workload.admission_checks]:
        fresh = (have.get(name) or AdmissionCheckState(name, last_transition_time=now) for name in names)
        workload = replace(workload, admission_checks=tuple(fresh))
        synced = workload if _runs(workload) else to.sync_admitted(workload, now)
        return Step(synced, "AdmissionChecksChanged", f"Admission checks: {', '.join(names) or 'none'}")
    synced = workload if _runs(workload) else to.sync_admitted(workload, now)
    if synced is workload:
        return None
    admitted = synced.is_true(ConditionType.ADMITTED)
    if admitted:
        queue = workload.admission.cluster_queue if workload.admission else ""
        return Step(synced, "Admitted", f"Admitted by ClusterQueue {queue}")
    condition = synced.conditions[ConditionType.ADMITTED]
    return Step(synced, condition.reason, condition.message)


def _runs(workload: Workload) -> bool:
    return workload.admission is not None and workload.is_true(ConditionType.ADMITTED)


def _wanted_checks(workload: Workload, queue: ClusterQueue) -> Iterable[str]:
    if workload.admission is not None:
        assigned = {flavor for pod_set in workload.admission.pod_set_assignments for flavor in pod_set.flavors.values()}
        return required_checks(queue.admission_checks, assigned)
    every = {flavor.name for group in queue.resource_groups for flavor in group.flavors}
    return [rule.name for rule in queue.admission_checks if not rule.on_flavors or every <= set(rule.on_flavors)]


# --- While it holds quota ---------------------------------------------------------------------------------------------


def _holding(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Release what stopped; else evict for checks, stopped queues and time-outs, in that order."""
    if workload.is_true(ConditionType.EVICTED):
        return _release(workload, context, now) if context.pods_stopped else _by_execution_time(workload, context, now)
    rules = (
        _by_checks,
        _by_local_queue,
        _by_cluster_queue,
        _by_failed_nodes,
        _by_lacking_devices,
        _by_drain,
        _by_pods_ready,
        _by_execution_time,
    )
    for rule in rules:
        step = rule(workload, context, now)
        if step is not None:
            return step
    return None


def _release(workload: Workload, context: WorkloadContext, now: float) -> Step:
    ran = context.accumulated_seconds + to.execution_seconds(workload.conditions, now)
    return Step(
        to.release(workload, now),
        "QuotaReleased",
        "Its pods have stopped; its quota and devices are free",
        accumulated_seconds=ran,
    )


def _by_checks(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    rejected = [check for check in workload.admission_checks if check.state is AdmissionCheckStatus.REJECTED]
    if rejected:
        message = "; ".join(f"{check.name}: {check.message}" for check in rejected)
        return _target(
            workload, DeactivationCause.ADMISSION_CHECK, f"Rejected by {message}", now, "AdmissionCheckRejected"
        )
    retried = [check.name for check in workload.admission_checks if check.state is AdmissionCheckStatus.RETRY]
    if not retried:
        return None
    message = f"Admission checks ask to try again: {', '.join(retried)}"
    evicted = to.evict(workload, EvictionReason.ADMISSION_CHECK, message, now)
    return _eviction(evicted, EvictionReason.ADMISSION_CHECK, "", message)


def _by_local_queue(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    queue = context.local_queue
    if queue is None or queue.terminating:
        if workload.is_true(ConditionType.ADMITTED):
            return None
        message = f"LocalQueue {workload.queue_name} does not exist or is being deleted"
        return Step(to.give_back(workload, PendingReason.MISCONFIGURED, message, now), "QuotaReleased", message)
    return _by_stop_policy(
        workload, queue.stop_policy, EvictionReason.LOCAL_QUEUE_STOPPED, f"LocalQueue {queue.key}", now
    )


def _by_cluster_queue(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    queue = context.cluster_queue
    if queue is None or queue.terminating:
        if workload.is_true(ConditionType.ADMITTED) or workload.admission is None:
            return None
        message = f"ClusterQueue {workload.admission.cluster_queue} does not exist or is being deleted"
        return Step(to.give_back(workload, PendingReason.MISCONFIGURED, message, now), "QuotaReleased", message)
    name = f"ClusterQueue {queue.name}"
    return _by_stop_policy(workload, queue.stop_policy, EvictionReason.CLUSTER_QUEUE_STOPPED, name, now)


def _by_stop_policy(
    workload: Workload, policy: StopPolicy, reason: EvictionReason, queue: str, now: float
) -> Step | None:
    """Hold takes back what is reserved and lets run what runs; HoldAndDrain stops that too."""
    if policy is StopPolicy.NONE:
        return None
    message = f"{queue} is stopped ({policy})"
    if not workload.is_true(ConditionType.ADMITTED):
        return Step(to.give_back(workload, PendingReason.SUSPENDED, message, now), "QuotaReleased", message)
    if policy is StopPolicy.HOLD:
        return None
    return _eviction(to.evict(workload, reason, message, now), reason, "", message)


def _by_failed_nodes(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Without a topology there is no second pass that could move the pods of a failed node elsewhere."""
    assignments = workload.admission.pod_set_assignments if workload.admission else ()
    if not workload.unhealthy_nodes or any(assignment.topology_assignment for assignment in assignments):
        return None
    message = f"Nodes failed: {', '.join(workload.unhealthy_nodes)}"
    evicted = to.evict(workload, EvictionReason.NODE_FAILURES, message, now)
    return _eviction(evicted, EvictionReason.NODE_FAILURES, "", message)


def _by_lacking_devices(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Devices came to be known after it was admitted on quota alone: it is placed anew, unless its pods run already."""
    if not context.lacks_devices or workload.is_true(ConditionType.PODS_READY):
        return None
    message = "It was admitted before any device was known; it is queued again to get devices of its own"
    evicted = to.evict(workload, EvictionReason.DEVICES_NOT_ASSIGNED, message, now)
    return _eviction(evicted, EvictionReason.DEVICES_NOT_ASSIGNED, "", message)


def _by_drain(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    if not context.drained:
        return None
    message = f"It is moved away from {context.drained}, which an operator is emptying"
    return _eviction(to.evict(workload, EvictionReason.DRAINED, message, now), EvictionReason.DRAINED, "", message)


def _by_pods_ready(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Not ready in time: requeued with a back-off, or deactivated after too many attempts."""
    due = min(pods_ready_times(workload, context), default=None)
    if due is None or now < due:
        return None
    ready = context.configuration.wait_for_pods_ready
    assert ready is not None  # there would be no time without it
    cause = waits_for(workload)
    state = workload.requeue_state or RequeueState()
    count = state.count + 1
    strategy = ready.requeuing_strategy
    message = f"Its pods were not ready in time ({cause})"
    if strategy.backoff_limit_count is not None and count > strategy.backoff_limit_count:
        limit = f"{message}, after {state.count} attempts"
        return _target(workload, DeactivationCause.REQUEUING_LIMIT_EXCEEDED, limit, now, "RequeuingLimitExceeded")
    at = max(now + strategy.backoff_seconds(count), state.requeue_at or 0.0)
    requeued = replace(workload, requeue_state=RequeueState(count, at))
    evicted = to.evict(requeued, EvictionReason.PODS_READY_TIMEOUT, message, now, cause)
    return _eviction(evicted, EvictionReason.PODS_READY_TIMEOUT, cause, message)


def _by_execution_time(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    due = min(execution_times(workload, context), default=None)
    if due is None or now < due or not context.wanted_active:
        return None
    message = f"It ran for its maximum of {workload.maximum_execution_time_seconds} s"
    step = _target(
        workload, DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED, message, now, "MaximumExecutionTimeExceeded"
    )
    return replace(step, accumulated_seconds=0)


def _target(workload: Workload, cause: DeactivationCause, message: str, now: float, reason: str) -> Step:
    marked = to.with_condition(
        workload, ConditionType.DEACTIVATION_TARGET, ConditionStatus.TRUE, cause.value, message, now
    )
    return Step(marked, reason, message, warning=True)


# --- While it waits ---------------------------------------------------------------------------------------------------


def _refresh_verdict(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Why it is not even queued; a verdict of the cycle stays."""
    verdict = inadmissible_reason(workload, context)
    before = workload.condition(ConditionType.QUOTA_RESERVED)
    if verdict is not None:
        reason, message = verdict
        told = to.pending(workload, reason, message, now)
        gated = reason is PendingReason.ADMISSION_GATED
        return None if told is workload else Step(told, reason, message, warning=not gated)
    if before is None or not was_kept_out(before):
        return None
    message = "It waits for the scheduler to look at it"
    event = "AdmissionGateCleared" if before.reason == PendingReason.ADMISSION_GATED else "PendingEvaluation"
    return Step(to.pending(workload, PendingReason.PENDING_EVALUATION, message, now), event, message)
