"""The nodes that reservations close to a workload, and for how long.

The latest end of a workload decides (`scheduling.reservations.reserved_nodes`). A workload that waits for admission
checks starts at an unknown time: it counts as one without a limit.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf

from scheduling.model.selectors import matches_node_selector
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType
from scheduling.reservations.reserved_nodes import NO_NODES, Claimant, ReservedWindow
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.known_objects import used_nodes
from scheduling.state.state import State
from scheduling.state.workload_info import SchedulingHash, WorkloadInfo


def closed_nodes(state: State, info: WorkloadInfo) -> frozenset[str]:
    """Return the nodes that reservations close to a workload now, or at the moment of a planned start."""
    if not state.reservations:
        return NO_NODES
    now = state.reservations.time(state.now)
    return state.reservations.closed_to(_claimant(state, info, now), now)


def closing_windows(state: State, info: WorkloadInfo) -> list[ReservedWindow]:
    """Return the windows of reservations that close nodes to a workload now, ordered by their ends."""
    return state.reservations.closing(_claimant(state, info, state.now), state.now) if state.reservations else []


def closing_windows_in(state: State, info: WorkloadInfo, flavors: Iterable[str]) -> list[ReservedWindow]:
    """Return those of the closing windows that close a node of one of these flavors; all of them if none does."""
    windows = closing_windows(state, info)
    labels = [state.flavors[name].node_labels for name in dict.fromkeys(flavors) if name in state.flavors]
    nodes = state.fleet.nodes

    def concerns(window: ReservedWindow) -> bool:
        members = (nodes[name] for name in state.reservations.nodes_of(window.reservation) if name in nodes)
        return any(matches_node_selector(each, node.selectable_labels) for node in members for each in labels)

    return list(filter(concerns, windows)) or windows


def spans_of_closing(state: State, info: WorkloadInfo) -> list[tuple[float, float]]:
    """Return the spans of time, from now on, during which the set of closed nodes does not change for a waiting
    workload. Each span is (start, end), the end excluded. If no reservation bars the workload, there is one span
    without an end."""
    if not state.reservations:
        return [(state.now, inf)]
    left = None if waits_for_checks(state, info) else info.workload.time_left_seconds
    return state.reservations.spans(_claimant(state, info, state.now), left, state.now)


def outstays(state: State, info: WorkloadInfo, replaced: WorkloadInfo) -> bool:
    """Return whether a slice of an elastic job would keep a node that is closed to it for longer than the slice that it
    replaces: its pods stay where they are, but its time limit starts over."""
    if not state.reservations:
        return False
    now = state.reservations.time(state.now)
    claimant, before = _claimant(state, info, now), _claimant(state, replaced, now)
    if _latest_end(claimant) <= _latest_end(before):
        return False
    return not state.reservations.closed_to(claimant, now).isdisjoint(used_nodes(replaced))


def _latest_end(claimant: Claimant) -> float:
    return inf if claimant.ends_at is None else claimant.ends_at


def window_before_start(state: State, info: WorkloadInfo, now: float) -> ReservedWindow | None:
    """Return the first window that closes a node of a workload that holds quota but is not admitted yet; None if there
    is none. A slice of an elastic job that was never evicted has taken over running pods: it is checked when it gets
    quota."""
    if not state.reservations or info.admitted:
        return None
    if info.workload.replaces is not None and info.workload.condition(ConditionType.EVICTED) is None:
        return None
    nodes = used_nodes(info)
    windows = state.reservations.closing(_claimant(state, info, now), now) if nodes else []
    members = state.reservations.nodes_of
    return next((window for window in windows if not nodes.isdisjoint(members(window.reservation))), None)


def wake_after_window(state: State, info: WorkloadInfo, cq: ClusterQueueState) -> None:
    """Schedule the next attempt of a refused workload for the end of the first window that closes nodes to it."""
    for window in closing_windows(state, info)[:1]:
        state.waking.wake_queue_at(cq.name, window.ends_at)


def equal_hashes(state: State, info: WorkloadInfo, cq: ClusterQueueState) -> list[SchedulingHash]:
    """Return the scheduling hashes that a refusal of this workload also refuses, its own first.

    The workloads with these hashes differ only in their remaining run time, and the same windows close nodes to all of
    them now. Later, closer to a start, they may differ. Planned starts consider the remaining time itself.
    """
    own = info.scheduling_hash
    if not info.barred_by or cq.spec.backfill is not None:
        return [own]
    closing = _count_closing(state, info)
    others = (first for first in cq.queue.active_firsts() if first.scheduling_hash.differs_in_time(own))
    return [own, *dict.fromkeys(first.scheduling_hash for first in others if _count_closing(state, first) == closing)]


def _count_closing(state: State, info: WorkloadInfo) -> int:
    return state.reservations.count_closing(_claimant(state, info, state.now), state.now)


def _claimant(state: State, info: WorkloadInfo, now: float) -> Claimant:
    workload = info.current()
    left = workload.time_left_seconds
    if left is None or waits_for_checks(state, info):
        ends_at = None
    elif workload.is_true(ConditionType.ADMITTED):
        ends_at = workload.conditions[ConditionType.ADMITTED].last_transition_time + left
    else:
        ends_at = now + left
    return Claimant.of(workload, info.cluster_queue, ends_at)


def waits_for_checks(state: State, info: WorkloadInfo) -> bool:
    """Return whether a workload may have to wait for admission checks before it starts."""
    cq = state.cluster_queues.get(info.cluster_queue)
    if info.admitted or cq is None or not cq.spec.admission_checks:
        return False
    checks = info.workload.admission_checks
    return not checks or any(check.state is not AdmissionCheckStatus.READY for check in checks)
