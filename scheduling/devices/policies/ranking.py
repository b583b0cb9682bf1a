"""The interface of rankings of nodes and devices beyond HAMi's own policies."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from scheduling.devices.arrays import Booleans, Doubles, Integers
from scheduling.devices.policies.typical_pods import PodShape
from scheduling.devices.table import DeviceTable
from scheduling.model.placement import PodSetToPlace


class Ranking(Protocol):
    """A policy: how good each node is for a pod, and each device of the chosen node."""

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Doubles:
        """Return a score per node of the table; larger is better. Scores of nodes outside `fitting` are ignored."""
        ...

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Return a score per device of the node; larger ones are tried first, equal ones in inventory order."""
        ...

    def basis(self) -> Hashable | None:
        """Return the values that the order of a node's devices depends on, besides that node and the pod; None if it
        is random."""
        ...


@dataclass(slots=True)
class ShapeScores:
    """Per node, the score of one pod shape and its first device (-1 for none), with the position in the table's log."""

    scores: Doubles
    columns: Integers
    seen: int


@dataclass(slots=True)
class ScoreCache:
    """Scores of pod shapes, cached so that a change of one node costs one row per shape."""

    _shapes: dict[PodShape, ShapeScores] = field(default_factory=dict)

    def clear(self) -> None:
        """Drop all scores, because something other than the nodes' usage changed."""
        self._shapes.clear()

    def outdated(self, table: DeviceTable, shape: PodShape) -> tuple[ShapeScores, Integers]:
        """Return the scores of a shape, and the rows that the caller must recompute now."""
        known = self._shapes.get(shape)
        if known is None:
            count = len(table.nodes)
            known = ShapeScores(np.zeros(count), np.full(count, -1, dtype=np.int64), table.changes.mark)
            self._shapes[shape] = known
            return known, np.arange(count)
        seen, known.seen = known.seen, table.changes.mark
        return known, changed_rows(table, seen)


def changed_rows(table: DeviceTable, mark: int) -> Integers:
    """Return the rows that changed since a mark; all rows if the log does not reach back that far."""
    if mark == table.changes.mark:
        return np.zeros(0, dtype=np.int64)
    rows = table.changes.since(mark)
    return np.arange(len(table.nodes)) if rows is None else rows
