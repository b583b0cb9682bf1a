"""Runs a World forward with cycles: running workloads end after drawn times, and their quota and devices go to waiting
ones, by all rules of the scheduler."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from math import inf
from typing import Final

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World

_STEP_SHARE: Final = 0.02
"""Ends that follow each other within this share of the elapsed time happen at once: later starts are known less well,
and a run takes some hundred steps, however many workloads end."""
_MIN_STEP_SECONDS: Final = 1.0

MAX_WINDOW_SECONDS: Final = 1_209_600
"""Windows of reservations that start or end later than two weeks from now are not played: recurring ones never end."""

GoOn = Callable[[], bool]


class ForwardCycles:
    """One forward run. `ends` are the seconds from now until each running workload ends; `lasts` how long each workload
    runs once it starts. Workloads without a length run for ever."""

    def __init__(self, world: World, now: float, ends: Mapping[str, float], lasts: Mapping[str, float]) -> None:
        self._world = world
        self._now = now
        self._lasts = lasts
        self._until = dict(ends)
        self._ends = sorted((at, key) for key, at in ends.items())
        self.starts: dict[str, float] = {}
        """Seconds from now to the first start of each workload that started."""
        self.is_cut = False
        """Whether the run ended because its time was over."""

    def run(self, asked: frozenset[str], go_on: GoOn) -> None:
        """Run until all workloads that are asked for have started, none ends any more, or `go_on` returns False, which
        is called between cycles. The World is unchanged afterwards."""
        point = self._world.savepoint()
        try:
            elapsed: float | None = 0.0
            while elapsed is not None and not self.is_cut:
                self._cycles(elapsed, go_on)
                elapsed = None if asked <= self.starts.keys() else self._next(elapsed)
        finally:
            self._world.undo(point)

    def _cycles(self, elapsed: float, go_on: GoOn) -> None:
        for result in run_until_idle(self._world, self._now + elapsed):
            self._note(result, elapsed)
            if not go_on():
                self.is_cut = True
                return

    def _note(self, result: CycleResult, elapsed: float) -> None:
        for admission in result.admissions:
            if not admission.second_pass:
                self._started(admission.workload, elapsed)
        lost = [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]
        for key in lost:
            self._until.pop(key, None)
            self._world.release_workload(key, self._now + elapsed)

    def _started(self, key: str, elapsed: float) -> None:
        job = self.job(key)
        self.starts.setdefault(job, elapsed)
        length = self._lasts.get(job)
        if length is not None:
            self._until[key] = elapsed + length
            heapq.heappush(self._ends, (elapsed + length, key))

    def job(self, key: str) -> str:
        """Return the workload for which a variant runs (concurrent admission); of others, the key itself."""
        found = self._world.workload(key)
        return found.parent or key if found is not None else key

    def _next(self, elapsed: float) -> float | None:
        """Go to the next end or to the next window of a reservation that wakes a queue or evicts a holder; return the
        seconds from now, None if there is neither."""
        change = self._world.next_window_effect(self._now + elapsed)
        at = None if change is None else change - self._now
        while self._ends and self._until.get(self._ends[0][1]) != self._ends[0][0]:
            heapq.heappop(self._ends)
        if at is None or at > MAX_WINDOW_SECONDS or (self._ends and self._ends[0][0] <= at):
            return self._end_next(inf if at is None else at)
        self._world.advance(self._now + at)
        for key in self._world.evict_for_windows(self._now + at):
            self._until.pop(key, None)
            self._world.release_workload(key, self._now + at)
        return at

    def _end_next(self, last: float = inf) -> float | None:
        """End the next workload, and others whose end follows soon, none after `last`; return the seconds from now.
        None if none ends."""
        limit, elapsed = inf, None
        while self._ends and self._ends[0][0] <= limit:
            at, key = heapq.heappop(self._ends)
            if self._until.get(key) != at:
                continue  # it was preempted meanwhile, and waits or runs anew
            del self._until[key]
            self._end(key, self._now + at)
            limit = min(limit, last, at + max(_MIN_STEP_SECONDS, _STEP_SHARE * at))
            elapsed = at
        return elapsed

    def _end(self, key: str, at: float) -> None:
        """Finish a workload; one that is evicted waits again when its pods have stopped."""
        found = self._world.workload(key)
        if found is not None and found.status is WorkloadStatus.EVICTED:
            self._world.release_workload(key, at)
        else:
            self._world.finish_workload(key, at)
