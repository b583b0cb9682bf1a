"""Chooses nodes for pods that request no devices: as few nodes as possible, by the number of such pods that each can
hold.

Nodes without devices come first, so that the cpu of nodes with devices is left to pods that need both. With `binpack`,
the fitting node with the least room left comes first; with `spread`, the one with the most room.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heapreplace

import numpy as np

from scheduling.devices.arrays import Booleans, Integers
from scheduling.devices.requests.policy import Policy

_FAR = np.iinfo(np.int64).max


def fill(room: Integers, with_devices: Booleans, count: int, policy: str) -> Iterator[tuple[int, int]]:
    """Return (row, number of pods) for as many of `count` pods as there is room for. `room` is the number of pods per
    row."""
    if count == 1 and policy != Policy.SPREAD:
        row = _tightest(room, with_devices)
        if row is not None:
            yield row, 1
        return
    for group in (room * ~with_devices, room * with_devices):
        rows = np.flatnonzero(group)
        if count and len(rows):
            taken = (_evenly if policy == Policy.SPREAD else _packed)(rows.tolist(), group[rows].tolist(), count)
            for row, pods in taken:
                count -= pods
                yield row, pods


def _tightest(room: Integers, with_devices: Booleans) -> int | None:
    """Return the row with the least room for at least one pod, those without devices first."""
    half = _FAR // 2
    rank = np.where(room > 0, np.minimum(room, half) + with_devices * half, _FAR)
    row = int(np.argmin(rank))
    return row if room[row] > 0 else None


def _packed(rows: Sequence[int], room: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Return the tightest of the rows that can take all remaining pods; otherwise the row with the most room."""
    order = sorted(range(len(rows)), key=lambda place: (-room[place], rows[place]))
    taken: list[tuple[int, int]] = []
    for number, place in enumerate(order):
        if room[place] >= count:
            fitting = [other for other in order[number:] if room[other] >= count]
            best = min(fitting, key=lambda other: (room[other], rows[other]))
            return [*taken, (rows[best], count)]
        taken.append((rows[place], room[place]))
        count -= room[place]
    return taken


def _evenly(rows: Sequence[int], room: Sequence[int], count: int) -> list[tuple[int, int]]:
    """Send each pod to the row that has the most room at that time."""
    heap = [(-free, row) for row, free in zip(rows, room, strict=True)]
    heapify(heap)
    taken: dict[int, int] = {}
    for _ in range(min(count, sum(room))):
        free, row = heap[0]
        taken[row] = taken.get(row, 0) + 1
        heapreplace(heap, (free + 1, row))
    return list(taken.items())
