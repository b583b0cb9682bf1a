"""Finds the nodes that may take a pod, regardless of free capacity: labels, selector, affinity, taints, readiness,
cordon, reservations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.arrays import Booleans
from scheduling.model.node import Node
from scheduling.model.placement import NodeRefusal, PodSetToPlace
from scheduling.model.selectors import Taint, TaintEffect, matches_node_selector, tolerates, untolerated_taint

_UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
_NUMBER = {refusal: number for number, refusal in enumerate(NodeRefusal)}
_MAX_REMEMBERED = 256


@dataclass(slots=True)
class CandidateNodes:
    """Masks over the rows of the device table, cached per kind of pod set until a node changes."""

    nodes: Sequence[Node]
    rows: Mapping[str, int]
    _selected: dict[Hashable, Booleans] = field(default_factory=dict)
    _refusals: dict[Hashable, NDArray[np.int64]] = field(default_factory=dict)

    def selected(self, pod_set: PodSetToPlace) -> Booleans:
        """Return the nodes selected by flavor, topology domain, node selector and affinity."""
        mask = self.selected_anywhere(pod_set)
        return mask if pod_set.allowed_nodes is None else mask & self._named(pod_set.allowed_nodes)

    def selected_anywhere(self, pod_set: PodSetToPlace) -> Booleans:
        """Return the nodes selected by flavor, node selector and affinity, in all topology domains."""
        key = selection_key(pod_set)
        mask = self._selected.get(key)
        if mask is None:
            mask = np.fromiter((_selects(pod_set, node) for node in self.nodes), np.bool_, len(self.nodes))
            _remember(self._selected, key, mask)
        return mask

    def _named(self, names: Iterable[str]) -> Booleans:
        mask = np.zeros(len(self.nodes), dtype=np.bool_)
        mask[[self.rows[name] for name in names if name in self.rows]] = True
        return mask

    def usable(self, pod_set: PodSetToPlace) -> Booleans:
        """Return the selected nodes that are ready and accept the pod."""
        usable: Booleans = self.selected(pod_set) & (self.refusals(pod_set) < 0)
        return usable

    def refusals(self, pod_set: PodSetToPlace) -> NDArray[np.int64]:
        """Per node, the index of its `NodeRefusal`, or -1."""
        key = (pod_set.tolerations, pod_set.flavor_tolerations, pod_set.closed_nodes)
        numbers = self._refusals.get(key)
        if numbers is None:
            found = (self.refusal(node, pod_set) for node in self.nodes)
            numbers = np.fromiter((-1 if each is None else _NUMBER[each] for each in found), np.int64, len(self.nodes))
            _remember(self._refusals, key, numbers)
        return numbers

    def refusal(self, node: Node, pod_set: PodSetToPlace) -> NodeRefusal | None:
        """Return why a node does not accept the pod now, or None."""
        if node.name in pod_set.closed_nodes:
            return NodeRefusal.NODE_RESERVED
        if not node.ready:
            return NodeRefusal.NODE_NOT_READY
        tolerations = (*pod_set.tolerations, *pod_set.flavor_tolerations)
        if node.unschedulable and not tolerates(_UNSCHEDULABLE_TAINT, tolerations):
            return NodeRefusal.NODE_UNSCHEDULABLE
        if untolerated_taint(node.taints, tolerations) is not None:
            return NodeRefusal.NODE_TAINTED
        return None


def _selects(pod_set: PodSetToPlace, node: Node) -> bool:
    labels = node.selectable_labels
    return (
        matches_node_selector(pod_set.flavor_labels, labels)
        and matches_node_selector(pod_set.node_selector, labels)
        and (pod_set.affinity is None or pod_set.affinity.matches(node.name, labels))
    )


def selection_key(pod_set: PodSetToPlace) -> Hashable:
    """Return a key of the nodes that a pod set selects, apart from `allowed_nodes`."""
    return (
        tuple(sorted(pod_set.flavor_labels.items())),
        tuple(sorted(pod_set.node_selector.items())),
        pod_set.affinity,
    )


def _remember(known: dict[Hashable, NDArray[Any]], key: Hashable, value: NDArray[Any]) -> None:
    if len(known) >= _MAX_REMEMBERED:
        known.clear()
    known[key] = value
