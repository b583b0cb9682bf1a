"""The times at which workloads may have a step due without any other change."""

from __future__ import annotations

import heapq
from collections.abc import Mapping


class Timers:
    """Deadlines by workload key. A deadline stays until it is replaced, because an extra check does no harm."""

    def __init__(self) -> None:
        self._deadlines: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []

    def replace(self, deadlines: Mapping[str, float | None]) -> None:
        """Replace the deadlines of these workloads; None removes one."""
        for key, at in deadlines.items():
            if at is None:
                self._deadlines.pop(key, None)
            elif self._deadlines.get(key) != at:
                self._deadlines[key] = at
                heapq.heappush(self._heap, (at, key))

    def first(self) -> float | None:
        """Return the earliest deadline."""
        self._forget_old()
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> set[str]:
        """Return the workloads whose deadline has passed."""
        self._forget_old()
        due: dict[str, float] = {}
        while self._heap and self._heap[0][0] <= now:
            at, key = heapq.heappop(self._heap)
            if self._deadlines.get(key) == at:
                due[key] = at
        for key, at in due.items():  # each stays due until its deadline is replaced
            heapq.heappush(self._heap, (at, key))
        return set(due)

    def _forget_old(self) -> None:
        """Drop entries at the top that were replaced or removed since."""
        while self._heap and self._deadlines.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
