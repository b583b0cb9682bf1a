"""Places an assignment in its topology and on devices together.

The topology ignores devices. It receives an upper bound of pods per node, and the device search then checks the chosen
leaves. A leaf that turns out too small is capped, and the topology chooses leaves again.
"""

from __future__ import annotations

from collections.abc import Callable

from scheduling.cycle.assignment import Assignment, Mode, PodSetResult
from scheduling.cycle.flavor_devices import DeviceAssigner, NoPlace
from scheduling.cycle.flavor_topology import NO_ROOMS, Rooms, TopologyAssigner
from scheduling.cycle.reservation_refusals import lacks_place
from scheduling.devices.search.answers import Unplaced
from scheduling.model.placement import Placement
from scheduling.model.topology import TopologyFailure
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.workload_info import WorkloadInfo

ATTEMPTS = 16
"""How many times leaves are chosen before the workload counts as not placeable now."""


class PlacementAssigner:
    """Places the pod sets of an assignment whose quota fits."""

    def __init__(self, topology: TopologyAssigner, devices: DeviceAssigner) -> None:
        """`topology` and `devices` must share the same live usage."""
        self._topology = topology
        self._devices = devices

    def place(
        self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment, *, explained: bool = True
    ) -> None:
        """Place an assignment whose quota fits, on nodes that no reservation closes to the workload.

        If other workloads occupy the place, it needs preemption (for devices only if the ClusterQueue allows it). If
        even empty nodes cannot hold it, it does not fit. `explained`: find out whether reservations are the reason.
        """
        assignment.closed_nodes = self._devices.closed_nodes(info)
        had_quota = assignment.mode is not Mode.NO_FIT
        self._place(info, cq, assignment)
        doubtful = explained and had_quota and bool(assignment.closed_nodes) and lacks_place(assignment)
        if doubtful and self._is_held_back(info, assignment):
            self._devices.refuse_for_reservation(info, assignment)

    def _is_held_back(self, info: WorkloadInfo, assignment: Assignment) -> bool:
        def fits() -> bool:
            assignment.closed_nodes = self._devices.closed_nodes(info)
            test = self.can_place(info, assignment)
            return test is None or test()

        def fits_empty() -> bool:
            assignment.closed_nodes = self._devices.closed_nodes(info)
            return self._topology.fits_when_empty(assignment) and self._devices.fits_when_empty(info, assignment)

        try:
            return self._devices.is_held_back(fits, fits_empty)
        finally:
            assignment.closed_nodes = self._devices.closed_nodes(info)

    def _place(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> None:
        self._delay(info, cq, assignment)
        self._topology.place(assignment)
        if assignment.mode is not Mode.FIT or assignment.delayed or not self._devices.concerns(info):
            return
        found = self._find(info, assignment)
        if isinstance(found, Placement):
            assignment.placement = self._devices.kept_of(info, found)
        elif isinstance(found, TopologyFailure):
            text = f"pod set {found.pod_set}: {found.message} with free devices"
            self._devices.refuse(cq, assignment, NoPlace(text))
        else:
            self._devices.refuse(cq, assignment, self._devices.refusal(info, assignment))

    def _delay(self, info: WorkloadInfo, cq: ClusterQueueState, assignment: Assignment) -> None:
        """Delay pod sets that wait for admission checks to the second pass. If the workload requests devices, the whole
        gang is delayed.
        """
        if not cq.spec.admission_checks:
            return
        waiting = [
            result
            for result in assignment.pod_sets
            if (self._topology.concerns(result) or self._devices.concerns_pod_set(result.pod_set))
            and any(self._devices.waits_for_checks(info, cq, choice.flavor) for choice in result.flavors.values())
        ]
        gang = bool(waiting) and self._devices.concerns(info)
        for result in assignment.pod_sets:
            result.delayed = result in waiting or (gang and self._topology.concerns(result))
        assignment.delayed = bool(waiting)

    def can_place(self, info: WorkloadInfo, assignment: Assignment) -> Callable[[], bool] | None:
        """Return a function that tests whether the pods have a place, given the usage when it is called; None if
        neither topology nor devices matter."""
        topology, devices = self._topology.can_place(assignment), self._devices.can_place(info, assignment)
        if topology is None or devices is None:
            return topology or devices
        return lambda: topology() and self._finds_both(info, assignment)

    def _finds_both(self, info: WorkloadInfo, assignment: Assignment) -> bool:
        found = self._find(info, assignment)
        for result in assignment.pod_sets:
            result.topology = result.gained = None
        assignment.topology_usage = []
        return isinstance(found, Placement)

    def _find(self, info: WorkloadInfo, assignment: Assignment) -> Placement | TopologyFailure | Unplaced:
        """Return a place for every pod and record its leaves in the assignment; or the failure: of the topology if it
        has no leaves with free devices, otherwise of the last leaves that were tried.

        Limits for pods without devices are computed only if leaves chosen without them turn out too small. That is
        rare, and the limits prevent the use of the cached leaf capacities.
        """
        knows_all = not self._devices.places_by_room
        rooms = Rooms(self._devices.device_room(assignment)) if self._topology.requests(assignment) else NO_ROOMS
        unplaced: Unplaced | None = None
        for _ in range(ATTEMPTS):
            requests = self._topology.requests(assignment, rooms)
            if requests:
                leaves = self._topology.find(requests)
                if isinstance(leaves, TopologyFailure):
                    return unplaced or leaves
                self._topology.record(assignment, requests, leaves)
            found = self._devices.find(info, assignment)
            if isinstance(found, Placement):
                return found
            unplaced = found
            if not requests:
                break
            if not knows_all:
                rooms, knows_all = Rooms(self._devices.room(info, assignment)), True
            elif not self._cap(rooms, assignment, found):
                break
        assert unplaced is not None  # each attempt searches devices once its domains are known
        return unplaced

    def _cap(self, rooms: Rooms, assignment: Assignment, refused: Unplaced) -> bool:
        """Cap the leaf of the refused pod at the number of pods that it accepted; with the leader only if the leader
        is in this leaf. Return False if the pod is in no leaf."""
        result = next(result for result in assignment.pod_sets if result.name == refused.pod_set)
        first = result.kept.count if result.kept else 0
        for domain in result.gained.domains if result.gained else ():
            if first <= refused.replica < first + domain.count:
                leads = domain.values in _leader_domains(assignment, result)
                limited = rooms.beside_leader if leads else rooms.pods
                room = limited.setdefault(result.name, self._devices.unlimited_room())
                for name in sorted(self._topology.node_names(result, domain)):
                    room[name] = refused.replica - first
                    first = refused.replica
                return True
            first += domain.count
        return False


def _leader_domains(assignment: Assignment, workers: PodSetResult) -> set[tuple[str, ...]]:
    """Return the domains of the pod set group's leader; empty for the leader itself."""
    request = workers.pod_set.pod_set.topology_request
    return {
        domain.values
        for other in assignment.pod_sets
        if request is not None and request.group and other is not workers and other.topology is not None
        if (asked := other.pod_set.pod_set.topology_request) is not None and asked.group == request.group
        if other.pod_set.count <= workers.pod_set.count
        for domain in other.topology.domains
    }
