"""Groups the nodes of one flavor with a topology into leaves, and caches capacities counted from them.

Derived data is kept until its inputs change: the tree until a leaf is added or removed, the result of node selection
until the node changes, the counts of a pod shape leaf by leaf.
"""

from __future__ import annotations

import sys
from collections import Counter, OrderedDict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Self

from scheduling.model.node import Node
from scheduling.model.selectors import (
    RequiredNodeAffinity,
    Toleration,
    matches_node_selector,
    untolerated_taint,
)
from scheduling.model.topology import PodSetTopologyRequest, Topology
from scheduling.topology.capacities import (
    Capacities,
    LeafFilter,
    LeafState,
    PodRequests,
    PodShape,
    pods_that_fit,
)
from scheduling.topology.tree import LeafKey, TopologyTree
from scheduling.topology.usage import LeafUsage

_KEPT_SHAPES = 64
_KEPT_SELECTIONS = 64
_NO_LIMIT = sys.maxsize


@dataclass(frozen=True, slots=True)
class Selection:
    """Everything that decides whether a pod may use a node. The tolerations include the flavor's."""

    tolerations: tuple[Toleration, ...]
    node_selector: tuple[tuple[str, str], ...]
    affinity: RequiredNodeAffinity | None

    @classmethod
    def of(cls, request: PodSetTopologyRequest, flavor_tolerations: tuple[Toleration, ...]) -> Self:
        """Return the selection of a pod set in a flavor."""
        return cls(
            request.tolerations + flavor_tolerations, tuple(sorted(request.node_selector.items())), request.affinity
        )

    def exclusion(self, node: Node) -> str | None:
        """Return why the pod may not use the node (`taint KEY`, `nodeSelector`, `affinity`), or None."""
        taint = untolerated_taint(node.taints, self.tolerations)
        if taint is not None:
            return f"taint {taint.key}"
        if not matches_node_selector(dict(self.node_selector), node.labels):
            return "nodeSelector"
        if self.affinity is not None and not self.affinity.matches(node.name, node.labels):
            return "affinity"
        return None


class TopologyLeaves:
    """The nodes and free amounts of the leaves, and the capacities of pod shapes."""

    def __init__(self, topology: Topology, node_labels: Mapping[str, str], usage: LeafUsage) -> None:
        self._topology = topology
        self._node_labels = dict(node_labels)
        self._usage = usage
        self._nodes: dict[str, Node] = {}
        self._nodes_by_leaf: dict[LeafKey, dict[str, Node]] = {}
        self._tree: TopologyTree | None = None
        self._free: list[dict[str, int]] = []
        self._exclusions: dict[Selection, dict[int, str | None]] = {}
        self._capacities: OrderedDict[tuple[PodShape, Selection | None], tuple[Capacities, int]] = OrderedDict()

    @property
    def tree(self) -> TopologyTree:
        """The current tree."""
        if self._tree is None:
            self._grow_tree()
        assert self._tree is not None
        return self._tree

    def set_node(self, node: Node) -> None:
        """Add or change a node. A node outside the flavor or out of service is left out."""
        before = self._nodes.get(node.name)
        if not self._belongs(node):
            self.delete_node(node.name)
            return
        leaf = self._leaf_of(node)
        if before is not None and self._leaf_of(before) == leaf and self._values(before) == self._values(node):
            self._nodes[node.name] = self._nodes_by_leaf[leaf][node.name] = node
            self._note_change(leaf, before, node)
            return
        self.delete_node(node.name)
        self._nodes[node.name] = node
        self._nodes_by_leaf.setdefault(leaf, {})[node.name] = node
        self._tree = None

    def delete_node(self, name: str) -> None:
        """Remove a node; unknown names are ignored."""
        node = self._nodes.pop(name, None)
        if node is None:
            return
        leaf = self._leaf_of(node)
        del self._nodes_by_leaf[leaf][name]
        if not self._nodes_by_leaf[leaf]:
            del self._nodes_by_leaf[leaf]
        self._tree = None

    def free(self, leaf: LeafKey) -> Mapping[str, int] | None:
        """Allocatable minus foreign usage of a leaf; None if the leaf does not exist."""
        number = self.tree.leaf_numbers.get(leaf)
        return None if number is None else self._free[number]

    def node_names(self, leaf: LeafKey) -> frozenset[str]:
        """Return the nodes of a leaf; empty if the leaf does not exist."""
        return frozenset(self._nodes_by_leaf.get(leaf, ()))

    def room(self, room: Mapping[str, int]) -> list[int]:
        """Return the sum of `room` over each leaf's nodes, by leaf number."""
        return [sum(room.get(name, 0) for name in self._nodes_by_leaf[key]) for key in self.tree.leaf_keys]

    def room_on_open_nodes(
        self, closed: AbstractSet[str], requests: PodRequests, taken: LeafUsage, beside: PodRequests = ()
    ) -> list[int]:
        """Return, by leaf number, how many pods the nodes of each leaf would take if they were empty except for `taken`
        and one pod with the requests `beside`. Closed nodes take none; leaves without a closed node have no limit."""
        found: list[int] = []
        for key in self.tree.leaf_keys:
            nodes = self._nodes_by_leaf[key]
            if closed.isdisjoint(nodes):
                found.append(_NO_LIMIT)
                continue
            used = dict(taken.of(key))
            for resource, amount in beside:
                used[resource] = used.get(resource, 0) + amount
            open_nodes = {name: node for name, node in nodes.items() if name not in closed}
            found.append(pods_that_fit(requests, _free(open_nodes), used) if open_nodes else 0)
        return found

    def capacities(self, shape: PodShape, selection: Selection | None) -> Capacities:
        """Return the current counts of a pod shape. With `selection` None the pods may use every leaf."""
        tree = self.tree
        position = self._usage.position
        kept = self._capacities.get((shape, selection))
        if kept is not None:
            capacities, seen = kept
            changed = self._usage.changed_since(seen)
            numbers = tree.leaf_numbers
            capacities.update(
                range(len(tree.leaf_keys)) if changed is None else {numbers[key] for key in changed if key in numbers}
            )
        else:
            capacities = self._count(shape, None if selection is None else partial(self._usable, selection))
        self._capacities[shape, selection] = (capacities, position)
        self._capacities.move_to_end((shape, selection))
        if len(self._capacities) > _KEPT_SHAPES:
            self._capacities.popitem(last=False)
        return capacities

    def capacities_within(self, values: tuple[str, ...], shape: PodShape, selection: Selection | None) -> Capacities:
        """Return the counts if only the domain with these values on the first levels has room; without values, every
        domain has."""
        if not values:
            return self.capacities(shape, selection)
        inside = self.tree.leaves_with_prefix(values)
        return self._count(shape, lambda leaf: leaf in inside and self._usable(selection, leaf))

    def exclusions(self, requests: PodRequests, selection: Selection | None) -> dict[str, int]:
        """Return the reasons why leaves can take none of the pods, as reason -> number of leaves."""
        reasons: Counter[str] = Counter()
        for number, key in enumerate(self.tree.leaf_keys):
            reason = self._exclusion(selection, number) if selection is not None else None
            used = self._usage.of(key)
            if reason is None:
                lacking = (r for r, amount in requests if self._free[number].get(r, 0) - used.get(r, 0) < amount)
                resource = next(lacking, None)
                reason = None if resource is None else f"resource {resource}"
            if reason is not None:
                reasons[reason] += 1
        return dict(sorted(reasons.items()))

    def _count(self, shape: PodShape, usable: LeafFilter | None) -> Capacities:
        state = LeafState(self._free, [self._usage.of(key) for key in self.tree.leaf_keys])
        return Capacities(self.tree, state, shape, usable)

    def _usable(self, selection: Selection | None, leaf: int) -> bool:
        return selection is None or self._exclusion(selection, leaf) is None

    def _exclusion(self, selection: Selection, leaf: int) -> str | None:
        verdicts = self._exclusions.get(selection)
        if verdicts is None:
            if len(self._exclusions) >= _KEPT_SELECTIONS:
                self._exclusions.clear()
            verdicts = self._exclusions[selection] = {}
        if leaf not in verdicts:
            nodes = self._nodes_by_leaf[self.tree.leaf_keys[leaf]]
            verdicts[leaf] = selection.exclusion(nodes[min(nodes)])
        return verdicts[leaf]

    def _belongs(self, node: Node) -> bool:
        return (
            node.ready
            and not node.unschedulable
            and matches_node_selector(self._node_labels, node.labels)
            and all(level in node.labels for level in self._topology.levels)
        )

    def _values(self, node: Node) -> tuple[str, ...]:
        return tuple(node.labels[level] for level in self._topology.levels)

    def _leaf_of(self, node: Node) -> LeafKey:
        values = self._values(node)
        return values[-1:] if self._topology.ends_with_hostname else values

    def _note_change(self, leaf: LeafKey, before: Node, node: Node) -> None:
        """Refresh the data that depend on a changed node of an existing leaf."""
        if self._tree is None or before == node:
            return
        number = self._tree.leaf_numbers[leaf]
        if before.labels != node.labels or before.taints != node.taints:
            for verdicts in self._exclusions.values():
                verdicts.pop(number, None)
        self._free[number].clear()
        self._free[number].update(_free(self._nodes_by_leaf[leaf]))
        self._usage.note(leaf)

    def _grow_tree(self) -> None:
        leaf_values = {leaf: self._values(nodes[min(nodes)]) for leaf, nodes in self._nodes_by_leaf.items()}
        self._tree = TopologyTree(leaf_values, len(self._topology.levels))
        self._free = [_free(self._nodes_by_leaf[leaf]) for leaf in self._tree.leaf_keys]
        self._exclusions.clear()
        self._capacities.clear()


def _free(nodes: Mapping[str, Node]) -> dict[str, int]:
    total: dict[str, int] = {}
    for node in nodes.values():
        for resource, amount in node.allocatable.items():
            total[resource] = total.get(resource, 0) + amount
        for resource, amount in node.foreign_usage.items():
            total[resource] = total.get(resource, 0) - amount
    return total
