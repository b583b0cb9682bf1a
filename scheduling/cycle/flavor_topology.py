"""Topology-aware scheduling for an assignment: chooses leaves for the pods, and translates a failure into a mode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from scheduling.cycle.assignment import Assignment, Mode, PodSetResult, Refusal, RefusalKind
from scheduling.cycle.preemption import Target
from scheduling.model.admission_check import AdmissionCheckState, added_selection
from scheduling.model.topology import (
    PodSetTopologyRequest,
    TopologyAssignment,
    TopologyDomain,
    TopologyFailure,
    TopologyUsage,
)
from scheduling.model.vocabulary import PendingReason
from scheduling.state.what_if import Simulation
from scheduling.state.workload_info import PodSetRequests, TopologyCharge
from scheduling.topology.flavor import TopologyFlavor

Requests = list[tuple[str, list[PodSetTopologyRequest]]]
"""Flavor -> the pod sets to place in it, in order of first appearance."""

Room = dict[str, dict[str, int]]
"""Pod set -> node -> the maximum number of its pods on the node. Missing nodes take none; missing pod sets have no
limit.
"""


@dataclass(frozen=True, slots=True)
class Rooms:
    """Limits of pods per node in addition to the topology's own capacities: on all nodes, and on nodes that hold the
    leader."""

    pods: Room = field(default_factory=dict)
    beside_leader: Room = field(default_factory=dict)


NO_ROOMS = Rooms()


class TopologyAssigner:
    """Places the pod sets of an assignment in the topologies of their flavors."""

    def __init__(
        self,
        topologies: Mapping[str, TopologyFlavor],
        simulation: Simulation,
        ignored_resources: Callable[[], frozenset[str]],
    ) -> None:
        """Read the live usage of the topologies. `ignored_resources` are placed elsewhere (devices)."""
        self._topologies = topologies
        self._simulation = simulation
        self._ignored_resources = ignored_resources

    def place(self, assignment: Assignment) -> None:
        """Place an assignment whose quota fits. If the topology has no room, it needs preemption or never fits."""
        if assignment.mode is Mode.NO_FIT:
            return
        requests = self.requests(assignment)
        if not requests:
            return
        now: list[Refusal] = []
        if assignment.mode is Mode.FIT:
            found = self.find(requests)
            if not isinstance(found, TopologyFailure):
                self.record(assignment, requests, found)
                return
            self._downgrade(assignment, found)
            now = [self._refusal(assignment, found, PendingReason.WAITING_FOR_QUOTA)]
        found = self.find(requests, simulate_empty=True)
        if isinstance(found, TopologyFailure):
            assignment.refusals.append([self._refusal(assignment, found, PendingReason.TOPOLOGY_PLACEMENT_FAILED)])
            assignment.mode = Mode.NO_FIT
            return
        if now:
            assignment.refusals.append(now)
        names = {request.pod_set for _, members in requests for request in members}
        for result in assignment.pod_sets:
            if result.name in names:
                _needs_preemption(result)

    def place_despite_preemption(self, assignment: Assignment, targets: Sequence[Target]) -> None:
        """Choose leaves for a workload that waits for preemption, so that they are kept for it. The leaves are chosen
        as if its targets were gone or, without targets, on empty nodes."""
        if assignment.mode is not Mode.PREEMPT:
            return
        requests = self.requests(assignment)
        if not requests:
            return
        for target in targets:
            self._simulation.remove(target.info)
        found = self.find(requests, simulate_empty=not targets)
        for target in targets:
            self._simulation.restore(target.info)
        if not isinstance(found, TopologyFailure):
            self.record(assignment, requests, found)

    def can_place(self, assignment: Assignment) -> Callable[[], bool] | None:
        """Return a function that tests whether the pods have a place, given the usage when it is called; None if no
        topology is involved."""
        requests = self.requests(assignment)
        if not requests:
            return None
        return lambda: not isinstance(self.find(requests), TopologyFailure)

    def fits_when_empty(self, assignment: Assignment) -> bool:
        """Return whether the open nodes of the topologies would take the pods if they were empty."""
        requests = self.requests(assignment)
        return not requests or not isinstance(self.find(requests, simulate_empty=True), TopologyFailure)

    def fits(self, charges: Sequence[TopologyCharge]) -> bool:
        """Return whether every domain of an assignment still has room."""
        by_flavor: dict[str, list[TopologyUsage]] = {}
        for flavor, usage in charges:
            by_flavor.setdefault(flavor, []).append(usage)
        return all(self._topologies[flavor].fits(usages) for flavor, usages in by_flavor.items())

    def requests(self, assignment: Assignment, rooms: Rooms = NO_ROOMS) -> Requests:
        """Return the topology requests of the assignment's pod sets, in the order of their flavors' names."""
        if not self._topologies:
            return []
        ignored = self._ignored_resources()
        found: dict[str, list[PodSetTopologyRequest]] = {}
        for result in assignment.pod_sets:
            flavor = self._topology_flavor(result)
            if flavor is not None and result.pod_set.count > 0 and not result.delayed:
                request = topology_request(result.pod_set, ignored, assignment.checks)
                if result.kept is not None:
                    more = max(0, request.count - result.kept.count)
                    request = replace(request, count=more, kept=result.kept, leaving=result.leaving)
                if assignment.closed_nodes:
                    request = replace(request, closed_nodes=assignment.closed_nodes)
                if rooms is not NO_ROOMS:
                    beside_leader = rooms.beside_leader.get(result.name)
                    request = replace(request, room=rooms.pods.get(result.name), room_beside_leader=beside_leader)
                found.setdefault(flavor, []).append(request)
        return sorted(found.items(), key=lambda each: each[0])

    def node_names(self, result: PodSetResult, domain: TopologyDomain) -> frozenset[str]:
        """Return the nodes of a domain that the pod set was assigned."""
        flavor = self._topology_flavor(result)
        return self._topologies[flavor].node_names(domain) if flavor is not None else frozenset()

    def concerns(self, result: PodSetResult) -> bool:
        """Return whether the pod set has a flavor with a topology."""
        return result.pod_set.count > 0 and self._topology_flavor(result) is not None

    def exists(self, result: PodSetResult, topology: TopologyAssignment) -> bool:
        """Return whether all domains of an earlier assignment still exist in the topology of the pod set's flavor."""
        return all(self.node_names(result, domain) for domain in topology.domains)

    def _topology_flavor(self, result: PodSetResult) -> str | None:
        names = (choice.flavor for choice in result.flavors.values())
        return next((name for name in names if name in self._topologies), None)

    def find(
        self, requests: Requests, *, simulate_empty: bool = False
    ) -> dict[str, TopologyAssignment] | TopologyFailure:
        """Find leaves for every pod set, or return the failure of the first pod set without leaves."""
        found: dict[str, TopologyAssignment] = {}
        assumed: list[TopologyUsage] = []
        for flavor, members in requests:
            topology = self._topologies[flavor]
            kept = [
                request.usage(held)
                for request in members
                for held in (request.kept, request.leaving)
                if held is not None
            ]
            shared = [*assumed, *kept] if topology.topology.ends_with_hostname else kept
            placed = topology.find_topology_assignments(members, simulate_empty=simulate_empty, assumed=shared)
            if isinstance(placed, TopologyFailure):
                return placed
            found.update(placed)
            if topology.topology.ends_with_hostname:
                assumed += [request.usage(placed[request.pod_set]) for request in members if request.pod_set in placed]
                assumed += kept
        return found

    def record(self, assignment: Assignment, requests: Requests, found: Mapping[str, TopologyAssignment]) -> None:
        """Store the leaves and their topology usage in the assignment."""
        results = {result.name: result for result in assignment.pod_sets}
        assignment.topology_usage = []
        for flavor, members in requests:
            for request in members:
                result, gained = results[request.pod_set], found.get(request.pod_set)
                placed = self._topologies[flavor].together(request.kept, gained)
                result.topology, result.gained = placed, gained
                assignment.topology_usage.append(TopologyCharge(flavor, request.usage(placed)))

    def _refusal(self, assignment: Assignment, failure: TopologyFailure, reason: PendingReason) -> Refusal:
        result = next(result for result in assignment.pod_sets if result.name == failure.pod_set)
        flavor = self._topology_flavor(result) or ""
        return Refusal(RefusalKind.TOPOLOGY, reason, flavor, text=f"pod set {failure.pod_set}: {failure.message}")

    def _downgrade(self, assignment: Assignment, failure: TopologyFailure) -> None:
        for result in assignment.pod_sets:
            if result.name == failure.pod_set:
                _needs_preemption(result)
        assignment.mode = Mode.PREEMPT


def _needs_preemption(result: PodSetResult) -> None:
    for choice in result.flavors.values():
        choice.mode = Mode.PREEMPT
    result.fits = False


def topology_request(
    pod_set: PodSetRequests, ignored_resources: frozenset[str], checks: Sequence[AdmissionCheckState] = ()
) -> PodSetTopologyRequest:
    """Return the topology request of a pod set: the needs of one pod, and the nodes it may use. The workload's
    admission `checks` may add to both."""
    selector, tolerations = added_selection(checks, pod_set.name) if checks else ({}, ())
    template = pod_set.pod_set.template
    requests = pod_set.node_requests
    if ignored_resources and not ignored_resources.isdisjoint(requests):
        requests = {name: amount for name, amount in requests.items() if name not in ignored_resources}
    return PodSetTopologyRequest(
        pod_set=pod_set.name,
        count=pod_set.count,
        requests=requests,
        topology=pod_set.pod_set.topology_request,
        tolerations=(*template.tolerations, *tolerations),
        node_selector={**template.node_selector, **selector},
        affinity=template.affinity,
    )
