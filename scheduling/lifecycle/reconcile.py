"""Reconciles a workload outside the cycle, one step at a time.

`next_step` reconciles a workload in the order of Kueue's workload controller and returns the first step that is due, or
None. The caller applies it and calls again. Where our rule is better for users than Kueue's, the choice depends on
`context.strict`; docs/scheduling.md lists these rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from scheduling.lifecycle import conditions as to
from scheduling.lifecycle.context import (
    WorkloadContext,
    execution_times,
    pods_ready_times,
    waits_for,
    waits_for_backoff,
)
from scheduling.lifecycle.inadmissible import inadmissible_reason
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
from scheduling.reservations.reserved_nodes import ReservedWindow

_EVICTED_FOR_A_WHILE = frozenset({EvictionReason.PODS_READY_TIMEOUT, EvictionReason.ADMISSION_CHECK})


@dataclass(frozen=True, slots=True)
class StepEvent:
    """An event of a step; `ours` marks kueueweb's events, which Kueue does not have."""

    reason: str
    message: str
    warning: bool = False
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Step:
    """A workload after a step, and the events of the step.

    `evicted` is (reason, cause) when the step evicts, `requested_by` the program of the cluster that asked for it;
    `deactivates` sets spec.active to false, `activates` to true; `accumulated_seconds` replaces the running time of
    earlier admissions.
    """

    workload: Workload
    events: tuple[StepEvent, ...] = ()
    evicted: tuple[EvictionReason, str] | None = None
    requested_by: str = ""
    deactivates: bool = False
    activates: bool = False
    accumulated_seconds: int | None = None


Rule = Callable[[Workload, WorkloadContext, float], Step | None]


def next_step(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Return the first step that is due, or None."""
    if workload.is_true(ConditionType.FINISHED):
        return None
    for rule in _rules(workload, context, now):
        step = rule(workload, context, now)
        if step is not None:
            return step
    return None


def _rules(workload: Workload, context: WorkloadContext, now: float) -> Iterable[Rule]:
    yield from (_by_claims, _on_hold)
    if not context.wanted_active:
        yield _deactivated
    else:
        yield from (_delayed_by_checks, _marked_for_deactivation)
        if context.strict and waits_for_backoff(workload, context, now):
            yield _released
            return
        yield _backoff_over
        yield _requeued_after_eviction
    yield from (_local_queue_restarted, _gated, _cluster_queue_restarted, _checks_listed, _verdict)
    if workload.admission is not None:
        yield from (_by_checks, _by_local_queue, _by_cluster_queue, _by_failed_nodes, _by_lacking_devices, _by_drain)
        yield from (_by_request, _by_time, _by_reservation, _released)


# -- Requeuing and deactivation -----------------------------------------------------------------------------------


def _by_claims(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Keep a workload out of its queue while its claims cannot be counted."""
    if workload.is_true(ConditionType.QUOTA_RESERVED):
        return None
    requeued = workload.condition(ConditionType.REQUEUED)
    kept_out = _is_kept_out_by(workload, RequeuedReason.INADMISSIBLE)
    if context.claim_refusal is None:
        if not kept_out:
            return None
        counted = to.without_condition(workload, ConditionType.REQUEUED)
        counted = to.without_condition(counted, ConditionType.QUOTA_RESERVED)
        return Step(counted, _ours("Requeued", "The devices of its claims can be counted now"))
    message = context.claim_refusal.requeued_message
    if kept_out and requeued is not None and requeued.message == message:
        return None
    return Step(
        to.with_condition(
            workload, ConditionType.REQUEUED, ConditionStatus.FALSE, RequeuedReason.INADMISSIBLE, message, now
        )
    )


def _on_hold(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Release the quota of a workload whose job needs no pods, and keep it out of its queue until the job needs some
    (Kueue: a StatefulSet that is scaled to zero).
    """
    reserved = workload.condition(ConditionType.QUOTA_RESERVED)
    is_held = reserved is not None and reserved.reason == PendingReason.ON_HOLD
    if context.on_hold is None or is_held == bool(context.on_hold):
        return None
    if is_held:
        message = "Workload no longer on hold; waiting for quota reservation"
        return Step(to.pending(workload, PendingReason.PENDING_EVALUATION, message, now), _ours("Requeued", message))
    if not context.wanted_active or (workload.admission is not None and workload.is_true(ConditionType.EVICTED)):
        return None
    held = to.give_back(workload, PendingReason.ON_HOLD, context.on_hold, now)
    return Step(held, _ours("QuotaReleased" if workload.admission is not None else "OnHold", context.on_hold))


def _delayed_by_checks(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Delay the workload if a check requests a later retry; a check never makes the retry earlier."""
    retries = [
        check.last_transition_time + check.requeue_after_seconds
        for check in workload.admission_checks
        if check.state is AdmissionCheckStatus.RETRY and check.requeue_after_seconds is not None
    ]
    at = max(retries, default=now)
    state = workload.requeue_state or RequeueState()
    if at <= now or (state.requeue_at is not None and state.requeue_at >= at):
        return None
    moved = replace(workload, requeue_state=replace(state, requeue_at=at))
    return Step(moved, _ours("RequeueDelayed", "An admission check requested a later retry"))


def _deactivated(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict an inactive workload, with the recorded cause, unless it is evicted already, and clear its back-off.

    A pending workload has nothing to stop: its deactivation is counted, without an event. Kueue keeps a
    DeactivationTarget that is set during the eviction, and so undoes every later activation.
    """
    target = workload.condition(ConditionType.DEACTIVATION_TARGET)
    forgotten = replace(to.without_condition(workload, ConditionType.DEACTIVATION_TARGET), requeue_state=None)
    if workload.is_true(ConditionType.EVICTED):
        if workload.requeue_state is None and (target is None or context.strict):
            return None
        return Step(forgotten)
    message = f"The workload is deactivated due to {target.message}" if target else "The workload is deactivated"
    cause = target.reason if target else ""
    evicted = to.evict(forgotten, EvictionReason.DEACTIVATED, message, now, cause)
    return _eviction(evicted, EvictionReason.DEACTIVATED, cause, message)


def _marked_for_deactivation(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    if not workload.is_true(ConditionType.DEACTIVATION_TARGET):
        return None
    target = workload.conditions[ConditionType.DEACTIVATION_TARGET]
    events = _ours(f"Deactivated{target.reason}", f"Deactivated due to {target.message}", warning=True)
    return Step(workload, events, deactivates=True)


def _backoff_over(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Requeue a pending workload whose back-off has ended."""
    state = workload.requeue_state
    if state is None or state.requeue_at is None or state.requeue_at > now:
        return None
    if workload.is_true(ConditionType.QUOTA_RESERVED):
        return None
    return Step(_without_requeue_at(workload, context), _ours("Requeued", "The back-off has ended"))


def _requeued_after_eviction(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Requeue a workload whose obstacle is over: it is active again, or its back-off has ended.

    Kueue requeues only workloads that a user had deactivated. We also requeue one that Kueue's rules deactivated and
    a user activated, because the user intends it.
    """
    requeued = workload.condition(ConditionType.REQUEUED)
    if requeued is None or requeued.status is not ConditionStatus.FALSE:
        return None
    if requeued.reason == EvictionReason.DEACTIVATED or (
        not context.strict and requeued.reason.startswith(EvictionReason.DEACTIVATED)
    ):
        return _requeue(workload, RequeuedReason.REACTIVATED, now)
    if requeued.reason in _EVICTED_FOR_A_WHILE and not waits_for_backoff(workload, context, now):
        return _requeue(_without_requeue_at(workload, context), RequeuedReason.BACKOFF_FINISHED, now)
    return None


def _local_queue_restarted(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    if not _is_kept_out_by(workload, EvictionReason.LOCAL_QUEUE_STOPPED) or not _admits(context.local_queue):
        return None
    return _requeue(workload, RequeuedReason.LOCAL_QUEUE_RESTARTED, now)


def _gated(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Keep a gated workload out of its queue. Kueue's gate also takes quota back from a running workload."""
    if not context.strict or not workload.admission_gates or workload.admission is None:
        return None
    gates = ",".join(workload.admission_gates)
    gated = to.give_back(workload, PendingReason.ADMISSION_GATED, f"Admission is gated by: {gates}", now)
    return Step(gated, (StepEvent("AdmissionGated", f"Workload admission is gated by: {gates}"),))


def _cluster_queue_restarted(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    if not _is_kept_out_by(workload, EvictionReason.CLUSTER_QUEUE_STOPPED) or not _admits(context.reached_queue):
        return None
    return _requeue(workload, RequeuedReason.CLUSTER_QUEUE_RESTARTED, now)


def _is_kept_out_by(workload: Workload, reason: EvictionReason | RequeuedReason) -> bool:
    requeued = workload.condition(ConditionType.REQUEUED)
    return requeued is not None and requeued.status is ConditionStatus.FALSE and requeued.reason == reason


def _requeue(workload: Workload, reason: RequeuedReason, now: float) -> Step:
    requeued = to.requeue(workload, reason, now)
    return Step(requeued, _ours("Requeued", requeued.conditions[ConditionType.REQUEUED].message))


def _admits(queue: ClusterQueue | LocalQueue | None) -> bool:
    return queue is not None and queue.stop_policy is StopPolicy.NONE


def _without_requeue_at(workload: Workload, context: WorkloadContext) -> Workload:
    """Clear the time of requeueing. Kueue keeps a state with count 0, which deactivation treats as a back-off to
    clear."""
    state = workload.requeue_state
    if state is None:
        return workload
    kept = replace(state, requeue_at=None) if state.count or context.strict else None
    return replace(workload, requeue_state=kept)


def _ours(reason: str, message: str, *, warning: bool = False) -> tuple[StepEvent, ...]:
    return (StepEvent(reason, message, warning, ours=True),)


def _eviction(workload: Workload, reason: EvictionReason, cause: str, message: str) -> Step:
    """Return an eviction step. As in Kueue, the event names the cause only for a deactivation, and exists only if quota
    was held."""
    told = (StepEvent(to.eviction_event(reason, cause), message),) if workload.admission is not None else ()
    return Step(workload, told, evicted=(reason, cause))


# -- Admission checks and the verdict ----------------------------------------------------------------------------


def _checks_listed(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Update the list of checks to those that the ClusterQueue requires of the workload now.

    An admitted workload stays admitted if a check is added or reset later; Retry and Rejected stop it.
    """
    if context.reached_queue is None:
        return None
    names = sorted(_wanted_checks(workload, context.reached_queue))
    have = {check.name: check for check in workload.admission_checks}
    if set(names) == have.keys():
        return None
    fresh = (have.get(name) or AdmissionCheckState(name, last_transition_time=now) for name in names)
    listed = replace(workload, admission_checks=tuple(fresh))
    return Step(listed, _ours("AdmissionChecksChanged", f"Admission checks: {', '.join(names) or 'none'}"))


def _wanted_checks(workload: Workload, queue: ClusterQueue) -> Iterable[str]:
    if workload.admission is not None:
        assigned = {flavor for pod_set in workload.admission.pod_set_assignments for flavor in pod_set.flavors.values()}
        return required_checks(queue.admission_checks, assigned)
    every = {flavor.name for group in queue.resource_groups for flavor in group.flavors}
    return [rule.name for rule in queue.admission_checks if not rule.on_flavors or every <= set(rule.on_flavors)]


def _verdict(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Set QuotaReserved of a workload that is not queued, and Admitted accordingly. Evict it instead of admitting it to
    nodes that a reservation closes to it: its pods do not run yet."""
    if workload.is_true(ConditionType.ADMITTED):
        return None
    told, verdict = workload, None
    events: tuple[StepEvent, ...] = ()
    if not workload.is_true(ConditionType.QUOTA_RESERVED):
        verdict = inadmissible_reason(workload, context)
    if verdict is not None:
        told = to.pending(workload, *verdict, now)
        events = () if told is workload else _verdict_events(workload, context, *verdict)
    synced = to.sync_admitted(told, now)
    if synced is workload:
        return None
    if synced.is_true(ConditionType.ADMITTED):
        if context.closing_window is not None:
            return _evict_for(context.closing_window, workload, now)
        events = (_admitted_event(synced, now),)
    return Step(synced, events)


def _verdict_events(
    before: Workload, context: WorkloadContext, reason: PendingReason, message: str
) -> tuple[StepEvent, ...]:
    condition = before.condition(ConditionType.QUOTA_RESERVED)
    was = condition.reason if condition is not None else ""
    if was == PendingReason.ADMISSION_GATED and not before.admission_gates:
        return (StepEvent("AdmissionGateCleared", "Admission gate cleared, workload is now admissible"),)
    if reason is PendingReason.ADMISSION_GATED:
        gates = ",".join(before.admission_gates)
        told = StepEvent("AdmissionGated", f"Workload admission is gated by: {gates}")
        return () if was == reason else (told,)
    if reason is PendingReason.SUSPENDED and context.inactive_reason:
        message = f"{message}: {context.inactive_reason}"
    return _ours(reason, message, warning=reason is not PendingReason.PENDING_EVALUATION)


def _admitted_event(workload: Workload, now: float) -> StepEvent:
    queue = workload.admission.cluster_queue if workload.admission else ""
    waited = now - workload.conditions[ConditionType.QUOTA_RESERVED].last_transition_time
    return StepEvent("Admitted", to.admitted_message(queue, waited))


# -- While it holds quota ----------------------------------------------------------------------------------------


def _released(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Release an evicted workload whose pods have stopped. Kueue resets PodsReady only while it waits for pods."""
    if workload.admission is None or not workload.is_true(ConditionType.EVICTED) or not context.pods_stopped:
        return None
    ran = context.accumulated_seconds + to.execution_seconds(workload.conditions, now)
    told = _ours("QuotaReleased", "All pods have stopped; quota and devices are released")
    known = not context.strict or context.configuration.wait_for_pods_ready is not None
    return Step(to.release(workload, now, resets_pods_ready=known), told, accumulated_seconds=ran)


def _by_checks(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Deactivate for a rejected check, evict for a retry.

    The eviction is immediate, and the check's delay counts from its answer, so quota and devices are free meanwhile.
    In Kueue the workload keeps them until the delay is over.
    """
    if workload.is_true(ConditionType.EVICTED):
        return None
    rejected = _checks_message(workload, AdmissionCheckStatus.REJECTED)
    if rejected:
        told = StepEvent("AdmissionCheckRejected", f"Deactivated due to {rejected}", warning=True)
        return Step(_marked(workload, DeactivationCause.ADMISSION_CHECK, rejected, now), (told,))
    retried = _checks_message(workload, AdmissionCheckStatus.RETRY)
    return _evict(workload, EvictionReason.ADMISSION_CHECK, f"Evicted due to {retried}", now) if retried else None


def _checks_message(workload: Workload, state: AdmissionCheckStatus) -> str:
    """`AdmissionCheck in Retry state: "name" (its message)`; empty if no check is in that state."""
    checks = sorted((check.name, check.message) for check in workload.admission_checks if check.state is state)
    if not checks:
        return ""
    noun = "AdmissionCheck" if len(checks) == 1 else "AdmissionChecks"
    each = (f'"{name}" ({message})' if message else f'"{name}"' for name, message in checks)
    return f"{noun} in {state} state: {'; '.join(each)}"


def _by_local_queue(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    queue = context.local_queue
    if workload.is_true(ConditionType.ADMITTED):
        drained = queue is not None and queue.stop_policy is StopPolicy.HOLD_AND_DRAIN
        return _drained(workload, EvictionReason.LOCAL_QUEUE_STOPPED, "LocalQueue", now) if drained else None
    return _not_admitted_any_more(workload, queue, f"LocalQueue {workload.queue_name}", now)


def _by_cluster_queue(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict the workloads of a drained ClusterQueue. Kueue finds the ClusterQueue through the LocalQueue, so
    workloads whose LocalQueue is deleted or on hold keep running there."""
    queue = context.reached_queue if context.strict else context.reserving_queue
    if workload.is_true(ConditionType.ADMITTED):
        drained = queue is not None and queue.stop_policy is StopPolicy.HOLD_AND_DRAIN
        return _drained(workload, EvictionReason.CLUSTER_QUEUE_STOPPED, "ClusterQueue", now) if drained else None
    name = context.local_queue.cluster_queue if context.local_queue is not None else ""
    return _not_admitted_any_more(workload, queue, f"ClusterQueue {name}", now)


def _drained(workload: Workload, reason: EvictionReason, kind: str, now: float) -> Step | None:
    if workload.is_true(ConditionType.EVICTED):
        return None
    return _evict(workload, reason, f"The {kind} is stopped", now)


def _not_admitted_any_more(
    workload: Workload, queue: ClusterQueue | LocalQueue | None, name: str, now: float
) -> Step | None:
    """Take back quota that is reserved but not admitted when a queue is deleted or stopped."""
    if queue is None or queue.terminating:
        reason, message = PendingReason.MISCONFIGURED, f"{name} is terminating or missing"
    elif queue.stop_policy is not StopPolicy.NONE:
        reason, message = PendingReason.SUSPENDED, f"{name} is stopped"
    else:
        return None
    return Step(to.give_back(workload, reason, message, now), _ours("QuotaReleased", message))


def _by_failed_nodes(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict for failed nodes: without a topology no second pass can move the pods."""
    assignments = workload.admission.pod_set_assignments if workload.admission else ()
    if not workload.unhealthy_nodes or any(assignment.topology_assignment for assignment in assignments):
        return None
    return _evict(workload, EvictionReason.NODE_FAILURES, f"Nodes failed: {', '.join(workload.unhealthy_nodes)}", now)


def _by_lacking_devices(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict a workload that was admitted on quota alone before devices were known, so that it is placed, unless its
    pods run already."""
    if not context.lacks_devices or workload.is_true(ConditionType.PODS_READY):
        return None
    message = "Admitted before any device was registered; requeued to get devices assigned"
    return _evict(workload, EvictionReason.DEVICES_NOT_ASSIGNED, message, now)


def _by_drain(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    if not context.drained:
        return None
    message = f"Moved away from {context.drained}, which an operator drains"
    return _evict(workload, EvictionReason.DRAINED, message, now)


def _by_reservation(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict from the nodes of a reservation whose window has started, where the reservation says so."""
    window = context.evicting_window
    if window is None or now < window.starts_at:
        return None
    return _evict_for(window, workload, now)


def _evict_for(window: ReservedWindow, workload: Workload, now: float) -> Step | None:
    named = to.reservation_started if window.starts_at <= now else to.reservation_starts_soon
    return _evict(workload, EvictionReason.RESERVATION_STARTED, named(window.reservation), now)


def _by_request(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    request = context.eviction_request
    if request is None:
        return None
    step = _evict(workload, request.reason, request.message or f"Requeued by {request.actor}", now)
    return replace(step, requested_by=request.actor) if step is not None and request.message else step


def _evict(workload: Workload, reason: EvictionReason, message: str, now: float) -> Step | None:
    if workload.is_true(ConditionType.EVICTED):
        return None
    return _eviction(to.evict(workload, reason, message, now), reason, "", message)


def _by_time(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Evict for pods that are not ready in time, or for the maximum execution time; both in one step if both are
    due."""
    by_pods = _by_pods_ready(workload, context, now)
    by_execution = _by_execution_time(by_pods.workload if by_pods else workload, context, now)
    if by_pods is None or by_execution is None:
        return by_pods or by_execution
    return replace(by_execution, events=(*by_pods.events, *by_execution.events), evicted=by_pods.evicted)


def _by_pods_ready(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    """Pods not ready in time: requeue with a back-off, or deactivate after too many attempts."""
    due = min(pods_ready_times(workload, context), default=None)
    ready = context.configuration.wait_for_pods_ready
    if ready is None or due is None or now < due:
        return None
    cause = waits_for(workload)
    state = workload.requeue_state or RequeueState()
    count = state.count + 1
    strategy = ready.requeuing_strategy
    if strategy.backoff_limit_count is not None and count > strategy.backoff_limit_count:
        limit = "exceeding the maximum number of re-queuing retries"
        exceeded = DeactivationCause.REQUEUING_LIMIT_EXCEEDED
        return Step(_marked(workload, exceeded, limit, now), _ours(exceeded, limit, warning=True))
    at = max(now + strategy.backoff_seconds(count), state.requeue_at or 0.0)
    requeued = replace(workload, requeue_state=RequeueState(count, at))
    message = f"Exceeded the PodsReady timeout {workload.key}"
    evicted = to.evict(requeued, EvictionReason.PODS_READY_TIMEOUT, message, now, cause)
    return _eviction(evicted, EvictionReason.PODS_READY_TIMEOUT, cause, message)


def _by_execution_time(workload: Workload, context: WorkloadContext, now: float) -> Step | None:
    due = min(execution_times(workload, context), default=None)
    if due is None or now < due or workload.is_true(ConditionType.DEACTIVATION_TARGET):
        return None
    cause = DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED
    limit = workload.maximum_execution_time_seconds
    told = StepEvent(cause, f"The maximum execution time ({limit}s) exceeded", warning=True)
    marked = _marked(workload, cause, "exceeding the maximum execution time", now)
    return Step(replace(marked, executed_seconds=0), (told,), accumulated_seconds=0)


def _marked(workload: Workload, cause: DeactivationCause, message: str, now: float) -> Workload:
    return to.with_condition(
        workload, ConditionType.DEACTIVATION_TARGET, ConditionStatus.TRUE, cause.value, message, now
    )
