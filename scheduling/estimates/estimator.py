"""Estimates when waiting workloads start, and learns from each start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduling.estimates.correction import Correction
from scheduling.estimates.forward_starts import ForwardRun
from scheduling.estimates.run_times import MIN_ENDED_RUNS, RunHistory, RunTimes
from scheduling.estimates.snapshot import Levels, RunningWorkload, Snapshot, StartEstimate, Unknown, WaitingWorkload

Floats = npt.NDArray[np.float64]

STAGES_SECONDS: Final = (0, 300, 900, 3600)
"""Ages of waiting at which estimates are kept and judged."""
DRAWS: Final = 60
_LIKENESS: Final = 0.3
"""Correlation of the run times of similar workloads within a draw: they are often long, or short, together."""
_CENTRE: Final = 0.4
_MIN_FORECAST_SECONDS: Final = 30.0


class Estimator:
    """The knowledge about one queue tree: ended runs, and past forecasts with their outcomes."""

    def __init__(self, history: RunHistory | None = None) -> None:
        self.history = RunHistory() if history is None else history
        self._corrections = {stage: Correction() for stage in STAGES_SECONDS}

    def estimate(self, snapshot: Snapshot, index: int, random: np.random.Generator) -> StartEstimate:
        """Return the estimate of the waiting workload at `index`; workloads behind it are left out."""
        cut = Snapshot(snapshot.now, snapshot.free, snapshot.running, snapshot.waiting[: index + 1])
        return self._answer(cut, index, self._starts(cut, random, until=index), _paces(cut)[index])

    def answers(self, snapshot: Snapshot, starts: Floats | None) -> list[StartEstimate]:
        """Return the estimates of all waiting workloads from (D, Q) starts in seconds from now, which any forward run
        may have found: infinite if a workload never starts, None if no run times are known.
        """
        paces = _paces(snapshot)
        return [self._answer(snapshot, index, starts, paces[index]) for index in range(len(snapshot.waiting))]

    def remember(self, key: str, stage: int, made_at: float, estimate: StartEstimate) -> None:
        """Keep an estimate, to learn from it when the workload starts. Unknown estimates are not kept."""
        if estimate.p50 is not None:
            self._corrections[stage].remember(key, made_at, estimate.features, estimate.p50)

    def correction(self, stage: int) -> Correction:
        """Return the past estimates of a stage."""
        return self._corrections[stage]

    def started(self, key: str, at: float) -> None:
        """Record the start of a workload; starts must come in order of time."""
        for correction in self._corrections.values():
            correction.started(key, at)

    def forget(self, key: str) -> None:
        """Drop the forecasts of a workload that left the queue without a start."""
        for correction in self._corrections.values():
            correction.forget(key)

    def _starts(self, snapshot: Snapshot, random: np.random.Generator, until: int | None) -> Floats | None:
        lasts = draw_remaining(self.history, snapshot.running, snapshot.waiting, snapshot.now, random)
        if lasts is None:
            return None
        resources = len(snapshot.waiting[0].amounts)
        running_count = len(snapshot.running)
        run = ForwardRun(
            np.array(snapshot.free, dtype=np.int64).reshape(-1, resources),
            lasts[:, :running_count],
            np.array([each.place for each in snapshot.running], dtype=np.int64),
            np.array([each.amounts for each in snapshot.running], dtype=np.int64).reshape(-1, resources),
            lasts[:, running_count:],
            np.array([each.amounts for each in snapshot.waiting], dtype=np.int64).reshape(-1, resources),
        )
        return run.run(until)

    def _answer(self, snapshot: Snapshot, index: int, starts: Floats | None, pace: float | None) -> StartEstimate:
        if starts is None:
            return StartEstimate(unknown=Unknown.NO_RUN_ENDED)
        drawn = np.sort(starts[:, index])
        if not np.isfinite(drawn[int(0.9 * drawn.size)]):
            return StartEstimate(unknown=Unknown.NO_START_FORESEEN)
        forecast = max(float(drawn[int(_CENTRE * drawn.size)]), _MIN_FORECAST_SECONDS)
        features = (float(np.log(forecast)), float(np.log(forecast if pace is None else pace)))
        stage = stage_of(snapshot.now - snapshot.waiting[index].queued_at)
        found = self._corrections[stage].corrected(features, snapshot.now)
        return StartEstimate(found.p10, found.p50, found.p90, None, found.compared, features)


def draw_remaining(
    history: RunHistory,
    running: Sequence[RunningWorkload],
    waiting: Sequence[WaitingWorkload],
    now: float,
    random: np.random.Generator,
    draws: int = DRAWS,
) -> Floats | None:
    """Return what `draw_lengths` returns; None where none waits."""
    return draw_lengths(history, running, waiting, now, random, draws) if waiting else None


def draw_lengths(
    history: RunHistory,
    running: Sequence[RunningWorkload],
    waiting: Sequence[WaitingWorkload],
    now: float,
    random: np.random.Generator,
    draws: int,
) -> Floats | None:
    """Return (draws, running + waiting) remaining run times in seconds; a waiting workload has not started. None if too
    few runs have ended and some workload declares no run time."""
    workloads: list[RunningWorkload | WaitingWorkload] = [*running, *waiting]
    known = history.count >= MIN_ENDED_RUNS or all(each.declared_seconds for each in workloads)
    if not known:
        return None
    return _remaining(RunTimes(history, running, now), random, workloads, now, draws)


def stage_of(waited: float) -> int:
    """Return the last stage that a workload has reached after waiting for this many seconds."""
    return max(stage for stage in STAGES_SECONDS if stage <= max(waited, 0.0))


def _paces(snapshot: Snapshot) -> list[float | None]:
    """Return for each waiting workload how long the oldest one ahead has waited that requests no more than it: the pace
    of the queue, seen from its head; None without such a workload.
    """
    oldest: dict[tuple[int, ...], float] = {}
    found: list[float | None] = []
    for own in snapshot.waiting:
        ages = [
            snapshot.now - queued_at
            for amounts, queued_at in oldest.items()
            if all(theirs <= ours for theirs, ours in zip(amounts, own.amounts, strict=True))
        ]
        found.append(max(*ages, _MIN_FORECAST_SECONDS) if ages else None)
        oldest[own.amounts] = min(oldest.get(own.amounts, own.queued_at), own.queued_at)
    return found


def _remaining(
    times: RunTimes,
    random: np.random.Generator,
    workloads: Sequence[RunningWorkload | WaitingWorkload],
    now: float,
    draws: int,
) -> Floats:
    """Return (draws, workloads) remaining run times in seconds; a waiting workload has not begun to run."""
    likes: dict[Levels, list[int]] = {}
    for column, each in enumerate(workloads):
        likes.setdefault(each.levels, []).append(column)
    drawn = np.empty((draws, len(workloads)))
    uniform = _uniforms(random, list(likes.values()), len(workloads), draws)
    ages = np.array([max(0.0, now - each.since) if isinstance(each, RunningWorkload) else 0.0 for each in workloads])
    declared = np.array([each.declared_seconds or np.nan for each in workloads])
    for levels, columns in likes.items():
        drawn[:, columns] = times.remaining(levels, ages[columns], declared[columns], uniform[:, columns])
    return drawn


def _uniforms(random: np.random.Generator, groups: Sequence[Sequence[int]], count: int, draws: int) -> Floats:
    """Return (draws, count) uniform numbers, correlated inside each group of columns."""
    shared = np.empty((draws, count))
    for columns in groups:
        shared[:, columns] = random.standard_normal((draws, 1))
    own = random.standard_normal((draws, count))
    return _normal_distribution(np.sqrt(_LIKENESS) * shared + np.sqrt(1 - _LIKENESS) * own)


def _normal_distribution(values: Floats) -> Floats:
    """Return the normal distribution function, to 1e-7 (Abramowitz and Stegun 7.1.26, 1964)."""
    scaled = np.abs(values) / np.sqrt(2.0)
    term = 1.0 / (1.0 + 0.3275911 * scaled)
    series = 0.254829592 + term * (-0.284496736 + term * (1.421413741 + term * (-1.453152027 + term * 1.061405429)))
    error = 1.0 - series * term * np.exp(-scaled * scaled)
    found: Floats = np.clip(0.5 * (1.0 + np.sign(values) * error), 1e-6, 1.0 - 1e-6)
    return found
