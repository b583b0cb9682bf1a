"""The decisions of a scheduler about one workload, read from the changes of the workload."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from scheduling.model.vocabulary import ConditionType, EvictionReason
from scheduling.model.workload import PodSetAssignment, Workload

_NOT_EVALUATED: Final = "PendingEvaluation"
"""Kueue's reason of QuotaReserved from an eviction to the next evaluation."""


class Act(StrEnum):
    RESERVE = "Reserve"
    PREEMPT = "Preempt"
    WAIT = "Wait"


@dataclass(frozen=True, slots=True)
class Choice:
    """The decision of one scheduler about one workload, and its reason."""

    act: Act
    cluster_queue: str = ""
    flavors: tuple[tuple[str, int, tuple[tuple[str, str], ...]], ...] = ()
    """(pod set, count, (resource, flavor) ...) of a reservation."""
    reason: str = ""
    message: str = ""

    @property
    def what(self) -> tuple[object, ...]:
        """Return the decision without its message."""
        return self.act, self.cluster_queue, self.flavors


WAITING: Final = Choice(Act.WAIT, message="Not evaluated yet.")


def counts_for(workload: Workload) -> tuple[object, ...]:
    """Return the fields of a workload that affect decisions about other workloads: the quota it holds or requests,
    and its queue."""
    asked = workload.queue_name, workload.pod_sets, workload.priority, workload.active, workload.requeue_state
    held = workload.admission, workload.holds_quota, workload.is_true(ConditionType.EVICTED)
    is_complete = not workload.is_true(ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    return (*asked, *held, is_complete, workload.reclaimable_pods)


def says_the_same(was: Workload, is_now: Workload) -> bool:
    """Return whether only the reason for waiting changed. Reasons are worded by each scheduler, so they are not
    compared."""
    if was.holds_quota or is_now.holds_quota:
        return was == is_now
    return _without_reasons(was) == _without_reasons(is_now)


def _without_reasons(workload: Workload) -> Workload:
    kept = dict(workload.conditions)
    kept.pop(ConditionType.QUOTA_RESERVED, None)
    return replace(workload, conditions=kept)


def their_choice(was: Workload | None, now_is: Workload | None) -> Choice | None:
    """Return the other scheduler's decision about a workload; None if it made none or the workload has finished."""
    if now_is is None:
        return None
    condition = now_is.condition(ConditionType.QUOTA_RESERVED)
    if now_is.holds_quota and now_is.admission is not None and not now_is.is_true(ConditionType.EVICTED):
        if was is not None and was.holds_quota and _reserved_at(was) == _reserved_at(now_is):
            return None
        reason, message = (str(condition.reason), condition.message) if condition else ("", "")
        return reservation(now_is.admission.cluster_queue, now_is.admission.pod_set_assignments, reason, message)
    evicted = now_is.condition(ConditionType.EVICTED)
    held = was is not None and was.holds_quota and not was.is_true(ConditionType.EVICTED)
    if held and evicted is not None and evicted.reason == EvictionReason.PREEMPTED:
        preempted = now_is.condition(ConditionType.PREEMPTED)
        queue = was.admission.cluster_queue if was is not None and was.admission else ""
        return Choice(Act.PREEMPT, queue, (), str(preempted.reason) if preempted else "", evicted.message)
    return None


def refusal_of(workload: Workload | None) -> str:
    """Return why a workload waits, as the other scheduler wrote it; empty if it did not evaluate the workload since the
    last eviction."""
    condition = workload.condition(ConditionType.QUOTA_RESERVED) if workload is not None else None
    if workload is None or condition is None or workload.holds_quota or condition.reason == _NOT_EVALUATED:
        return ""
    return f"{condition.reason}: {condition.message}"


def _reserved_at(workload: Workload) -> float:
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return condition.last_transition_time if condition else 0.0


def as_waiting(workload: Workload) -> Workload:
    """Return a workload that got quota as it was while it waited."""
    return replace(workload, admission=None, placement=None, conditions={}, admission_checks=())


def reservation(queue: str, pod_sets: tuple[PodSetAssignment, ...], reason: str, message: str) -> Choice:
    flavors = tuple(sorted((each.name, each.count, tuple(sorted(each.flavors.items()))) for each in pod_sets))
    return Choice(Act.RESERVE, queue, flavors, reason, message)


def left_as_it_is(workload: Workload) -> Choice:
    """Return the choice that follows if a scheduler made no decision: the workload stays in its state."""
    if workload.holds_quota and workload.admission is not None:
        given = workload.admission.pod_set_assignments
        return reservation(workload.admission.cluster_queue, given, "", "Keeps its quota.")
    condition = workload.condition(ConditionType.QUOTA_RESERVED)
    return Choice(Act.WAIT, "", (), str(condition.reason), condition.message) if condition else WAITING
