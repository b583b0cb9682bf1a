"""The policy `bid-price`: chooses the node and devices that lose the least value to typical pods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from scheduling.devices.arrays import Booleans, Doubles, Integers
from scheduling.devices.policies.node_worth import NodeWorth
from scheduling.devices.policies.prices import WHOLE
from scheduling.devices.policies.ranking import ScoreCache, ShapeScores, changed_rows
from scheduling.devices.policies.typical_pods import PodMix, PodShape, pod_shape
from scheduling.devices.table import DeviceTable
from scheduling.model.device import DeviceRequest
from scheduling.model.placement import PodSetToPlace
from scheduling.model.vendor import DeviceVendor

STEP = 0.01
"""Losses are rounded to a hundredth of a device, so that near ties fill one node after another, as with fgd."""

_FINE = 1e-6
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a pod: the lost worth in steps, and the number of devices or parts of devices that it gets."""

    lost: float
    given: float


@dataclass(slots=True)
class BidPriceRanking:
    """Bid-price control. Without typical pods, part of a device is worth its size, so the fullest device wins."""

    vendors: Mapping[str, DeviceVendor]
    mix: PodMix
    _version: int = 0
    _worth: NodeWorth | None = None
    _seen: int = 0
    _cache: ScoreCache = field(default_factory=ScoreCache)

    def node_scores(self, table: DeviceTable, pod_set: PodSetToPlace, fitting: Booleans) -> Doubles:
        """Return the negated loss of each node, in steps."""
        shape = pod_shape(pod_set)
        worth = self.worth(table)
        known, rows = self._cache.outdated(table, shape)
        if len(rows):
            self._score(worth, shape, rows, known)
        return known.scores

    def device_scores(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Sequence[float]:
        """Rank devices for the pod's largest request: the smallest loss first, then the fullest device."""
        shape = pod_shape(pod_set)
        devices = len(table.nodes[row].devices)
        if shape.request is None:
            return [0.0] * devices
        keys, _ = self._keys(self.worth(table), shape, shape.request, np.array([row]))
        return [-float(key) for key in keys[0, :devices].tolist()]

    def basis(self) -> Hashable:
        """Return the typical pods."""
        self.mix.now()
        return self.mix.version

    def price(self, table: DeviceTable, row: int, pod_set: PodSetToPlace) -> Price:
        """Return the price of a pod on one node that can take it."""
        lost = -STEP * float(self.node_scores(table, pod_set, table.has_devices)[row])
        shape, rows = pod_shape(pod_set), np.array([row])
        if shape.request is None:
            return Price(lost, 0.0)
        worth = self.worth(table)
        keys, _ = self._keys(worth, shape, shape.request, rows)
        rests, _ = worth.after(rows, shape.request)
        taken = np.argsort(keys[0], kind="stable")[: shape.request.count]
        return Price(lost, float((worth.rests[row] - rests[0])[taken].sum()) / WHOLE)

    def worth(self, table: DeviceTable) -> NodeWorth:
        """Return the current worth of the table's nodes."""
        pods = self.mix.now()
        if self._worth is None or self._worth.table is not table or self.mix.version != self._version:
            self._version = self.mix.version
            self._worth = NodeWorth(table, pods, self.vendors)
            self._cache.clear()
        elif self._seen < table.changes.mark:
            self._worth.refresh(changed_rows(table, self._seen))
        self._seen = table.changes.mark
        return self._worth

    def _score(self, worth: NodeWorth, shape: PodShape, rows: Integers, into: ShapeScores) -> None:
        losses = np.zeros(len(rows))
        if shape.request is not None:
            keys, of_devices = self._keys(worth, shape, shape.request, rows)
            taken = np.argsort(keys, axis=1, kind="stable")[:, : shape.request.count]
            losses = np.take_along_axis(of_devices, taken, axis=1).sum(axis=1)
        into.scores[rows] = -np.rint(worth.losses(rows, losses, shape.cpu_milli) / STEP)

    def _keys(
        self, worth: NodeWorth, shape: PodShape, request: DeviceRequest, rows: Integers
    ) -> tuple[Integers, Doubles]:
        """For every device of the rows, a sort key (loss, then the remainder) and the loss."""
        rules = self.vendors[request.vendor].rules
        serving = worth.table.serving_devices(request, rules, shape.constraints, False, rows)
        rests, losses = worth.after(rows, request)
        keys = np.rint(losses / _FINE).astype(np.int64) * 1001 + rests
        return np.where(serving, keys, _NEVER), np.where(serving, losses, 0.0)
