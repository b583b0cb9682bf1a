"""Worlds with one ClusterQueue whose flavor has a topology, for tests of whole cycles."""

from collections.abc import Iterable

from scheduling.model.cluster_queue import ClusterQueue, ClusterQueuePreemption
from scheduling.model.cohort import FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod import Container, PodTemplate
from scheduling.model.quantity import parse_quantity
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import LabelSelector
from scheduling.model.topology import Topology, TopologyRequest
from scheduling.model.vocabulary import ConditionType, WithinClusterQueuePolicy
from scheduling.model.workload import PodSet, Workload
from scheduling.world import World
from tests.scheduling.topology_helpers import RACKS_AND_HOSTS, domains

NOW = 1000.0
QUOTA = ResourceGroup(("cpu",), (FlavorQuotas("tas", {"cpu": ResourceQuota(100_000)}),))


def world(nodes: Iterable[Node], *, topology: Topology = RACKS_AND_HOSTS, preemption: bool = False) -> World:
    """One queue with a hundred cpus of a flavor whose nodes these are; with `preemption` by priority."""
    made = World()
    made.set_namespace("team", {})
    made.set_topology(topology)
    made.set_resource_flavor(ResourceFlavor("tas", {"pool": "tas"}, topology_name=topology.name))
    within = WithinClusterQueuePolicy.LOWER_PRIORITY if preemption else WithinClusterQueuePolicy.NEVER
    made.set_cluster_queue(
        ClusterQueue(
            "cq",
            resource_groups=(QUOTA,),
            namespace_selector=LabelSelector(),
            preemption=ClusterQueuePreemption(within_cluster_queue=within),
        )
    )
    made.set_local_queue(LocalQueue("team", "lq", "cq"))
    for each in nodes:
        made.set_node(each)
    return made


def workload(
    name: str,
    *counts: int,
    request: TopologyRequest | None = None,
    cpu: int = 1,
    priority: int = 0,
    created_at: float = 0.0,
) -> Workload:
    """Pod sets of that many pods."""
    template = PodTemplate((Container("c", {"cpu": parse_quantity(cpu)}),))
    pod_sets = tuple(
        PodSet(f"set-{number}", count, template, topology_request=request) for number, count in enumerate(counts)
    )
    return Workload("team", name, name, "lq", pod_sets, priority=priority, created_at=created_at)


def admit(made: World, *workloads: Workload) -> None:
    for each in workloads:
        made.set_workload(each, NOW)
    while made.has_active():
        made.run_cycle(NOW)
    assert all(current(made, each.key).is_true(ConditionType.ADMITTED) for each in workloads)


def current(made: World, key: str) -> Workload:
    found = made.workload(key)
    assert found is not None
    return found


def places(made: World, key: str) -> dict[str, dict[str, int]]:
    """Pod set -> host -> pods."""
    admission = current(made, key).admission
    assert admission is not None
    return {
        assigned.name: domains(assigned.topology_assignment)
        for assigned in admission.pod_set_assignments
        if assigned.topology_assignment is not None
    }
