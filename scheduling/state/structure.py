"""Restores the objects that the configuration defines: the quota tree, the ClusterQueues, and the objects that they
name.

A trial may change quotas, cohorts, flavors and queues any number of times. Its first such change copies the structure
once, values included, so that undoing does not depend on how the tree was rebuilt in between. A batch that changes
workloads only copies nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Any, Final

from scheduling.quota.cells import Cell, CohortNode, QuotaNode
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.hierarchy import Hierarchy
from scheduling.state.state import State

_OBJECTS: Final = ("namespaces", "flavors", "topologies", "cohorts", "checks", "local_queues", "cluster_queues")
_CELL: Final = tuple(name for name in Cell.__slots__ if name not in ("key", "node"))
_NODE: Final = ("parent", "height", "depth", "weight", "share_rows")
_QUEUE: Final = (
    "active",
    "can_preempt",
    "generation",
    "group_of",
    "groups",
    "inactive_message",
    "inactive_reason",
    "ordered_across",
    "protections",
    "spec",
    "strict",
    "topology_only",
    "user_limits",
    "weights",
)

_Fields = tuple[Any, tuple[str, ...], tuple[Any, ...]]
"""An object, names of its fields, and their values."""


class Structure:
    """The configuration objects of a state and all data derived from them, as one undoable unit."""

    def __init__(self, state: State, hierarchy: Hierarchy) -> None:
        self._state = state
        self._hierarchy = hierarchy

    def snapshot(self) -> tuple[Any, ...]:
        """Return a copy of the objects, of the tree with quota and usage of each cell, and of the hierarchy's own
        notes."""
        state = self._state
        nodes = [*(cq.node for cq in state.cluster_queues.values()), *state.tree.cohorts.values()]
        return (
            [(name, dict(getattr(state, name))) for name in _OBJECTS],
            (state.tree.cohorts, state.tree.cyclic, state.members, self._hierarchy.snapshot()),
            [(node, dict(node.cells)) for node in nodes],
            [*_queue_fields(state.cluster_queues.values()), *_node_fields(nodes)],
            [(cq, cq.queue.usage_of) for cq in state.cluster_queues.values()],
        )

    def restore(self, values: tuple[Any, ...]) -> None:
        """Restore a snapshot. The dictionaries of the state stay the same objects, because parts of the cycle hold
        references to them."""
        objects, tree, cells, fields, orders = values
        for name, saved in objects:
            found = getattr(self._state, name)
            found.clear()
            found.update(saved)
        state = self._state
        state.tree.cohorts, state.tree.cyclic, state.members, notes = tree
        self._hierarchy.restore(notes)
        for node, saved in cells:
            node.cells = dict(saved)
            if isinstance(node, CohortNode):
                node.forget_children()
        for thing, names, saved in fields:
            for name, value in zip(names, saved, strict=True):
                setattr(thing, name, value)
        for cq, usage_of in orders:
            cq.queue.order_by_usage(usage_of)
            cq.forget_ranking()
        state.matcher.clear()


_values_of_queue = attrgetter(*_QUEUE)
_values_of_node = attrgetter(*_NODE)
_values_of_cell = attrgetter(*_CELL)


def _queue_fields(queues: Iterable[ClusterQueueState]) -> list[_Fields]:
    return [(cq, _QUEUE, _values_of_queue(cq)) for cq in queues]


def _node_fields(nodes: Iterable[QuotaNode]) -> list[_Fields]:
    found: list[_Fields] = []
    for node in nodes:
        found.append((node, _NODE, _values_of_node(node)))
        found += [(cell, _CELL, _values_of_cell(cell)) for cell in node.cells.values()]
    return found
