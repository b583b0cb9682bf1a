"""Which nodes may take a pod at all, whatever is free: labels, selector, affinity, taints, readiness, cordon."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from scheduler.core.node import Node
from scheduler.core.node_selection import Taint, TaintEffect, matches_node_selector, tolerates, untolerated_taint
from scheduler.core.placement_model import NodeRefusal, PodSetToPlace

_UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", TaintEffect.NO_SCHEDULE)
_MAX_REMEMBERED = 256

Booleans = NDArray[np.bool_]


@dataclass(slots=True)
class CandidateNodes:
    """Masks over nodes in the order of the device table, remembered per kind of pod set until a node changes."""

    nodes: Sequence[Node]
    _selected: dict[Hashable, Booleans] = field(default_factory=dict)
    _usable: dict[Hashable, Booleans] = field(default_factory=dict)

    def selected(self, pod_set: PodSetToPlace) -> Booleans:
        """The nodes that flavor, topology domain, node selector and affinity ask for."""
        key = _selection_key(pod_set)
        mask = self._selected.get(key)
        if mask is None:
            mask = np.fromiter((_selects(pod_set, node) for node in self.nodes), np.bool_, len(self.nodes))
            _remember(self._selected, key, mask)
        return mask

    def usable(self, pod_set: PodSetToPlace) -> Booleans:
        """The selected nodes that are ready and don't repel the pod."""
        key = (_selection_key(pod_set), pod_set.tolerations, pod_set.flavor_tolerations)
        mask = self._usable.get(key)
        if mask is None:
            mask = self.selected(pod_set).copy()
            for row in np.flatnonzero(mask).tolist():
                mask[row] = self.refusal(self.nodes[row], pod_set) is None
            _remember(self._usable, key, mask)
        return mask

    def refusal(self, node: Node, pod_set: PodSetToPlace) -> NodeRefusal | None:
        """Why a selected node does not take the pod now."""
        if not node.ready:
            return NodeRefusal.NODE_NOT_READY
        tolerations = (*pod_set.tolerations, *pod_set.flavor_tolerations)
        if node.unschedulable and not tolerates(_UNSCHEDULABLE_TAINT, tolerations):
            return NodeRefusal.NODE_UNSCHEDULABLE
        if untolerated_taint(node.taints, tolerations) is not None:
            return NodeRefusal.NODE_TAINTED
        return None


def _selects(pod_set: PodSetToPlace, node: Node) -> bool:
    if pod_set.allowed_nodes is not None and node.name not in pod_set.allowed_nodes:
        return False
    labels = node.selectable_labels
    return (
        matches_node_selector(pod_set.flavor_labels, labels)
        and matches_node_selector(pod_set.node_selector, labels)
        and (pod_set.affinity is None or pod_set.affinity.matches(node.name, labels))
    )


def _selection_key(pod_set: PodSetToPlace) -> Hashable:
    return (
        tuple(sorted(pod_set.flavor_labels.items())),
        tuple(sorted(pod_set.node_selector.items())),
        pod_set.affinity,
        pod_set.allowed_nodes,
    )


def _remember(masks: dict[Hashable, Booleans], key: Hashable, mask: Booleans) -> None:
    if len(masks) >= _MAX_REMEMBERED:
        masks.clear()
    masks[key] = mask
