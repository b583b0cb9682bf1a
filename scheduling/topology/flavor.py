"""Flavors with a topology: the nodes of their trees, their free capacity, and placement in them.

`TopologyFlavors` is the part of the state that topology-aware scheduling reads; it adds each node to the flavors that
it matches. Usage is added and removed by exact inverses, so that a caller can simulate and undo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scheduling.model.node import Node
from scheduling.model.selectors import Toleration
from scheduling.model.topology import (
    PodSetTopologyRequest,
    Topology,
    TopologyAssignment,
    TopologyDomain,
    TopologyFailure,
    TopologyRequest,
    TopologyUsage,
)
from scheduling.topology.balanced import place_balanced
from scheduling.topology.best_fit import Placed, TooSmall, place
from scheduling.topology.capacities import Capacities, pods_that_fit
from scheduling.topology.leaves import Selection, TopologyLeaves
from scheduling.topology.request import (
    PlacementPlan,
    UnservableRequest,
    level_problem,
    make_plan,
    pod_requests,
    split_leader,
)
from scheduling.topology.tree import LeafKey
from scheduling.topology.usage import LeafUsage


class TopologyFlavor:
    """One ResourceFlavor with a `topologyName`: the tree of its nodes' domains, with capacity and usage."""

    def __init__(
        self,
        topology: Topology,
        node_labels: Mapping[str, str],
        tolerations: Sequence[Toleration] = (),
        usage: LeafUsage | None = None,
        *,
        balanced_placement: bool = False,
    ) -> None:
        self.topology = topology
        self.node_labels = dict(node_labels)
        self.tolerations = tuple(tolerations)
        self.balanced_placement = balanced_placement
        self.usage = LeafUsage() if usage is None else usage
        self.leaves = TopologyLeaves(topology, node_labels, self.usage)

    def is_defined_by(
        self, topology: Topology, node_labels: Mapping[str, str], tolerations: Sequence[Toleration]
    ) -> bool:
        """Return whether the topology, node labels and tolerations are still those of the flavor."""
        return (self.topology, self.node_labels, self.tolerations) == (topology, dict(node_labels), tuple(tolerations))

    def level_problem(self, request: TopologyRequest | None) -> str | None:
        """Return why the flavor's topology cannot serve the request (a level that it lacks), or None."""
        return level_problem(self.topology, request)

    def add_usage(self, usage: TopologyUsage) -> None:
        """Charge the leaves with requests x count, and `pods` with count. Leaves without nodes are remembered."""
        self.usage.add(usage)

    def remove_usage(self, usage: TopologyUsage) -> None:
        """The exact inverse of `add_usage`."""
        self.usage.remove(usage)

    def fits(self, usages: Iterable[TopologyUsage]) -> bool:
        """Return whether each (pod set, domain) entry, taken alone and without `pods`, has room in its leaf."""
        for usage in usages:
            requests = tuple((resource, amount) for resource, amount in usage.requests.items() if amount > 0)
            for domain in usage.domains:
                free = self.leaves.free(domain.values)
                if free is None:
                    return False
                if requests and pods_that_fit(requests, free, self.usage.of(domain.values)) < domain.count:
                    return False
        return True

    def find_topology_assignments(
        self,
        requests: Sequence[PodSetTopologyRequest],
        *,
        simulate_empty: bool = False,
        assumed: Iterable[TopologyUsage] = (),
    ) -> dict[str, TopologyAssignment] | TopologyFailure:
        """Place the pod sets of one workload (those that use this flavor, in the workload's order).

        Groups are placed one after the other, and each sees the room that the earlier ones took; pod sets with count 0
        are left out. `simulate_empty` ignores the usage of other workloads. Nothing is charged: call `add_usage`.
        """
        taken = LeafUsage()
        for usage in assumed:
            taken.add(usage)
        assignments: dict[str, TopologyAssignment] = {}
        for group in _groups(requests):
            placed = self.place_group(group, taken, simulate_empty=simulate_empty)
            if isinstance(placed, TopologyFailure):
                return placed
            for request in group:
                taken.add(request.usage(placed[request.pod_set]))
            assignments.update(placed)
        return assignments

    def place_group(
        self,
        group: Sequence[PodSetTopologyRequest],
        taken: LeafUsage,
        *,
        simulate_empty: bool = False,
        within: tuple[str, ...] = (),
    ) -> dict[str, TopologyAssignment] | TopologyFailure:
        """Place pod sets that belong together, given the usage of the workload's other pod sets.

        `within` keeps them in the domain with these values of the first levels.
        """
        try:
            workers, leader = split_leader(group)
            plan = make_plan(self.topology, workers, leader)
        except UnservableRequest as problem:
            return TopologyFailure(group[0].pod_set, str(problem))
        tree = self.leaves.tree
        if not tree.leaf_keys:
            return TopologyFailure(workers.pod_set, f'topology "{self.topology.name}" has no nodes', 0, plan.wanted)
        selection = Selection.of(workers, self.tolerations) if self.topology.ends_with_hostname else None
        shape = plan.shape(simulate_empty)
        capacities = self.leaves.capacities_within(within, shape, selection)
        extra = {tree.leaf_numbers[leaf]: amounts for leaf, amounts in taken.items() if leaf in tree.leaf_numbers}
        if extra:
            capacities = capacities.with_assumed(extra)
        if not simulate_empty:
            capacities = self._limited(capacities, workers, leader)
        capacities = self._open(capacities, workers, leader, taken)
        balanced = place_balanced(plan, tree, capacities) if self.balanced_placement else None
        placed = balanced or place(plan, tree, capacities)
        if isinstance(placed, TooSmall):
            return self._too_small(workers, plan, placed)
        return self._assignments(workers, leader, placed)

    def node_names(self, domain: TopologyDomain) -> frozenset[str]:
        """Return the nodes of an assigned domain; empty if the domain no longer exists."""
        return self.leaves.node_names(domain.values)

    def together(self, kept: TopologyAssignment | None, gained: TopologyAssignment | None) -> TopologyAssignment:
        """Combine both assignments in the order of the domains; domains that no longer exist come first. At least one
        assignment is not None."""
        if kept is None or gained is None:
            found = kept or gained
            assert found is not None  # required of the caller
            return found
        counts = Counter({domain.values: domain.count for domain in kept.domains})
        for domain in gained.domains:
            counts[domain.values] += domain.count
        numbers = self.leaves.tree.leaf_numbers
        leaves = sorted(counts, key=lambda leaf: (numbers.get(leaf, -1), leaf))
        return TopologyAssignment(kept.levels, tuple(TopologyDomain(leaf, counts[leaf]) for leaf in leaves))

    def exclusions(self, request: PodSetTopologyRequest) -> dict[str, int]:
        """Return the reasons why leaves take none of the pods now, as reason -> number of leaves: `taint KEY`,
        `nodeSelector`, `affinity`, or `resource NAME` for the first resource that lacks room for one pod.
        """
        selection = Selection.of(request, self.tolerations) if self.topology.ends_with_hostname else None
        return self.leaves.exclusions(pod_requests(request), selection)

    @property
    def leaf_count(self) -> int:
        """The number of domains on the last level."""
        return len(self.leaves.tree.leaf_keys)

    def _limited(
        self, capacities: Capacities, workers: PodSetTopologyRequest, leader: PodSetTopologyRequest | None
    ) -> Capacities:
        rooms = (workers.room, workers.room_beside_leader, leader.room if leader else None)
        if all(room is None for room in rooms):
            return capacities
        return capacities.limited_to(*(None if room is None else self.leaves.room(room) for room in rooms))

    def _open(
        self,
        capacities: Capacities,
        workers: PodSetTopologyRequest,
        leader: PodSetTopologyRequest | None,
        taken: LeafUsage,
    ) -> Capacities:
        """Limit each leaf to the pods that its open nodes would take if they were empty. Which nodes of a wider leaf
        are in use is not known here: the search for devices and room decides that."""
        closed = workers.closed_nodes
        if not closed:
            return capacities
        requests = pod_requests(workers)
        pods = self.leaves.room_on_open_nodes(closed, requests, taken)
        if leader is None:
            return capacities.limited_to(pods, None, None)
        beside = self.leaves.room_on_open_nodes(closed, requests, taken, beside=pod_requests(leader))
        return capacities.limited_to(pods, beside, self.leaves.room_on_open_nodes(closed, pod_requests(leader), taken))

    def _too_small(self, workers: PodSetTopologyRequest, plan: PlacementPlan, found: TooSmall) -> TopologyFailure:
        unit = "pods" if plan.slices.size == 1 else f"slices of {plan.slices.size} pods"
        message = f'topology "{self.topology.name}" has room for {found.fitting} of {plan.wanted} {unit}'
        if plan.required:
            message += f' in one domain of "{self.topology.levels[plan.level]}"'
        return TopologyFailure(workers.pod_set, message, found.fitting, plan.wanted, plan.slices.size)

    def _assignments(
        self, workers: PodSetTopologyRequest, leader: PodSetTopologyRequest | None, placed: Placed
    ) -> dict[str, TopologyAssignment]:
        assignments = {workers.pod_set: self._assignment(placed.workers)}
        if leader is not None:
            assignments[leader.pod_set] = self._assignment(placed.leaders)
        return assignments

    def _assignment(self, leaves: Iterable[tuple[int, int]]) -> TopologyAssignment:
        keys: list[LeafKey] = self.leaves.tree.leaf_keys
        domains = tuple(TopologyDomain(keys[leaf], count) for leaf, count in leaves)
        return TopologyAssignment(self.topology.assigned_levels, domains)


class TopologyFlavors(Mapping[str, TopologyFlavor]):
    """The flavors with a topology, by name, and the nodes that they are built from.

    Flavors whose topologies end with the hostname share the usage of the nodes that they share.
    """

    def __init__(self, *, balanced_placement: bool = False) -> None:
        self._balanced_placement = balanced_placement
        self._flavors: dict[str, TopologyFlavor] = {}
        self._nodes: dict[str, Node] = {}
        self._usage_by_hostname = LeafUsage()

    def set_flavor(
        self, name: str, topology: Topology, node_labels: Mapping[str, str], tolerations: Sequence[Toleration] = ()
    ) -> None:
        """Add or change a flavor. If its topology's levels change, its usage is lost and must be added again."""
        before = self._flavors.get(name)
        if before is not None and before.is_defined_by(topology, node_labels, tolerations):
            return
        if topology.ends_with_hostname:
            usage = self._usage_by_hostname
        elif before is not None and before.topology.levels == topology.levels:
            usage = before.usage
        else:
            usage = LeafUsage()
        flavor = TopologyFlavor(topology, node_labels, tolerations, usage, balanced_placement=self._balanced_placement)
        for node in self._nodes.values():
            flavor.leaves.set_node(node)
        self._flavors[name] = flavor

    def snapshot(self) -> tuple[dict[str, TopologyFlavor], list[tuple[LeafUsage, Mapping[LeafKey, Mapping[str, int]]]]]:
        """Return the flavors, and a copy of their usage. The nodes are not part of it."""
        usages = {id(usage): usage for usage in (self._usage_by_hostname, *(f.usage for f in self._flavors.values()))}
        return dict(self._flavors), [(usage, usage.snapshot()) for usage in usages.values()]

    def restore(
        self, values: tuple[dict[str, TopologyFlavor], list[tuple[LeafUsage, Mapping[LeafKey, Mapping[str, int]]]]]
    ) -> None:
        """Restore a snapshot. Flavors that were replaced since then have the nodes of that time: undo later changes of
        nodes first."""
        self._flavors = dict(values[0])
        for usage, amounts in values[1]:
            usage.restore(amounts)

    def delete_flavor(self, name: str) -> None:
        """Remove a flavor; unknown names are ignored."""
        self._flavors.pop(name, None)

    def set_nodes(self, nodes: Iterable[Node]) -> None:
        new = {node.name: node for node in nodes}
        for name in [name for name in self._nodes if name not in new]:
            self.delete_node(name)
        for node in new.values():
            self.set_node(node)

    def set_node(self, node: Node) -> None:
        """Add or change one node. A node that is not ready, unschedulable or lacks a level's label has no leaf."""
        self._nodes[node.name] = node
        for flavor in self._flavors.values():
            flavor.leaves.set_node(node)

    def delete_node(self, name: str) -> None:
        """Remove a node; unknown names are ignored."""
        if self._nodes.pop(name, None) is not None:
            for flavor in self._flavors.values():
                flavor.leaves.delete_node(name)

    def add_usage(self, flavor: str, usage: TopologyUsage) -> None:
        """Charge a flavor. If the flavor does not exist now, the usage must be charged again when it is set."""
        if flavor in self._flavors:
            self._flavors[flavor].add_usage(usage)

    def remove_usage(self, flavor: str, usage: TopologyUsage) -> None:
        """The exact inverse of `add_usage`, as long as the flavor was neither set nor deleted in between."""
        if flavor in self._flavors:
            self._flavors[flavor].remove_usage(usage)

    def __getitem__(self, name: str) -> TopologyFlavor:
        return self._flavors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._flavors)

    def __len__(self) -> int:
        return len(self._flavors)


def _groups(requests: Iterable[PodSetTopologyRequest]) -> list[list[PodSetTopologyRequest]]:
    """Pod sets by group name in order of first appearance, the others alone; those without pods left out."""
    groups: dict[str, list[PodSetTopologyRequest]] = {}
    for request in requests:
        if request.count > 0:
            group = request.topology.group if request.topology else None
            key = f"group {group}" if group else f"pod set {request.pod_set}"
            groups.setdefault(key, []).append(request)
    return list(groups.values())
