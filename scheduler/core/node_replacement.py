"""The second pass for failed nodes (3.11, 11.10): admitted workloads whose topology assignment names one.

The pods of the failed node get another leaf at once, before the heads of the queues are looked at; quota does not
change and nobody is preempted for them. A workload that finds none, or that lost a second node, is evicted.
"""

from __future__ import annotations

from dataclasses import replace

from scheduler.core.conditions import evict
from scheduler.core.decisions import Evict, EvictionReason, ReplaceNode
from scheduler.core.flavor_topology import topology_request
from scheduler.core.node_selection import HOSTNAME_LABEL
from scheduler.core.placing import topology_charges, topology_flavor
from scheduler.core.state import State
from scheduler.core.topology import TopologyAssignment, TopologyDomain, TopologyFailure
from scheduler.core.topology_replacement import replace_failed_node
from scheduler.core.topology_usage import LeafUsage
from scheduler.core.workload import Admission, PodSetAssignment, Workload
from scheduler.core.workload_info import WorkloadInfo


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

    def __init__(self, state: State) -> None:
        """Of this state."""
        self._state = state
        self.replacements: list[ReplaceNode] = []
        self.evictions: list[Evict] = []

    @property
    def decided(self) -> bool:
        """Whether anything was decided."""
        return bool(self.replacements or self.evictions)

    def run(self) -> None:
        """Decide on all of them, in queue order; each is decided on once."""
        waiting, self._state.second_pass = self._state.second_pass, {}
        for info in sorted(waiting.values(), key=lambda info: info.order):
            hosts = failed_hosts(info.current())
            if info.evicted or not hosts:
                continue
            self._state.journal.note_once(info)
            if len(hosts) > 1:
                self._evict(info, f"the nodes {', '.join(hosts)} failed")
            else:
                self._replace(info, hosts[0])

    def _replace(self, info: WorkloadInfo, host: str) -> None:
        if info.placement is not None and any(pod.node == host and pod.slices for pod in info.placement.pods):
            self._evict(info, f"node {host}, where it holds devices, failed")
            return
        found = self._reassign(info, host)
        if isinstance(found, TopologyFailure):
            self._evict(info, f"no replacement for the failed node {host}: {found.message}")
            return
        self._state.move(info, found, topology_charges(info, found, self._state.topology_flavors))
        info.change(lambda workload: replace(workload, admission=found, unhealthy_nodes=()))
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
            request = topology_request(pod_sets[assignment.name], self._state.device_resources())
            after = replace_failed_node(flavor, request, before, host, moved)
            if isinstance(after, TopologyFailure):
                return after
            moved.add(request.usage(_gained(before, after)))
            assignments.append(replace(assignment, topology_assignment=after))
        return Admission(info.admission.cluster_queue, tuple(assignments))

    def _evict(self, info: WorkloadInfo, message: str) -> None:
        now = self._state.now
        info.evicted = True
        info.change(lambda workload: evict(workload, EvictionReason.NODE_FAILURES, message, now))
        self.evictions.append(
            Evict(info.key, info.cluster_queue, EvictionReason.NODE_FAILURES, self._state.cycle, message)
        )


def _gained(before: TopologyAssignment, after: TopologyAssignment) -> TopologyAssignment:
    """What the new assignment has beyond the old one."""
    counts = {domain.values: domain.count for domain in before.domains}
    gained = (TopologyDomain(domain.values, domain.count - counts.get(domain.values, 0)) for domain in after.domains)
    return TopologyAssignment(after.levels, tuple(domain for domain in gained if domain.count > 0))
