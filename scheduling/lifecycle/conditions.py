"""Transitions of a workload's conditions: reserve, sync Admitted, evict, release. Each returns a new workload.

When a transition happens is decided in `reconcile` and in the cycle. Times are seconds since the epoch. A condition
keeps its transition time while its status stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from scheduling.model.admission_check import AdmissionCheckState
from scheduling.model.placement import Placement
from scheduling.model.vocabulary import (
    AdmissionCheckStatus,
    ConditionStatus,
    ConditionType,
    EvictionReason,
    PendingReason,
    PodsReadyReason,
    PreemptionReason,
    RequeuedReason,
)
from scheduling.model.workload import Admission, Condition, Workload

Conditions = Mapping[ConditionType, Condition]

ADMITTED = "Admitted"
NO_RESERVATION = "NoReservation"
UNSATISFIED_CHECKS = "UnsatisfiedAdmissionChecks"
PENDING_TOPOLOGY = "PendingDelayedTopologyRequests"
QUOTA_RESERVED = "QuotaReserved"
PREEMPTION_GATED = "PreemptionGated"
VARIANT_GATE: Final = "kueue.x-k8s.io/concurrent-admission"
"""The preemption gate of each variant: one variant of a workload preempts at a time."""

OWNER_IS_GONE: Final = "The workload's owner no longer exists"
"""The final message of a workload whose job no longer exists."""
PODS_READY_MESSAGES: Final = {
    PodsReadyReason.WAIT_FOR_START: "Not all pods are ready or succeeded",
    PodsReadyReason.WAIT_FOR_RECOVERY: "At least one pod has failed, waiting for recovery",
    PodsReadyReason.STARTED: "All pods reached readiness and the workload is running",
    PodsReadyReason.RECOVERED: "All pods reached readiness and the workload is running",
}
_READY_REASONS = frozenset({PodsReadyReason.STARTED, PodsReadyReason.RECOVERED})
_REQUEUED_MESSAGES: Final = {
    RequeuedReason.REACTIVATED: "The workload was reactivated",
    RequeuedReason.BACKOFF_FINISHED: "The workload backoff was finished",
    RequeuedReason.CLUSTER_QUEUE_RESTARTED: "The ClusterQueue was restarted after being stopped",
    RequeuedReason.LOCAL_QUEUE_RESTARTED: "The LocalQueue was restarted after being stopped",
}

_REQUEUED_AT_ONCE = frozenset(
    {
        EvictionReason.PREEMPTED,
        EvictionReason.NODE_FAILURES,
        EvictionReason.DEVICES_NOT_ASSIGNED,
        EvictionReason.DRAINED,
        EvictionReason.RESERVATION_STARTED,
        EvictionReason.REQUEUE_REQUESTED,
        EvictionReason.VARIANT_EVICTED,
        EvictionReason.CONCURRENT_ADMISSION,
    }
)


def with_condition(
    workload: Workload, type_: ConditionType, status: ConditionStatus, reason: str, message: str, now: float
) -> Workload:
    """Set a condition. An equal one is left unchanged."""
    conditions = _with(workload.conditions, type_, status, reason, message, now)
    return workload if conditions is workload.conditions else replace(workload, conditions=conditions)


def _with(
    conditions: Conditions, type_: ConditionType, status: ConditionStatus, reason: str, message: str, now: float
) -> Conditions:
    """Return the conditions with one of them set; the same mapping if it is so already."""
    before = conditions.get(type_)
    if before is not None and (before.status, before.reason, before.message) == (status, reason, message):
        return conditions
    since = before.last_transition_time if before is not None and before.status is status else now
    return {**conditions, type_: Condition(type_, status, reason, message, since)}


def without_condition(workload: Workload, type_: ConditionType) -> Workload:
    if type_ not in workload.conditions:
        return workload
    conditions = {kind: condition for kind, condition in workload.conditions.items() if kind is not type_}
    return replace(workload, conditions=conditions)


def checks_ready(workload: Workload) -> bool:
    """Return whether all the workload's admission checks are Ready and no topology is pending."""
    if any(check.state is not AdmissionCheckStatus.READY for check in workload.admission_checks):
        return False
    assignments = workload.admission.pod_set_assignments if workload.admission else ()
    return all(assignment.delayed_topology_request != "Pending" for assignment in assignments)


def sync_admitted(workload: Workload, now: float) -> Workload:
    """Set Admitted by the quota reservation, the admission checks and the delayed topology.

    It stays absent until QuotaReserved exists.
    """
    if not workload.is_true(ConditionType.QUOTA_RESERVED):
        if not {ConditionType.ADMITTED, ConditionType.QUOTA_RESERVED} & workload.conditions.keys():
            return workload
        message = "The workload has no reservation"
        return with_condition(workload, ConditionType.ADMITTED, ConditionStatus.FALSE, NO_RESERVATION, message, now)
    if checks_ready(workload):
        message = "The workload is admitted"
        return with_condition(workload, ConditionType.ADMITTED, ConditionStatus.TRUE, ADMITTED, message, now)
    if any(check.state is not AdmissionCheckStatus.READY for check in workload.admission_checks):
        message = "The workload has not all checks ready"
        return with_condition(workload, ConditionType.ADMITTED, ConditionStatus.FALSE, UNSATISFIED_CHECKS, message, now)
    before = workload.condition(ConditionType.ADMITTED)
    if before is not None and before.status is ConditionStatus.FALSE and before.reason == PENDING_TOPOLOGY:
        return workload  # a second pass has set the reason why the topology is pending
    return topology_delayed(workload, "", now)


def topology_delayed(workload: Workload, why: str, now: float) -> Workload:
    """Set the reason why a workload with ready checks has no topology yet; `why` is the result of the last second
    pass."""
    text = "There are pending delayed topology requests" + (f": {why}" if why else "")
    return with_condition(workload, ConditionType.ADMITTED, ConditionStatus.FALSE, PENDING_TOPOLOGY, text, now)


def reserve(
    workload: Workload, admission: Admission, placement: Placement | None, required_checks: Iterable[str], now: float
) -> Workload:
    """Set the admission. The workload is admitted at once if it lists every check that the admission needs, and all
    listed checks are Ready."""
    message = f"Quota reserved in ClusterQueue {admission.cluster_queue}"
    conditions = _reserved(workload.conditions, message, now)
    workload = replace(workload, admission=admission, placement=placement, conditions=conditions)
    listed = {check.name for check in workload.admission_checks}
    return sync_admitted(workload, now) if listed.issuperset(required_checks) else workload


def admitted(workload: Workload, message: str, now: float) -> Workload:
    """Set Admitted to True."""
    return with_condition(workload, ConditionType.ADMITTED, ConditionStatus.TRUE, ADMITTED, message, now)


def reserved(workload: Workload, message: str, now: float) -> Workload:
    """Set QuotaReserved to True for the present admission, and end earlier Evicted and Preempted conditions."""
    conditions = _reserved(workload.conditions, message, now)
    return workload if conditions is workload.conditions else replace(workload, conditions=conditions)


def _reserved(conditions: Conditions, message: str, now: float) -> Conditions:
    for type_ in (ConditionType.EVICTED, ConditionType.PREEMPTED, ConditionType.BLOCKED_ON_PREEMPTION_GATES):
        before = conditions.get(type_)
        if before is not None and before.status is ConditionStatus.TRUE:
            text = f"Previously: {before.message}"
            conditions = _with(conditions, type_, ConditionStatus.FALSE, QUOTA_RESERVED, text, now)
    return _with(conditions, ConditionType.QUOTA_RESERVED, ConditionStatus.TRUE, QUOTA_RESERVED, message, now)


def pending(workload: Workload, reason: str, message: str, now: float) -> Workload:
    """Set QuotaReserved to False."""
    return with_condition(workload, ConditionType.QUOTA_RESERVED, ConditionStatus.FALSE, reason, message, now)


def waited_seconds(workload: Workload) -> float:
    """Return how many seconds a workload with quota waited since it was created or requeued."""
    since, requeued = workload.created_at, workload.condition(ConditionType.REQUEUED)
    if requeued is not None and requeued.status is ConditionStatus.TRUE:
        since = requeued.last_transition_time
    return max(0.0, workload.conditions[ConditionType.QUOTA_RESERVED].last_transition_time - since)


def admitted_message(cluster_queue: str, waited_seconds: float) -> str:
    """Return the message of the Admitted event."""
    return f"Admitted by ClusterQueue {cluster_queue}, wait time since reservation was {waited_seconds:.0f}s"


def blocked_on_gates(workload: Workload, message: str, now: float) -> Workload:
    """Record that the workload would have to preempt while a preemption gate is closed."""
    type_ = ConditionType.BLOCKED_ON_PREEMPTION_GATES
    return with_condition(workload, type_, ConditionStatus.TRUE, PREEMPTION_GATED, message, now)


def eviction_reason(reason: EvictionReason, cause: str = "") -> str:
    """Return the reason of the Evicted condition: `DeactivatedDueTo<Cause>` where Kueue itself deactivated."""
    return f"{reason}DueTo{cause}" if reason is EvictionReason.DEACTIVATED and cause else reason.value


def reservation_started(name: str) -> str:
    """Return the message of an eviction for a reservation."""
    return f"The reservation {name} of its nodes has started"


def reservation_starts_soon(name: str) -> str:
    """Return the message of an eviction for a reservation into whose window the workload might run."""
    return f"The reservation {name} of its nodes would start before the workload ends"


def eviction_event(reason: EvictionReason, cause: str = "") -> str:
    """Return the reason of the eviction event."""
    return f"EvictedDueTo{eviction_reason(reason, cause)}"


def evict(workload: Workload, reason: EvictionReason, message: str, now: float, cause: str = "") -> Workload:
    """Set Evicted: the workload's pods must stop. It keeps its quota until they have stopped (T56)."""
    workload = with_condition(
        workload, ConditionType.EVICTED, ConditionStatus.TRUE, eviction_reason(reason, cause), message, now
    )
    if workload.is_true(ConditionType.BLOCKED_ON_PREEMPTION_GATES):
        workload = with_condition(
            workload, ConditionType.BLOCKED_ON_PREEMPTION_GATES, ConditionStatus.FALSE, reason.value, message, now
        )
    checks = tuple(_reset(check, now) for check in workload.admission_checks)
    return replace(close_gate(workload), admission_checks=checks, unhealthy_nodes=())


def open_gate(workload: Workload, now: float) -> Workload:
    """Let a variant preempt."""
    closed = tuple(name for name in workload.closed_preemption_gates if name != VARIANT_GATE)
    return replace(workload, closed_preemption_gates=closed, gate_opened_at=now)


def close_gate(workload: Workload) -> Workload:
    """Close the gate of a variant that was evicted."""
    if workload.gate_opened_at is None:
        return workload
    closed = (*workload.closed_preemption_gates, VARIANT_GATE)
    return replace(workload, closed_preemption_gates=closed, gate_opened_at=None)


def _reset(check: AdmissionCheckState, now: float) -> AdmissionCheckState:
    if check.state is AdmissionCheckStatus.PENDING:
        return check
    return replace(
        check,
        state=AdmissionCheckStatus.PENDING,
        message=f"Reset to Pending after eviction. Previously: {check.state}",
        last_transition_time=now,
        pod_set_updates=(),
        retry_count=check.retry_count + 1 if check.state is AdmissionCheckStatus.RETRY else 0,
    )


def preempt(workload: Workload, reason: PreemptionReason, message: str, now: float) -> Workload:
    """Evict to make room for another workload."""
    workload = evict(replace(workload, last_preempted_at=now), EvictionReason.PREEMPTED, message, now)
    return with_condition(workload, ConditionType.PREEMPTED, ConditionStatus.TRUE, reason.value, message, now)


def release(workload: Workload, now: float, *, resets_pods_ready: bool = True) -> Workload:
    """Release an evicted workload whose pods have stopped: it holds no quota, and is requeued or waits."""
    evicted = workload.conditions[ConditionType.EVICTED]
    executed = workload.executed_seconds + execution_seconds(workload.conditions, now)
    workload = replace(workload, executed_seconds=executed)
    at_once = evicted.reason in _REQUEUED_AT_ONCE and not workload.single_pod
    status = ConditionStatus.TRUE if at_once else ConditionStatus.FALSE
    workload = with_condition(workload, ConditionType.REQUEUED, status, evicted.reason, evicted.message, now)
    if resets_pods_ready and ConditionType.PODS_READY in workload.conditions:
        workload = waiting_for_start(workload, now)
    return give_back(workload, PendingReason.PENDING_EVALUATION, evicted.message, now)


def requeued(workload: Workload, reason: str, message: str, now: float) -> Workload:
    """Set Requeued to True, with a reason of its own."""
    return with_condition(workload, ConditionType.REQUEUED, ConditionStatus.TRUE, reason, message, now)


def requeue(workload: Workload, reason: RequeuedReason, now: float) -> Workload:
    """Set Requeued to True: the reason that kept the workload out of its queue is gone."""
    message = _REQUEUED_MESSAGES[reason]
    return with_condition(workload, ConditionType.REQUEUED, ConditionStatus.TRUE, reason, message, now)


def give_back(workload: Workload, reason: str, message: str, now: float) -> Workload:
    return sync_admitted(pending(replace(workload, admission=None, placement=None), reason, message, now), now)


def waiting_for_start(workload: Workload, now: float) -> Workload:
    """Set PodsReady to False: its pods have not been ready since this admission."""
    reason = PodsReadyReason.WAIT_FOR_START
    return with_condition(
        workload, ConditionType.PODS_READY, ConditionStatus.FALSE, reason, PODS_READY_MESSAGES[reason], now
    )


def sync_pods_ready(workload: Workload, ready: bool, now: float) -> Workload:
    """Set PodsReady of an admitted workload according to its pods. The condition starts over once the workload is no
    longer admitted."""
    before = workload.condition(ConditionType.PODS_READY)
    reason = PodsReadyReason.WAIT_FOR_START
    if workload.is_true(ConditionType.ADMITTED):
        reason = pods_ready_reason(before.reason if before is not None else "", ready)
    status = ConditionStatus.TRUE if ready and reason in _READY_REASONS else ConditionStatus.FALSE
    if before is not None and (before.status, before.reason) == (status, reason):
        return workload
    return with_condition(workload, ConditionType.PODS_READY, status, reason, PODS_READY_MESSAGES[reason], now)


def pods_ready_reason(before: str, ready: bool) -> PodsReadyReason:
    """Return the reason of PodsReady of an admitted workload, given the reason `before` (empty at first)."""
    if ready:
        recovered = before in (PodsReadyReason.WAIT_FOR_RECOVERY, PodsReadyReason.RECOVERED)
        return PodsReadyReason.RECOVERED if recovered else PodsReadyReason.STARTED
    was_ready = before in _READY_REASONS or before == PodsReadyReason.WAIT_FOR_RECOVERY
    return PodsReadyReason.WAIT_FOR_RECOVERY if was_ready else PodsReadyReason.WAIT_FOR_START


def finish(workload: Workload, reason: str, message: str, now: float) -> Workload:
    """Set Finished, which is final."""
    if workload.is_true(ConditionType.FINISHED):
        return workload
    return with_condition(workload, ConditionType.FINISHED, ConditionStatus.TRUE, reason, message, now)


def execution_seconds(conditions: Mapping[ConditionType, Condition], now: float) -> int:
    """Whole seconds since its admission; 0 if it is not admitted."""
    admitted = conditions.get(ConditionType.ADMITTED)
    if admitted is None or admitted.status is not ConditionStatus.TRUE:
        return 0
    return max(0, int(now - admitted.last_transition_time))
