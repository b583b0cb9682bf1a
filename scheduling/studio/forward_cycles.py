"""Runs a World forward with cycles: running workloads end after drawn times, and their quota and devices go to waiting
ones, by all rules of the scheduler."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from typing import Final, Protocol

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World


@dataclass(frozen=True, slots=True)
class Steps:
    """The precision of a forward run. Ends within this share of the elapsed time, or within these seconds, of each
    other happen at once. Later starts are less certain, and a run takes some hundred steps, however many workloads end.
    """

    share: float = 0.02
    min_seconds: float = 1.0


FINE_STEPS: Final = Steps()
MAX_WINDOW_SECONDS: Final = 1_209_600
"""Windows of reservations that start or end later than two weeks from now are not played: recurring ones never end."""

GoOn = Callable[[], bool]


class Log(Protocol):
    """The events of a forward run in order of time; `at` is in seconds from its beginning."""

    def started(self, key: str, cluster_queue: str, at: float) -> None:
        """Note that a workload got quota."""

    def stopped(self, key: str, at: float) -> None:
        """Note that a workload lost its quota, and waits again."""

    def ended(self, key: str, at: float) -> None:
        """Note that a workload ended by itself. It still holds its quota."""


class NoLog:
    """Notes nothing."""

    def started(self, key: str, cluster_queue: str, at: float) -> None:
        pass

    def stopped(self, key: str, at: float) -> None:
        pass

    def ended(self, key: str, at: float) -> None:
        pass


class ForwardCycles:
    """One forward run.

    `ends` are the seconds from now until each running workload ends; `lasts` is how long each workload runs once it
    starts. Workloads without a length run forever. Events later than `horizon` seconds from now are left out.
    """

    def __init__(
        self,
        world: World,
        now: float,
        ends: Mapping[str, float],
        lasts: Mapping[str, float],
        log: Log | None = None,
        horizon: float = inf,
        steps: Steps = FINE_STEPS,
    ) -> None:
        self._world = world
        self._now = now
        self._log = log or NoLog()
        self._horizon = horizon
        self._steps = steps
        self._lasts = lasts
        self._until = dict(ends)
        self._ends = sorted((at, key) for key, at in ends.items())
        self.starts: dict[str, float] = {}
        """Seconds from now to the first start of each workload that started."""
        self.is_cut = False
        """Whether the run ended because its time was over."""
        self.reached = 0.0
        """Seconds from now to the last event that was played."""

    def run(self, asked: frozenset[str], go_on: GoOn) -> None:
        """Run until all requested workloads have started, no running workload ends any more, or `go_on` (called between
        cycles) returns False. The World is unchanged afterwards."""
        point = self._world.savepoint()
        try:
            self.play(lambda: asked <= self.starts.keys(), go_on)
        finally:
            self._world.undo(point)

    def play(self, is_over: GoOn, go_on: GoOn) -> None:
        """Run until all is decided, no running workload ends any more, or `go_on` returns False. The caller undoes the
        changes."""
        elapsed: float | None = 0.0
        while elapsed is not None and not self.is_cut:
            self.reached = elapsed
            self._cycles(elapsed, go_on)
            elapsed = None if is_over() else self._next(elapsed)

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
                self._log.started(admission.workload, admission.cluster_queue, elapsed)
        lost = [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]
        for key in lost:
            self._stop(key, elapsed)

    def _stop(self, key: str, elapsed: float) -> None:
        """A workload loses its quota, and waits again."""
        self._until.pop(key, None)
        self._log.stopped(key, elapsed)
        self._world.release_workload(key, self._now + elapsed)

    def _started(self, key: str, elapsed: float) -> None:
        job = self.job(key)
        self.starts.setdefault(job, elapsed)
        length = self._lasts.get(job)
        if length is not None:
            self._until[key] = elapsed + length
            heapq.heappush(self._ends, (elapsed + length, key))

    def job(self, key: str) -> str:
        """Return the workload for which a variant runs (concurrent admission); for other workloads, the key itself."""
        found = self._world.workload(key)
        return found.parent or key if found is not None else key

    def _next(self, elapsed: float) -> float | None:
        """Go to the next end or to the next window of a reservation that wakes a queue or evicts a holder; return the
        seconds from now, None if there is neither before the horizon."""
        change = self._world.next_window_effect(self._now + elapsed)
        at = None if change is None else change - self._now
        while self._ends and self._until.get(self._ends[0][1]) != self._ends[0][0]:
            heapq.heappop(self._ends)
        if at is None or at > min(MAX_WINDOW_SECONDS, self._horizon) or (self._ends and self._ends[0][0] <= at):
            return self._end_next(min(self._horizon, inf if at is None else at))
        self._world.advance(self._now + at)
        for key in self._world.evict_for_windows(self._now + at):
            self._stop(key, at)
        return at

    def _end_next(self, last: float = inf) -> float | None:
        """End the next workload, and others whose end follows soon, none after `last`; return the seconds from now.
        None if none ends."""
        limit, elapsed = self._horizon, None
        while self._ends and self._ends[0][0] <= limit:
            at, key = heapq.heappop(self._ends)
            if self._until.get(key) != at:
                continue  # it was preempted meanwhile, and waits or runs again
            del self._until[key]
            self._end(key, at)
            limit = min(limit, last, at + max(self._steps.min_seconds, self._steps.share * at))
            elapsed = at
        return elapsed

    def _end(self, key: str, elapsed: float) -> None:
        """Finish a workload; one that is evicted waits again when its pods have stopped."""
        found = self._world.workload(key)
        if found is not None and found.status is WorkloadStatus.EVICTED:
            self._stop(key, elapsed)
        else:
            self._log.ended(key, elapsed)
            self._world.finish_workload(key, self._now + elapsed)
