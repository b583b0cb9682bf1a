"""Rankings of nodes and cards beside HAMi's own: what a policy's word may stand for, and FGD among them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from scheduler.core.device_vendor import DeviceVendor
from scheduler.core.fragmentation import (
    FragmentationModel,
    TaskShape,
    TypicalTask,
    fgd_scores,
    task_shape,
    typical_tasks,
)
from scheduler.core.placement_model import PodSetToPlace
from scheduler.core.placement_table import DeviceTable

Scores = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

_DRAW_AFTER = 1_000


class Ranking(Protocol):
    """What a policy must say: how good each node is for a pod, and each card of the node that is taken."""

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Scores:
        """Per node of the table, larger is better; nodes that are not `fitting` may get any score."""
        ...

    def card_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Per card of the node, larger is tried first; equal cards are tried in inventory order."""
        ...


@dataclass(slots=True)
class _Remembered:
    """The scores of one task shape, and up to where the table's changes are in them."""

    scores: Scores
    columns: Integers
    seen: int


@dataclass(slots=True)
class FragmentationRanking:
    """Fragmentation gradient descent: the node and the card where fragmentation grows least (FGD).

    Without typical tasks every place is equal, and the smallest node name wins. They are set, or drawn from a `source`
    of shapes, one per pod: at first, and again after 1,000 changes of nodes.
    """

    vendors: Mapping[str, DeviceVendor]
    tasks: Sequence[TypicalTask] = ()
    source: Callable[[], Iterable[TaskShape]] | None = None
    _drawn: int = 0
    _model: FragmentationModel | None = None
    _model_seen: int = 0
    _remembered: dict[TaskShape, _Remembered] = field(default_factory=dict)

    def set_tasks(self, tasks: Sequence[TypicalTask]) -> None:
        """Take other typical tasks."""
        self.tasks = tasks
        self._model = None

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Scores:
        """FGD's integer scores."""
        return self._scores(table, task_shape(pod_set)).scores

    def card_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """The best card for the pod's largest request first, then the fullest."""
        best = self._scores(table, task_shape(pod_set)).columns[row]
        idle = self.model(table).idle[row]
        order = [-idle[column] for column in range(len(table.nodes[row].devices))]
        if best >= 0:
            order[best] = 1.0
        return order

    def model(self, table: DeviceTable) -> FragmentationModel:
        """The fragmentation of the table as it is now."""
        if self._model is None or self._model.table is not table or self._must_draw(table):
            if self.source is not None:
                self.tasks = typical_tasks(self.source())
                self._drawn = table.changes.mark
            self._model = FragmentationModel(table, self.tasks, self.vendors)
            self._model_seen = table.changes.mark
            self._remembered.clear()
        elif self._model_seen < table.changes.mark:
            self._model.refresh(_changed(table, self._model_seen))
            self._model_seen = table.changes.mark
        return self._model

    def _must_draw(self, table: DeviceTable) -> bool:
        return self.source is not None and table.changes.mark - self._drawn >= _DRAW_AFTER

    def _scores(self, table: DeviceTable, shape: TaskShape) -> _Remembered:
        model = self.model(table)
        remembered = self._remembered.get(shape)
        if remembered is None:
            count = len(table.nodes)
            remembered = _Remembered(np.zeros(count), np.full(count, -1, dtype=np.int64), 0)
            self._remembered[shape] = remembered
            rows = np.arange(count)
        elif remembered.seen < table.changes.mark:
            rows = _changed(table, remembered.seen)
        else:
            return remembered
        remembered.seen = table.changes.mark
        self._score(model, shape, rows, remembered)
        return remembered

    def _score(self, model: FragmentationModel, shape: TaskShape, rows: Integers, into: _Remembered) -> None:
        request = shape.request
        if request is None:
            after = model.after(rows, np.zeros((len(rows), 0), dtype=np.int64), shape.cpu_milli, None)
            into.scores[rows] = fgd_scores(model.fragmentation[rows], after)
            return
        into.scores[rows], into.columns[rows] = -1, -1
        rules = self.vendors[request.vendor].rules
        serving = model.table.serving_cards(request, rules, shape.constraints, False, rows)
        idle = np.where(serving, model.idle[rows], np.inf)
        if request.count > 1:
            enough = np.flatnonzero(serving.sum(axis=1) >= request.count)
            columns = np.argsort(idle[enough], axis=1, kind="stable")[:, : request.count]
            candidates = rows[enough]
        else:
            which, column = np.nonzero(_first_of_each(idle))
            candidates, columns = rows[which], column[:, None]
        after = model.after(candidates, columns, shape.cpu_milli, request)
        scores = fgd_scores(model.fragmentation[candidates], after)
        best = np.lexsort((-columns[:, 0], scores, candidates))
        into.scores[candidates[best]] = scores[best]
        into.columns[candidates[best]] = columns[best, 0]


def _changed(table: DeviceTable, mark: int) -> Integers:
    rows = table.changes.since(mark)
    return np.arange(len(table.nodes)) if rows is None else rows


def _first_of_each(idle: Scores) -> Booleans:
    """Per row the first column of each finite value: equal cards of a node need one look."""
    first = np.isfinite(idle)
    for column in range(1, idle.shape[1]):
        first[:, column] &= (idle[:, :column] != idle[:, column : column + 1]).all(axis=1)
    return first
