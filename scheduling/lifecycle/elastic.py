"""Elastic jobs that shrink while they hold quota: the admission's counts follow the pod sets' counts.

Quota is free at once, as in Kueue. A slice of a device is free only when its pod has been deleted. The Job controller
chooses which pods end. So a workload may hold more placed pods than its admission counts for a while, and its replica
numbers may have gaps afterwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from scheduling.model.placement import Placement, PodPlacement
from scheduling.model.topology import TopologyAssignment, TopologyDomain
from scheduling.model.workload import PodSetAssignment, Workload

NodesOf = Callable[[PodSetAssignment, TopologyDomain], frozenset[str]]
"""The nodes of a topology domain of a pod set's assignment; empty if the domain no longer exists."""


def scaled_down(workload: Workload, nodes_of: NodesOf, *, pods_may_run: bool) -> Workload:
    """Return the workload, reduced to the quota, domains and placed pods that its pod sets request; the same object if
    it does not hold more. `pods_may_run`: the workload was admitted, so placed pods beyond the count are held until the
    cluster reports their deletion; otherwise the replicas with the highest numbers are dropped. The placed pods decide
    which domains are held; without placed pods, domains are cut from the end of their stored order."""
    if workload.admission is None:
        return workload
    wanted = {pod_set.name: pod_set.count for pod_set in workload.pod_sets}
    before = workload.admission.pod_set_assignments
    placement = workload.placement
    if placement is not None and not pods_may_run:
        placement = _without_last(placement, wanted)
    after = tuple(_assignment(found, wanted.get(found.name, found.count), placement, nodes_of) for found in before)
    if after == before and placement is workload.placement:
        return workload
    return replace(workload, admission=replace(workload.admission, pod_set_assignments=after), placement=placement)


def free_numbers(taken: Iterable[int], count: int) -> list[int]:
    """Return the `count` lowest free replica numbers."""
    used = set(taken)
    found: list[int] = []
    number = 0
    while len(found) < count:
        if number not in used:
            found.append(number)
        number += 1
    return found


def split_domains(assignment: TopologyAssignment, count: int) -> tuple[TopologyAssignment, TopologyAssignment]:
    """Split the domains into those of the first `count` pods, in stored order, and those of the remaining pods."""
    first: list[TopologyDomain] = []
    others: list[TopologyDomain] = []
    for domain in assignment.domains:
        taken = min(domain.count, count)
        count -= taken
        if taken:
            first.append(replace(domain, count=taken))
        if domain.count > taken:
            others.append(replace(domain, count=domain.count - taken))
    return replace(assignment, domains=tuple(first)), replace(assignment, domains=tuple(others))


def _without_last(placement: Placement, wanted: dict[str, int]) -> Placement:
    dropped: set[int] = set()
    for name, count in wanted.items():
        pods = sorted(placement.pods_of(name), key=lambda pod: pod.replica)
        dropped.update(id(pod) for pod in pods[count:])
    return Placement(tuple(pod for pod in placement.pods if id(pod) not in dropped)) if dropped else placement


def _assignment(
    assignment: PodSetAssignment, wanted: int, placement: Placement | None, nodes_of: NodesOf
) -> PodSetAssignment:
    topology = assignment.topology_assignment
    if topology is not None:
        pods = placement.pods_of(assignment.name) if placement is not None else ()
        topology = _domains_of(assignment, topology, pods, nodes_of) if pods else split_domains(topology, wanted)[0]
        assignment = replace(assignment, topology_assignment=topology)
    if wanted >= assignment.count:
        return assignment
    usage = {name: amount // assignment.count * wanted for name, amount in assignment.resource_usage.items()}
    return replace(assignment, count=wanted, resource_usage=usage)


def _domains_of(
    assignment: PodSetAssignment, topology: TopologyAssignment, pods: Sequence[PodPlacement], nodes_of: NodesOf
) -> TopologyAssignment:
    """Return the domains with the pods that are placed there; cut from the end if the domain of a pod is unknown."""
    if len(pods) >= sum(domain.count for domain in topology.domains):
        return topology
    on_node = Counter(pod.node for pod in pods)
    counts = [sum(on_node[name] for name in nodes_of(assignment, domain)) for domain in topology.domains]
    if sum(counts) != len(pods):
        return split_domains(topology, len(pods))[0]
    counted = zip(topology.domains, counts, strict=True)
    return replace(topology, domains=tuple(replace(domain, count=count) for domain, count in counted if count))
