"""Small clusters for the tests of topology-aware scheduling."""

from collections.abc import Iterable, Mapping

from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import (
    PodSetTopologyRequest,
    Topology,
    TopologyAssignment,
    TopologyFailure,
    TopologyRequest,
)
from scheduling.topology.flavor import TopologyFlavor

BLOCK, RACK, HOST = "block", "rack", HOSTNAME_LABEL
HOSTS = Topology("hosts", (HOST,))
RACKS = Topology("racks", (BLOCK, RACK))
RACKS_AND_HOSTS = Topology("default", (BLOCK, RACK, HOST))


def node(name: str, cpu: int, *, block: str = "b0", rack: str = "r0", pods: int = 110, **changes: object) -> Node:
    """A ready node with whole cpus."""
    labels = {BLOCK: block, RACK: rack, HOST: name, "pool": "tas"}
    fields: dict[str, object] = {"labels": labels, "allocatable": {"cpu": cpu * 1000, "pods": pods}, **changes}
    return Node(name, **fields)  # type: ignore[arg-type]  # tests may change any field


def racks(rooms: Mapping[str, Iterable[int]], *, block: str = "b0") -> list[Node]:
    """Nodes of racks, given the cpus of each rack's nodes; node names are RACK-NUMBER."""
    return [
        node(f"{rack}-n{number}", cpu, block=block, rack=rack)
        for rack, cpus in rooms.items()
        for number, cpu in enumerate(cpus)
    ]


def flavor(topology: Topology, nodes: Iterable[Node], *, balanced: bool = False) -> TopologyFlavor:
    """A flavor with the nodes as its tree."""
    made = TopologyFlavor(topology, {"pool": "tas"}, balanced_placement=balanced)
    for each in nodes:
        made.leaves.set_node(each)
    return made


def pods(
    count: int, request: TopologyRequest | None = None, *, cpu: int = 1, name: str = "main"
) -> PodSetTopologyRequest:
    """A pod set whose pods ask for whole cpus."""
    return PodSetTopologyRequest(name, count, {"cpu": cpu * 1000}, request)


def domains(assignment: TopologyAssignment) -> dict[str, int]:
    """The assignment as last level value -> count."""
    return {domain.values[-1]: domain.count for domain in assignment.domains}


def place(made: TopologyFlavor, *requests: PodSetTopologyRequest) -> dict[str, dict[str, int]] | str:
    """Pod set -> domains, or the failure's message."""
    found = made.find_topology_assignments(requests)
    if isinstance(found, TopologyFailure):
        return found.message
    return {name: domains(assignment) for name, assignment in found.items()}


def occupy(made: TopologyFlavor, *requests: PodSetTopologyRequest) -> None:
    """Place and charge."""
    found = made.find_topology_assignments(requests)
    assert not isinstance(found, TopologyFailure)
    for request in requests:
        made.add_usage(request.usage(found[request.pod_set]))
