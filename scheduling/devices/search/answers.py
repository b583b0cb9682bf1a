"""Caches the answers for whole workloads until a node that they depend on changes.

A cycle asks about the same workload several times: for each flavor, for its assignment, and before it is admitted.
Equal workloads of other ClusterQueues and of later cycles need the same answers. An answer depends only on the nodes
that the pods select, so it is valid until something is reserved or released on one of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from scheduling.devices.arrays import Booleans
from scheduling.devices.table import ChangeLog
from scheduling.model.placement import Placement, PlacementRefusal

_MAX_KEPT = 512


class Unplaced(NamedTuple):
    """The first pod that has no place, without the reason."""

    pod_set: str
    replica: int


Answer = Placement | PlacementRefusal | Unplaced


class _Kept(NamedTuple):
    """An answer, the position in the log at which it was right, and which rows each pod set selects."""

    answer: Answer
    mark: int
    selected: Sequence[Booleans]


class KeptAnswers:
    """The answers of one table. The least recently used ones are dropped."""

    def __init__(self) -> None:
        self._changes = ChangeLog()
        self._kept: dict[Hashable, _Kept] = {}

    def clear(self) -> None:
        """Drop all answers, because something besides the reservations changed."""
        self._kept.clear()

    def note(self, row: int) -> None:
        """Note that a row has changed beyond the current search."""
        self._changes.note(row)

    def of(self, key: Hashable) -> Answer | None:
        """Return the answer, or None if there is none or a node that the pods select has changed since."""
        kept = self._kept.pop(key, None)
        if kept is None:
            return None
        mark = self._changes.mark
        if kept.mark != mark:
            rows = self._changes.since(kept.mark)
            if rows is None or any(selected[rows].any() for selected in kept.selected):
                return None
        self._kept[key] = kept._replace(mark=mark)
        return kept.answer

    def keep(self, key: Hashable, answer: Answer, selected: Sequence[Booleans]) -> None:
        while len(self._kept) >= _MAX_KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = _Kept(answer, self._changes.mark, selected)
