"""Rankings of nodes and devices beside HAMi's own: what a policy's word may stand for."""

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
    """What a policy must say: how good each node is for a pod, and each device of the node that is taken."""

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Doubles:
        """Per node of the table, larger is better; nodes that are not `fitting` may get any score."""
        ...

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Per device of the node, larger is tried first; equal devices are tried in inventory order."""
        ...

    def basis(self) -> Hashable | None:
        """What the order of a node's devices depends on beside that node and the pod; None for chance."""
        ...


@dataclass(slots=True)
class ShapeScores:
    """Per node the score of one pod shape and the device that it takes first (-1 for none), and which of the table's
    changes are in them."""

    scores: Doubles
    columns: Integers
    seen: int


@dataclass(slots=True)
class ScoreCache:
    """The scores of the shapes that were asked for, so that a change of one node costs one row of each."""

    _shapes: dict[PodShape, ShapeScores] = field(default_factory=dict)

    def clear(self) -> None:
        """Forget all: something else than the nodes' usage changed."""
        self._shapes.clear()

    def outdated(self, table: DeviceTable, shape: PodShape) -> tuple[ShapeScores, Integers]:
        """The scores of a shape and the rows that the caller must compute anew, which count as done then."""
        known = self._shapes.get(shape)
        if known is None:
            count = len(table.nodes)
            known = ShapeScores(np.zeros(count), np.full(count, -1, dtype=np.int64), table.changes.mark)
            self._shapes[shape] = known
            return known, np.arange(count)
        seen, known.seen = known.seen, table.changes.mark
        return known, changed_rows(table, seen)


def changed_rows(table: DeviceTable, mark: int) -> Integers:
    """The rows that changed since a mark; all of them if that is no longer known."""
    if mark == table.changes.mark:
        return np.zeros(0, dtype=np.int64)
    rows = table.changes.since(mark)
    return np.arange(len(table.nodes)) if rows is None else rows
