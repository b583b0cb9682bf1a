"""Refuses a workload for reservations: without them it would have a place, so that no end of another workload helps as
surely as the end of a window.

The searches see reserved nodes as closed, and then say that devices, nodes or topology domains are short. This module
asks them again without the reservations, only for workloads to which some node is closed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Final

from scheduling.cycle.assignment import Assignment, Refusal, RefusalKind
from scheduling.cycle.closed_nodes import closed_nodes, closing_windows_in, waits_for_checks
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import PendingReason
from scheduling.reservations.reserved_nodes import ReservedWindow
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo

_OF_PLACES: Final = frozenset({RefusalKind.TOPOLOGY, RefusalKind.DEVICES, RefusalKind.NODES, RefusalKind.RESERVATION})
_MAX_NAMED: Final = 3


def is_held_back(state: State, fits: Callable[[], bool], fits_empty: Callable[[], bool]) -> bool:
    """Return whether reservations are the reason why a workload has no place: it would fit now without them, or, on an
    empty cluster, only closed nodes would take it. `fits` and `fits_empty` test with the nodes that are closed now."""
    with state.reservations.lifted():
        if fits():
            return True
    if fits_empty():
        return False
    with state.reservations.lifted():
        return fits_empty()


def lacks_place(assignment: Assignment) -> bool:
    """Return whether an assignment is refused for nodes, devices or topology domains."""
    return any(refusal.kind in _OF_PLACES for group in assignment.refusals for refusal in group)


def refuse_for_reservation(state: State, info: WorkloadInfo, assignment: Assignment) -> None:
    """Replace the refusals of an assignment that has no place. The mode is kept, because victims on open nodes may
    still help."""
    kept = [[each for each in group if each.kind not in _OF_PLACES] for group in assignment.refusals]
    assignment.refusals = [*(group for group in kept if group), [_refusal(state, info, assignment)]]


def refuse_slice(state: State, info: WorkloadInfo, assignment: Assignment) -> None:
    """Refuse a slice of an elastic job that would keep reserved nodes for too long: no victim helps."""
    assignment.closed_nodes = closed_nodes(state, info)
    assignment.refuse(_refusal(state, info, assignment))


def _refusal(state: State, info: WorkloadInfo, assignment: Assignment) -> Refusal:
    flavors = [choice.flavor for result in assignment.pod_sets for choice in result.flavors.values()]
    text = describe_windows(closing_windows_in(state, info, flavors))
    return Refusal(RefusalKind.RESERVATION, PendingReason.WAITING_FOR_RESERVATION, text=text)


def describe_windows(windows: Iterable[ReservedWindow]) -> str:
    """Name the reservations that keep nodes free, with their windows."""
    found = list(windows)
    named = [
        f'"{window.reservation}" from {_moment(window.starts_at)} to {_moment(window.ends_at)}'
        for window in found[:_MAX_NAMED]
    ]
    more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
    noun = "reservation" if len(found) == 1 else "reservations"
    return f"needs nodes that are kept free by the {noun} {', '.join(named)}{more}"


def limit_to_start(
    state: State, info: WorkloadInfo, windows: Iterable[ReservedWindow], fits: Callable[[], bool]
) -> int | None:
    """Return the longest declared limit, in seconds, with which a workload that waits for these windows would start
    now; None if none would let it. `fits` asks with the present closed nodes."""
    ahead = [window for window in windows if window.starts_at > state.now]
    if not ahead or waits_for_checks(state, info):
        return None
    with state.reservations.lifted({window.reservation for window in ahead}):
        if not fits():
            return None
    left = math.floor(min(window.starts_at for window in ahead) - state.now)
    return left + info.workload.executed_seconds if left > 0 else None


def _moment(at: float) -> str:
    return rfc3339(at, whole_seconds=True)
