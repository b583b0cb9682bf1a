"""Limits by user and group: refuses a workload with which its user or group would hold more than a ClusterQueue or
Cohort allows.

The rule is YuniKorn's: a limit counts what the workloads of the user or the group hold below the queue that states it,
and no workload is preempted so that another one stays within a limit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from scheduling.cycle.assignment import Refusal, RefusalKind
from scheduling.model.cohort import ANYONE
from scheduling.model.quantity import amount_in_words
from scheduling.model.vocabulary import PendingReason
from scheduling.policies.headroom import Excess, first_exceeded
from scheduling.quota.cells import Cell
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.shares.user_usage import group_in
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo


def refuse_user(state: State, info: WorkloadInfo, cq: ClusterQueueState, usage: Mapping[Cell, int]) -> Refusal | None:
    """Return the refusal of a workload with this usage, or None if no limit is exceeded.

    The slice of an elastic job that the workload replaces does not count, nor do other variants of the same parent.
    """
    if not cq.user_limits:
        return None
    request: dict[str, float] = {}
    for cell, amount in usage.items():
        request[cell.key.resource] = request.get(cell.key.resource, 0) + amount
    path = state.user_usage.path(info, cq, list(_replaced(state, info, cq)))
    group = group_in(cq, info.workload.user_groups)
    excess = first_exceeded(path, info.workload.submitted_by, request, group)
    if excess is None:
        return None
    never = bool(excess.resource) and excess.wanted > excess.limit
    reason = PendingReason.EXCEEDS_MAX_QUOTA if never else PendingReason.WAITING_FOR_USER_LIMIT
    return Refusal(RefusalKind.USER_LIMIT, reason, text=_describe(excess, info.workload.submitted_by))


def _replaced(state: State, info: WorkloadInfo, cq: ClusterQueueState) -> Iterator[WorkloadInfo]:
    replaced, parent = state.replaced_slice(info, cq), info.workload.parent
    if replaced is not None:
        yield replaced
    if parent:
        siblings = (other for other in cq.workloads.values() if other.workload.parent == parent)
        yield from (other for other in siblings if other is not replaced)


def _describe(excess: Excess, user: str) -> str:
    whose = _group(excess.group) if excess.group else f"user {user}" if user else "users that are not known"
    if not excess.resource:
        held, most = f"{int(excess.held):,}", f"{int(excess.limit):,}"
        return f"workloads of {whose} in {excess.level}: {held} with quota, at most {most} allowed"
    held, wanted, most = (
        amount_in_words(excess.resource, int(amount)) for amount in (excess.held, excess.wanted, excess.limit)
    )
    return f"{excess.resource} of {whose} in {excess.level}: {held} held, {wanted} requested, at most {most} allowed"


def _group(name: str) -> str:
    return "all other groups" if name == ANYONE else f"group {name}"
