"""The second pass for failed nodes: admitted workloads whose topology assignment names a failed node.

Pods of the failed node get other leaves and devices before the heads of the queues are decided. Their quota does not
change, and they preempt no workload. Their old leaves and devices stay charged until the cycle ends, because the node
failed only a moment ago. A workload is evicted if there is no room, or if a second node fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from scheduling.cycle.closed_nodes import closed_nodes
from scheduling.cycle.flavor_devices import DeviceAssigner, describe
from scheduling.cycle.flavor_topology import topology_request
from scheduling.lifecycle.conditions import evict
from scheduling.model.decisions import Evict, ReplaceNode
from scheduling.model.placement import Placement, PlacementRefusal, PodSetToPlace
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import TopologyAssignment, TopologyDomain, TopologyFailure, TopologyUsage
from scheduling.model.vocabulary import EvictionReason
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.state.admission_state import topology_charges, topology_flavor
from scheduling.state.state import State
from scheduling.state.workload_info import TopologyCharge, WorkloadInfo
from scheduling.topology.replacement import replace_failed_node
from scheduling.topology.usage import LeafUsage


def failed_hosts(workload: Workload) -> tuple[str, ...]:
    """Return the unhealthy nodes that the workload's topology assignments or placement name, in the order in which
    they failed."""
    if workload.admission is None:
        return ()
    holding = {pod.node for pod in workload.placement.pods} if workload.placement is not None else set()
    hosts = holding | {
        domain.values[-1]
        for assignment in workload.admission.pod_set_assignments
        if assignment.topology_assignment is not None and assignment.topology_assignment.levels[-1] == HOSTNAME_LABEL
        for domain in assignment.topology_assignment.domains
    }
    return tuple(dict.fromkeys(name for name in workload.unhealthy_nodes if name in hosts))


class _Found(NamedTuple):
    """The admission after the replacement, and the new domains of the moved pods per pod set."""

    admission: Admission
    moved: dict[str, TopologyAssignment]


class NodeReplacer:
    """Decides the workloads with failed nodes. Call `close` at the end of the cycle."""

    def __init__(self, state: State, devices: DeviceAssigner) -> None:
        self._state = state
        self._devices = devices
        self.replacements: list[ReplaceNode] = []
        self.evictions: list[Evict] = []
        self._kept_leaves: list[TopologyCharge] = []
        self._kept_devices: list[str] = []

    @property
    def decided(self) -> bool:
        return bool(self.replacements or self.evictions)

    def run(self) -> None:
        """Decide all these workloads in queue order, each once."""
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

    def close(self) -> None:
        """At the end of the cycle, free the old leaves and devices of the moved pods, and wake workloads that may
        use them."""
        if self._kept_leaves or self._kept_devices:
            self._state.dirty_queues.update(replacement.cluster_queue for replacement in self.replacements)
            self._state.waking.wake_waiting_for_devices()
        for flavor, usage in self._kept_leaves:
            self._state.topology_flavors.remove_usage(flavor, usage)
        for key in self._kept_devices:
            self._state.fleet.release(key)

    def _replace(self, info: WorkloadInfo, host: str) -> None:
        found = self._reassign(info, host)
        if isinstance(found, TopologyFailure):
            self._evict(info, f"no replacement for the failed node {host}: {found.message}")
            return
        placement = self._place_anew(info, found, host)
        if isinstance(placement, PlacementRefusal):
            self._evict(info, f"no devices to replace those of the failed node {host}: {describe(placement).text}")
            return
        admission, message = found.admission, f"the pods of the failed node {host} were moved"
        if admission == info.admission and placement == info.placement:
            message = f"node {host} is ready again; its pods stay"
        self._move(info, admission)
        if placement is not info.placement:
            self._exchange(info, placement)
        info.change(lambda workload: replace(workload, admission=admission, placement=placement, unhealthy_nodes=()))
        pod_sets, cycle = admission.pod_set_assignments, self._state.cycle
        self.replacements.append(ReplaceNode(info.key, admission.cluster_queue, host, pod_sets, cycle, message))

    def _reassign(self, info: WorkloadInfo, host: str) -> _Found | TopologyFailure:
        """Return the admission with other leaves for the pods of the host. Each pod set sees the moves of the pod
        sets before it."""
        assert info.admission is not None  # it already holds quota
        pod_sets = {pod_set.name: pod_set for pod_set in info.pod_sets}
        taken = LeafUsage()
        moved: dict[str, TopologyAssignment] = {}
        assignments: list[PodSetAssignment] = []
        for assignment in info.admission.pod_set_assignments:
            before = assignment.topology_assignment
            if before is None or all(domain.values != (host,) for domain in before.domains):
                assignments.append(assignment)
                continue
            name = topology_flavor(assignment, self._state.topology_flavors)
            flavor = self._state.topology_flavors.get(name or "")
            if flavor is None:
                return TopologyFailure(assignment.name, f"flavor {name} no longer has a topology")
            pod_set = pod_sets[assignment.name]
            checks = info.workload.admission_checks
            request = topology_request(pod_set, self._state.device_resources(), checks)
            room = self._devices.room_for(info, pod_set, [*assignment.flavors.values()])
            request = replace(request, room=room, closed_nodes=closed_nodes(self._state, info))
            found = replace_failed_node(flavor, request, before, host, taken)
            if isinstance(found, TopologyFailure):
                return found
            taken.add(request.usage(found.moved))
            moved[assignment.name] = found.moved
            assignments.append(replace(assignment, topology_assignment=found.whole))
        return _Found(Admission(info.admission.cluster_queue, tuple(assignments)), moved)

    def _place_anew(self, info: WorkloadInfo, found: _Found, host: str) -> Placement | PlacementRefusal | None:
        """Return the placement with other devices for the pods of the host; None if no placement is needed. Each pod
        keeps its number."""
        if info.placement is None or all(pod.node != host for pod in info.placement.pods):
            return info.placement
        requests = {pod_set.name: pod_set for pod_set in info.pod_sets}
        wanted: list[PodSetToPlace] = []
        for assignment in found.admission.pod_set_assignments:
            lost = [pod.replica for pod in info.placement.pods_of(assignment.name) if pod.node == host]
            pod_set, flavors = requests[assignment.name], assignment.flavors.values()
            for count, nodes in self._shares(info, assignment, found.moved.get(assignment.name), lost):
                wanted.append(self._devices.to_place(info, pod_set, flavors, count, nodes))
        placed = self._state.fleet.place(wanted, instead_of=[pod for pod in info.placement.pods if pod.node == host])
        if isinstance(placed, PlacementRefusal):
            return placed
        free = {name: iter([pod for pod in placed.pods if pod.pod_set == name]) for name in requests}
        return Placement(
            tuple(
                replace(next(free[pod.pod_set]), replica=pod.replica) if pod.node == host else pod
                for pod in info.placement.pods
            )
        )

    def _shares(
        self,
        info: WorkloadInfo,
        assignment: PodSetAssignment,
        moved: TopologyAssignment | None,
        lost: Sequence[int],
    ) -> list[tuple[int, frozenset[str] | None]]:
        """Group the lost pods (by number), each group with its allowed nodes: the nodes of the leaves to which they
        moved or, if leaves are wider than a node, of their old leaves."""
        assert info.placement is not None  # some of its pods were lost
        flavor = self._state.topology_flavors.get(topology_flavor(assignment, self._state.topology_flavors) or "")
        if assignment.topology_assignment is None or flavor is None:
            return [(len(lost), None)] if lost else []
        if moved is not None:
            return [(domain.count, flavor.node_names(domain)) for domain in moved.domains]
        staying = [pod.node for pod in info.placement.pods_of(assignment.name) if pod.replica not in lost]
        shares: list[tuple[int, frozenset[str] | None]] = []
        for domain in assignment.topology_assignment.domains:
            names = flavor.node_names(domain)
            count = domain.count - sum(node in names for node in staying)
            if count:
                shares.append((count, names))
        return shares

    def _move(self, info: WorkloadInfo, admission: Admission) -> None:
        """Charge the new leaves. The old leaves stay charged until the cycle ends."""
        assert info.admission is not None  # it already holds quota
        flavors = self._state.topology_flavors
        before, after = (topology_charges(info, each, flavors) for each in (info.admission, admission))
        self._state.move(info, admission, after)
        for (flavor, usage), (_, now) in zip(before, after, strict=True):
            left = _beyond(usage.domains, now.domains)
            if left:
                charge = TopologyCharge(flavor, TopologyUsage(usage.requests, left))
                flavors.add_usage(*charge)
                self._kept_leaves.append(charge)

    def _exchange(self, info: WorkloadInfo, placement: Placement | None) -> None:
        """Replace the placement. Its old devices stay taken until the cycle ends. A batch can undo the change."""
        fleet = self._state.fleet
        before = fleet.release(info.key)
        if placement is not None:
            fleet.reserve(info.key, placement)
        self._state.journal.note(self._restore_placement, info.key, before)
        info.placement = placement
        left = [pod for pod in before.pods if placement is None or pod not in placement.pods]
        self._kept_devices.append(f"{info.key} before its node failed")
        fleet.reserve(self._kept_devices[-1], Placement(tuple(left)))

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


def _beyond(domains: Sequence[TopologyDomain], others: Sequence[TopologyDomain]) -> tuple[TopologyDomain, ...]:
    """Return the counts of the domains that exceed those of the others."""
    counts = {domain.values: domain.count for domain in others}
    more = (replace(domain, count=domain.count - counts.get(domain.values, 0)) for domain in domains)
    return tuple(domain for domain in more if domain.count > 0)
