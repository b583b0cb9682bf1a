"""Verifies moves: makes them on the live state, tries to admit the workload, and undoes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from scheduling.advice.move_bounds import MoveBounds
from scheduling.cycle.assignment import Mode
from scheduling.cycle.nomination import Entry
from scheduling.devices.search.moves import Move, MovePlan
from scheduling.model.placement import Placement
from scheduling.model.topology import TopologyDomain, TopologyUsage
from scheduling.state.admission_state import topology_flavor
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo

Nominate = Callable[[WorkloadInfo, ClusterQueueState], Entry]
"""The assignment that a pending workload would get if a cycle took it now."""


class MoveCheck:
    """Tries plans on a state and leaves the state unchanged."""

    def __init__(self, state: State, nominate: Nominate, bounds: MoveBounds) -> None:
        """`bounds` must use the same state."""
        self._state = state
        self._nominate = nominate
        self._bounds = bounds
        self._undo: list[Callable[[], object]] = []

    def confirmed(self, info: WorkloadInfo, plan: MovePlan) -> MovePlan | None:
        """Return the plan with the placement that the scheduler would choose after the moves; None if the workload
        would still not be admitted."""
        self._undo = []
        try:
            if not all(self._shift_topology(move) for move in plan.moves):
                return None
            self._shift_devices(plan.moves)
            return self._admitted(info, plan)
        finally:
            for step in reversed(self._undo):
                step()

    def _admitted(self, info: WorkloadInfo, plan: MovePlan) -> MovePlan | None:
        entry = self._nominate(info, self._state.cluster_queues[info.cluster_queue])
        placement = entry.assignment.placement
        if entry.refused or entry.assignment.mode is not Mode.FIT or placement is None:
            return None
        return MovePlan(plan.moves, placement)

    def _shift_devices(self, moves: Iterable[Move]) -> None:
        fleet = self._state.fleet
        for move in moves:
            before = fleet.release(move.workload_key)
            pods = tuple(move.target if pod == move.source else pod for pod in before.pods)
            fleet.reserve(move.workload_key, Placement(pods))
            self._undo.append(partial(self._hold, move.workload_key, before))

    def _hold(self, key: str, placement: Placement) -> None:
        self._state.fleet.release(key)
        self._state.fleet.reserve(key, placement)

    def _shift_topology(self, move: Move) -> bool:
        """Charge the leaf that the pod moves to instead of its old one; False if there is no room."""
        info = self._state.workloads[move.workload_key]
        admission = info.workload.admission
        held = admission.pod_set_assignments if admission is not None else ()
        assignment = next((each for each in held if each.name == move.source.pod_set), None)
        if assignment is None or assignment.topology_assignment is None:
            return True
        flavor = topology_flavor(assignment, self._state.topology_flavors)
        if flavor is None or flavor not in self._state.topology_flavors:
            return False
        old, new = self._bounds.leaf_of(flavor, move.source.node), self._bounds.leaf_of(flavor, move.target.node)
        if old is None or new is None or old == new:
            return old == new
        pod_set = next(each for each in info.pod_sets if each.name == move.source.pod_set)
        ignored = self._state.device_resources()
        requests = {name: amount for name, amount in pod_set.node_requests.items() if name not in ignored}
        left, taken = (TopologyUsage(requests, (TopologyDomain(leaf, 1),)) for leaf in (old, new))
        topologies = self._state.topology_flavors
        topologies.remove_usage(flavor, left)
        self._undo.append(lambda: topologies.add_usage(flavor, left))
        if not topologies[flavor].fits([taken]):
            return False
        topologies.add_usage(flavor, taken)
        self._undo.append(lambda: topologies.remove_usage(flavor, taken))
        return True
