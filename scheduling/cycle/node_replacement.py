"""The second pass for failed nodes: admitted workloads whose topology assignment names one.

The pods of the failed node get another leaf, and other devices, at once, before the heads of the queues are looked at;
quota does not change and nobody is preempted for them. A workload that finds none, or that lost a second node, is
evicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduling.cycle.flavor_devices import DeviceAssigner, describe
from scheduling.cycle.flavor_topology import topology_request
from scheduling.lifecycle.conditions import evict
from scheduling.model.decisions import Evict, ReplaceNode
from scheduling.model.placement import Placement, PlacementRefusal, PodSetToPlace
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import TopologyAssignment, TopologyDomain, TopologyFailure
from scheduling.model.vocabulary import EvictionReason
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.state.admission_state import topology_charges, topology_flavor
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo
from scheduling.topology.replacement import replace_failed_node
from scheduling.topology.usage import LeafUsage


def failed_hosts(workload: Workload) -> tuple[str, ...]:
    """The unhealthy nodes that the workload's topology assignments name, or where it holds devices, in the order in
    which they failed."""
    if workload.admission is None:
        return ()
    holding = {pod.node for pod in workload.placement.pods if pod.slices} if workload.placement is not None else set()
    hosts = holding | {
        domain.values[-1]
        for assignment in workload.admission.pod_set_assignments
        if assignment.topology_assignment is not None and assignment.topology_assignment.levels[-1] == HOSTNAME_LABEL
        for domain in assignment.topology_assignment.domains
    }
    return tuple(dict.fromkeys(name for name in workload.unhealthy_nodes if name in hosts))


class NodeReplacer:
    """Decides on the workloads of the second pass."""

    def __init__(self, state: State, devices: DeviceAssigner) -> None:
        """Of this state."""
        self._state = state
        self._devices = devices
        self.replacements: list[ReplaceNode] = []
        self.evictions: list[Evict] = []

    @property
    def decided(self) -> bool:
        """Whether anything was decided."""
        return bool(self.replacements or self.evictions)

    def run(self) -> None:
        """Decide on all of them, in queue order; each is decided on once."""
        waiting = [found.info for found in self._state.second_pass.values() if found.info.admitted]
        for info in sorted(waiting, key=lambda info: info.order):
            del self._state.second_pass[info.key]
            hosts = failed_hosts(info.current())
            if info.evicted or not hosts:
                continue
            self._state.journal.note_once(info)
            if len(hosts) > 1:
                self._evict(info, f"the nodes {', '.join(hosts)} failed")
            else:
                self._replace(info, hosts[0])

    def _replace(self, info: WorkloadInfo, host: str) -> None:
        found = self._reassign(info, host)
        if isinstance(found, TopologyFailure):
            self._evict(info, f"no replacement for the failed node {host}: {found.message}")
            return
        placement = self._place_anew(info, found, host)
        if isinstance(placement, PlacementRefusal):
            self._evict(info, f"no devices to replace those of the failed node {host}: {describe(placement).text}")
            return
        self._state.move(info, found, topology_charges(info, found, self._state.topology_flavors))
        if placement is not info.placement:
            self._exchange(info, placement)
        info.change(lambda workload: replace(workload, admission=found, placement=placement, unhealthy_nodes=()))
        message = f"the pods of the failed node {host} have another place"
        self.replacements.append(
            ReplaceNode(info.key, found.cluster_queue, host, found.pod_set_assignments, self._state.cycle, message)
        )

    def _reassign(self, info: WorkloadInfo, host: str) -> Admission | TopologyFailure:
        """The admission without the host; each pod set sees where the ones before it moved to."""
        assert info.admission is not None  # it holds quota
        pod_sets = {pod_set.name: pod_set for pod_set in info.pod_sets}
        moved = LeafUsage()
        assignments: list[PodSetAssignment] = []
        for assignment in info.admission.pod_set_assignments:
            before = assignment.topology_assignment
            if before is None or all(domain.values != (host,) for domain in before.domains):
                assignments.append(assignment)
                continue
            name = topology_flavor(assignment, self._state.topology_flavors)
            flavor = self._state.topology_flavors.get(name or "")
            if flavor is None:
                return TopologyFailure(assignment.name, f"flavor {name} has no topology any more")
            pod_set = pod_sets[assignment.name]
            checks = info.workload.admission_checks
            request = topology_request(pod_set, self._state.device_resources(), checks)
            request = replace(request, room=self._devices.room_for(pod_set))
            after = replace_failed_node(flavor, request, before, host, moved)
            if isinstance(after, TopologyFailure):
                return after
            moved.add(request.usage(_gained(before, after)))
            assignments.append(replace(assignment, topology_assignment=after))
        return Admission(info.admission.cluster_queue, tuple(assignments))

    def _place_anew(self, info: WorkloadInfo, admission: Admission, host: str) -> Placement | PlacementRefusal | None:
        """The placement with the pods of the host on other nodes of their domains; each keeps its number."""
        if info.placement is None or all(pod.node != host for pod in info.placement.pods):
            return info.placement
        assert info.admission is not None  # it holds quota
        requests = {pod_set.name: pod_set for pod_set in info.pod_sets}
        wanted: list[PodSetToPlace] = []
        for before, after in zip(info.admission.pod_set_assignments, admission.pod_set_assignments, strict=True):
            lost = [pod.replica for pod in info.placement.pods_of(before.name) if pod.node == host]
            pod_set, flavors = requests[before.name], after.flavors.values()
            for count, nodes in self._shares(info, before, after, lost):
                allowed = None if nodes is None else nodes - {host}
                wanted.append(self._devices.to_place(info, pod_set, flavors, count, allowed))
        found = self._state.fleet.place(wanted, instead_of=[pod for pod in info.placement.pods if pod.node == host])
        if isinstance(found, PlacementRefusal):
            return found
        free = {name: iter([pod for pod in found.pods if pod.pod_set == name]) for name in requests}
        return Placement(
            tuple(
                replace(next(free[pod.pod_set]), replica=pod.replica) if pod.node == host else pod
                for pod in info.placement.pods
            )
        )

    def _shares(
        self, info: WorkloadInfo, before: PodSetAssignment, after: PodSetAssignment, lost: Sequence[int]
    ) -> list[tuple[int, frozenset[str] | None]]:
        """How many of the lost pods, given their numbers, go to which nodes: to the domains that the assignment gained,
        or, where it stayed (its leaves are wider than a node), to those that they were in."""
        assert info.placement is not None  # pods of it were lost
        old, new = before.topology_assignment, after.topology_assignment
        flavor = self._state.topology_flavors.get(topology_flavor(after, self._state.topology_flavors) or "")
        if old is None or new is None or flavor is None:
            return [(len(lost), None)] if lost else []
        if old != new:
            return [(domain.count, flavor.node_names(domain)) for domain in _gained(old, new).domains]
        staying = [pod.node for pod in info.placement.pods_of(before.name) if pod.replica not in lost]
        shares: list[tuple[int, frozenset[str] | None]] = []
        for domain in old.domains:
            names = flavor.node_names(domain)
            count = domain.count - sum(node in names for node in staying)
            if count:
                shares.append((count, names))
        return shares

    def _exchange(self, info: WorkloadInfo, placement: Placement | None) -> None:
        """Hold another placement; undone with the batch."""
        before = self._state.fleet.release(info.key)
        if placement is not None:
            self._state.fleet.reserve(info.key, placement)
        self._state.journal.note(self._restore_placement, info.key, before)
        info.placement = placement

    def _restore_placement(self, key: str, placement: Placement) -> None:
        self._state.fleet.release(key)
        self._state.fleet.reserve(key, placement)

    def _evict(self, info: WorkloadInfo, message: str) -> None:
        now = self._state.now
        info.evicted = True
        self._state.rank_changed(info)
        info.change(lambda workload: evict(workload, EvictionReason.NODE_FAILURES, message, now))
        self.evictions.append(
            Evict(info.key, info.cluster_queue, EvictionReason.NODE_FAILURES, self._state.cycle, message)
        )


def _gained(before: TopologyAssignment, after: TopologyAssignment) -> TopologyAssignment:
    """What the new assignment has beyond the old one."""
    counts = {domain.values: domain.count for domain in before.domains}
    gained = (TopologyDomain(domain.values, domain.count - counts.get(domain.values, 0)) for domain in after.domains)
    return TopologyAssignment(after.levels, tuple(domain for domain in gained if domain.count > 0))
