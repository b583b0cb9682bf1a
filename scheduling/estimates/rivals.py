"""Two simple rivals of our estimates: the mean wait of the last hour, and a plan with the longest run times."""

from __future__ import annotations

from collections import deque
from typing import Final

import numpy as np

from scheduling.estimates.forward_starts import ForwardRun
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import Levels, Snapshot

_WINDOW_SECONDS: Final = 3600.0


class RecentWaits:
    """The waits of the workloads that started in the last hour."""

    def __init__(self) -> None:
        self._starts: deque[tuple[float, float]] = deque()

    def started(self, at: float, waited: float) -> None:
        """Record a start; starts must come in order of time."""
        self._starts.append((at, waited))

    def mean(self, now: float) -> float:
        """Return the mean wait in seconds of the starts of the last hour; 0 without any."""
        while self._starts and self._starts[0][0] <= now - _WINDOW_SECONDS:
            self._starts.popleft()
        return sum(waited for _, waited in self._starts) / len(self._starts) if self._starts else 0.0


def plan_with_longest_runs(snapshot: Snapshot, history: RunHistory) -> float:
    """Return the seconds until the last waiting workload starts, if each run lasts as long as the longest of similar
    workloads that has ended. A run that is older than that ends now. Infinite if it never starts."""
    ends = [[max(_longest(history, each.levels) - (snapshot.now - each.since), 0.0) for each in snapshot.running]]
    lasts = [[_longest(history, each.levels) for each in snapshot.waiting]]
    run = ForwardRun(
        np.array(snapshot.free, dtype=np.int64),
        np.array(ends, dtype=np.float64).reshape(1, -1),
        np.array([each.place for each in snapshot.running], dtype=np.int64),
        np.array([each.amounts for each in snapshot.running], dtype=np.int64).reshape(-1, len(snapshot.free[0])),
        np.array(lasts, dtype=np.float64),
        np.array([each.amounts for each in snapshot.waiting], dtype=np.int64),
    )
    return float(run.run(until=len(snapshot.waiting) - 1)[0, -1])


def _longest(history: RunHistory, levels: Levels) -> float:
    return next((longest for level in levels if (longest := history.longest(level)) is not None), 0.0)
