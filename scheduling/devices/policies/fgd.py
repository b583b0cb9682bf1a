"""The policy `fgd`: chooses the node and device where fragmentation grows least (fragmentation gradient descent)."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.devices.arrays import Booleans, Doubles, Integers
from scheduling.devices.policies.fragmentation import FragmentationModel, fgd_scores
from scheduling.devices.policies.ranking import ScoreCache, ShapeScores, changed_rows
from scheduling.devices.policies.typical_pods import PodMix, PodShape, pod_shape
from scheduling.devices.table import DeviceTable
from scheduling.model.placement import PodSetToPlace
from scheduling.model.vendor import DeviceVendor


@dataclass(slots=True)
class FragmentationRanking:
    """FGD. Without typical pods all places are equal, and the smallest node name wins."""

    vendors: Mapping[str, DeviceVendor]
    mix: PodMix
    _version: int = 0
    _model: FragmentationModel | None = None
    _model_seen: int = 0
    _cache: ScoreCache = field(default_factory=ScoreCache)

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Doubles:
        """FGD's integer scores."""
        return self._scores(table, pod_shape(pod_set)).scores

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Rank devices for the pod's largest request: the best device first, then the fullest."""
        best = self._scores(table, pod_shape(pod_set)).columns[row]
        idle = self.model(table).idle[row]
        order = [-idle[column] for column in range(len(table.nodes[row].devices))]
        if best >= 0:
            order[best] = 1.0
        return order

    def basis(self) -> Hashable:
        """Return the typical pods."""
        self.mix.now()
        return self.mix.version

    def model(self, table: DeviceTable) -> FragmentationModel:
        """Return the current fragmentation of the table."""
        pods = self.mix.now()
        if self._model is None or self._model.table is not table or self.mix.version != self._version:
            self._version = self.mix.version
            self._model = FragmentationModel(table, pods, self.vendors)
            self._cache.clear()
        elif self._model_seen < table.changes.mark:
            self._model.refresh(changed_rows(table, self._model_seen))
        self._model_seen = table.changes.mark
        return self._model

    def _scores(self, table: DeviceTable, shape: PodShape) -> ShapeScores:
        model = self.model(table)
        known, rows = self._cache.outdated(table, shape)
        if len(rows):
            self._score(model, shape, rows, known)
        return known

    def _score(self, model: FragmentationModel, shape: PodShape, rows: Integers, into: ShapeScores) -> None:
        request = shape.request
        if request is None:
            after = model.after(rows, np.zeros((len(rows), 0), dtype=np.int64), shape.cpu_milli, None)
            into.scores[rows] = fgd_scores(model.fragmentation[rows], after)
            return
        into.scores[rows], into.columns[rows] = -1, -1
        rules = self.vendors[request.vendor].rules
        serving = model.table.serving_devices(request, rules, shape.constraints, False, rows)
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


def _first_of_each(idle: Doubles) -> Booleans:
    """In each row, the first column of each finite value. Equal devices of a node need to be examined once."""
    first = np.isfinite(idle)
    for column in range(1, idle.shape[1]):
        first[:, column] &= (idle[:, :column] != idle[:, column : column + 1]).all(axis=1)
    return first
