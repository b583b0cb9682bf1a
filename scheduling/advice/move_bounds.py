"""Finds the leaves that topologies allow for pending pods, and for running pods that would be moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from scheduling.model.placement import PodPlacement
from scheduling.model.topology import TopologyRequest
from scheduling.state.admission_state import topology_flavor
from scheduling.state.state import State
from scheduling.state.workload_info import WorkloadInfo
from scheduling.topology.flavor import TopologyFlavor
from scheduling.topology.tree import LeafKey

Nodes = frozenset[str] | None
"""The nodes that pods may use; None for no restriction."""

MAX_DOMAINS = 32
"""At most this many domains of a required level are tried: those with the fewest pods that have devices."""


class MoveBounds:
    """Reads the topologies of a state; changes nothing."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._leaves: dict[str, dict[str, LeafKey]] = {}

    def leaf_of(self, flavor: str, node: str) -> LeafKey | None:
        """Return the leaf of a node; None if the node has no leaf."""
        if flavor not in self._leaves:
            leaves = self._state.topology_flavors[flavor].leaves
            self._leaves[flavor] = {name: key for key in leaves.tree.leaf_keys for name in leaves.node_names(key)}
        return self._leaves[flavor].get(node)

    def of_workload(self, info: WorkloadInfo, flavors: Iterable[str]) -> list[Nodes]:
        """Return the domains that could hold a pending workload as a whole: each domain of a required level, or else
        all domains together."""
        name = next((name for name in flavors if name in self._state.topology_flavors), None)
        if name is None:
            return [None]
        levels = [request.required for request in self._requests(info) if request.required is not None]
        everywhere = [self._nodes_below(name, ())]
        if not levels:
            return [*everywhere]
        tree = self._state.topology_flavors[name].topology
        depth = max(tree.levels.index(level) for level in levels if level in tree.levels) + 1
        return [*self._domains(name, depth, everywhere[0])]

    def of_slices(self, info: WorkloadInfo, pod_set: str, flavors: Iterable[str], within: Nodes) -> list[Nodes]:
        """Return the domains, within those nodes, that each slice of a pod set could use; `within` alone if there are
        no slices."""
        name = next((name for name in flavors if name in self._state.topology_flavors), None)
        request = self._request(info, pod_set)
        if name is None or request is None or not request.slices or within is None:
            return [within]
        levels = self._state.topology_flavors[name].topology.levels
        return [*self._domains(name, levels.index(request.slices[0].topology) + 1, within)]

    def slice_size(self, info: WorkloadInfo, pod_set: str) -> int:
        """Return the number of pods in a slice of a pod set; 0 without slices."""
        request = self._request(info, pod_set)
        return request.slices[0].size if request is not None and request.slices else 0

    def of_pod(self, info: WorkloadInfo, pod: PodPlacement) -> Nodes:
        """Return the nodes to which a running pod may be moved without breaking its workload's topology request."""
        admission = info.workload.admission
        held = admission.pod_set_assignments if admission is not None else ()
        assignment = next((each for each in held if each.name == pod.pod_set), None)
        if assignment is None or assignment.topology_assignment is None:
            return None
        name = topology_flavor(assignment, self._state.topology_flavors)
        flavor = self._state.topology_flavors.get(name or "")
        if name is None or flavor is None:
            return frozenset({pod.node})
        leaf = self.leaf_of(name, pod.node)
        if leaf is None:
            return frozenset({pod.node})
        values = flavor.leaves.tree.values[-1][flavor.leaves.tree.leaf_numbers[leaf]]
        return self._nodes_below(name, values[: _kept_depth(flavor, self._request(info, pod.pod_set))])

    def _requests(self, info: WorkloadInfo) -> list[TopologyRequest]:
        found = (pod_set.pod_set.topology_request for pod_set in info.pod_sets)
        return [request for request in found if request is not None]

    def _request(self, info: WorkloadInfo, pod_set: str) -> TopologyRequest | None:
        return next((each.pod_set.topology_request for each in info.pod_sets if each.name == pod_set), None)

    def _nodes_below(self, flavor: str, values: Sequence[str]) -> frozenset[str]:
        leaves = self._state.topology_flavors[flavor].leaves
        numbers = leaves.tree.leaves_with_prefix(tuple(values)) if values else range(len(leaves.tree.leaf_keys))
        return frozenset(name for number in numbers for name in leaves.node_names(leaves.tree.leaf_keys[number]))

    def _domains(self, flavor: str, depth: int, within: frozenset[str]) -> list[frozenset[str]]:
        """Return the domains of a level that contain some of these nodes, emptiest first."""
        tree = self._state.topology_flavors[flavor].leaves.tree
        domains = [self._nodes_below(flavor, values) & within for values in tree.values[depth - 1]]
        busy = {name: 0 for domain in domains for name in domain}
        for placement in self._state.fleet.reservations.values():
            for pod in placement.pods:
                if pod.node in busy and pod.slices:
                    busy[pod.node] += 1
        found = [domain for domain in domains if domain]
        found.sort(key=lambda domain: (sum(busy[name] for name in domain) / len(domain), sorted(domain)))
        return found[:MAX_DOMAINS]


def _kept_depth(flavor: TopologyFlavor, request: TopologyRequest | None) -> int:
    """Return how many levels from the top a pod must stay in: the required level and all slice levels."""
    if request is None:
        return 0
    levels = [request.required, *(layer.topology for layer in request.slices)]
    known = flavor.topology.levels
    return max((known.index(level) + 1 for level in levels if level in known), default=0)
