"""The nodes that reservations close to a workload, and for how long.

The latest end of a workload decides (`scheduling.reservations.reserved_nodes`). A workload that waits for admission
checks starts at an unknown time: it counts as one without a limit.
"""

from __future__ import annotations

from math import inf

from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType
from scheduling.reservations.reserved_nodes import NO_NODES, Claimant, ReservedWindow
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo


def closed_nodes(state: State, info: WorkloadInfo) -> frozenset[str]:
    """Return the nodes that reservations close to a workload now, or at the moment of a planned start."""
    if not state.reservations:
        return NO_NODES
    now = state.reservations.time(state.now)
    return state.reservations.closed_to(_claimant(state, info, now), now)


def closing_windows(state: State, info: WorkloadInfo) -> list[ReservedWindow]:
    """Return the windows of reservations that close nodes to a workload now, in order of their ends."""
    return state.reservations.closing(_claimant(state, info, state.now), state.now) if state.reservations else []


def spans_of_closing(state: State, info: WorkloadInfo) -> list[tuple[float, float]]:
    """Return the spans of time from now in each of which the same nodes are closed to a waiting workload: start and
    end, the end excluded. One without an end if no reservation bars it."""
    if not state.reservations:
        return [(state.now, inf)]
    left = None if _waits_for_checks(state, info) else info.workload.time_left_seconds
    return state.reservations.spans(_claimant(state, info, state.now), left, state.now)


def wake_after_window(state: State, info: WorkloadInfo, cq: ClusterQueueState) -> None:
    """Schedule the next attempt of a refused workload for the end of the first window that closes nodes to it."""
    for window in closing_windows(state, info)[:1]:
        state.wake_queue_at(cq.name, window.ends_at)


def _claimant(state: State, info: WorkloadInfo, now: float) -> Claimant:
    workload = info.current()
    left = workload.time_left_seconds
    if left is None or _waits_for_checks(state, info):
        ends_at = None
    elif workload.is_true(ConditionType.ADMITTED):
        ends_at = workload.conditions[ConditionType.ADMITTED].last_transition_time + left
    else:
        ends_at = now + left
    return Claimant.of(workload, info.cluster_queue, ends_at)


def _waits_for_checks(state: State, info: WorkloadInfo) -> bool:
    cq = state.cluster_queues.get(info.cluster_queue)
    if info.admitted or cq is None or not cq.spec.admission_checks:
        return False
    checks = info.workload.admission_checks
    return not checks or any(check.state is not AdmissionCheckStatus.READY for check in checks)
