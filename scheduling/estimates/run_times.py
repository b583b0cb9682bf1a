"""Run times of workloads: Kaplan and Meier's estimator over similar workloads, given how long each has run already.

Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958: a run that has not ended counts as at
risk until now, so unfinished runs are not mistaken for short ones.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduling.estimates.snapshot import EndedRun, Levels, RunningWorkload

Floats = npt.NDArray[np.float64]

MIN_ENDED_RUNS: Final = 5
_MAX_KEPT: Final = 200
"""Ended runs that are kept per group."""
MAX_GROUPS: Final = 20_000
"""Groups that are kept: users name workloads, so that new groups never cease."""
_BACKING_OFF_RUNS: Final = 5.0
"""All runs of a coarser level together weigh as much as this number of runs of the workload's own level."""
_MAX_OVERRUN: Final = 0.2
"""A run that outlives all known ones lasts longer by at most this share of its age."""
_MIN_OVERRUN: Final = 0.02
_MIN_REMAINING_SECONDS: Final = 1.0
_MIN_SURVIVAL: Final = 1e-9


@dataclass(frozen=True, slots=True)
class Survival:
    """A step function: `log_survival[i]` is the logarithm of the chance to last longer than `times[i]`."""

    times: Floats
    log_survival: Floats

    def remaining(self, ages: Floats, uniform: Floats) -> Floats:
        """Return (D, n) remaining times for n ages and (D, n) uniform numbers, given that each run has lasted for its
        age."""
        index = np.searchsorted(self.times, ages, side="right")
        reached = np.append(0.0, self.log_survival)[index]
        wanted = reached + np.log(uniform)
        step = np.searchsorted(-self.log_survival, -wanted, side="left")
        total = self.times[np.minimum(step, self.times.size - 1)]
        # Beyond the longest known run nothing is known: let the tail fall with a power of the age, and cut it.
        longest = np.maximum(ages, self.times[-1])
        excess = np.minimum(reached, self.log_survival[-1]) - wanted
        tail = longest * np.exp(np.clip(excess, _MIN_OVERRUN, np.log1p(_MAX_OVERRUN)))
        return np.where(step < self.times.size, total, tail) - ages


def kaplan_meier(seconds: Floats, ended: npt.NDArray[np.bool_], weights: Floats) -> Survival:
    """Return the survival of runs with these lengths; `ended` is False for an unfinished run.

    At equal lengths, ended runs come before unfinished ones, as is usual in survival analysis. Raises ValueError if
    none has ended.
    """
    if not ended.any():
        raise ValueError("Required value: at least one run that has ended")
    order = np.lexsort((~ended, seconds))
    weight, is_end, times = weights[order], ended[order], seconds[order]
    at_risk = np.cumsum(weight[::-1])[::-1]
    # Multiplying equal lengths one by one gives the same product.
    surviving = np.maximum(1.0 - weight[is_end] / at_risk[is_end], _MIN_SURVIVAL)
    return Survival(times[is_end], np.cumsum(np.log(surviving)))


@dataclass(slots=True)
class _Group:
    """The ended runs of similar workloads, the newest last: seconds, shares of the declared run time, the longest."""

    seconds: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT))
    shares: deque[float] = field(default_factory=lambda: deque(maxlen=_MAX_KEPT))
    longest: float = 0.0

    def add(self, run: EndedRun) -> None:
        self.seconds.append(run.seconds)
        self.longest = max(run.seconds, self.longest)
        if run.declared_seconds:
            self.shares.append(run.seconds / run.declared_seconds)


class RunHistory:
    """The runs that have ended, per group of similar workloads, the newest last. The `max_groups` groups are kept in
    which a run ended last."""

    def __init__(self, runs: Iterable[EndedRun] = (), max_groups: int = MAX_GROUPS) -> None:
        self._groups: dict[Hashable, _Group] = {}
        """The group that a run was added to last is at the end."""
        self._max_groups = max_groups
        self.count = 0
        for run in runs:
            self.add(run)

    def add(self, run: EndedRun) -> None:
        """Add a run that ended after all known runs."""
        self.count += 1
        for level in run.levels:
            group = self._groups.pop(level, None) or _Group()
            group.add(run)
            self._groups[level] = group
        while len(self._groups) > self._max_groups:
            del self._groups[next(iter(self._groups))]

    def ended(self, level: Hashable, *, as_shares: bool) -> Sequence[float]:
        """Return the lengths of the ended runs of a level: seconds, or shares of the declared run time."""
        group = self._groups.get(level)
        return () if group is None else tuple(group.shares if as_shares else group.seconds)

    def longest(self, level: Hashable) -> float | None:
        """Return the length in seconds of the longest run of a level that has ended, or None."""
        group = self._groups.get(level)
        return None if group is None else group.longest


class RunTimes:
    """The distribution of run times at one moment, for each group of similar workloads."""

    def __init__(self, history: RunHistory, running: Sequence[RunningWorkload], now: float) -> None:
        self._history = history
        self._ages: dict[bool, dict[Hashable, list[float]]] = {True: defaultdict(list), False: defaultdict(list)}
        self._found: dict[tuple[Levels, bool], Survival | None] = {}
        for workload in running:
            age = max(0.0, now - workload.since)
            for level in workload.levels:
                self._ages[False][level].append(age)
                if workload.declared_seconds:
                    self._ages[True][level].append(age / workload.declared_seconds)

    def remaining(self, levels: Levels, ages: Floats, declared: Floats, uniform: Floats) -> Floats:
        """Return (D, n) remaining times in seconds of n similar workloads; `declared` is NaN if no run time is
        declared. If a run time is declared and enough declared runs have ended, the used share of it is drawn;
        otherwise the length of similar runs is drawn."""
        lengths = self._survival(levels, as_shares=False)
        drawn = np.repeat(np.nan_to_num(declared - ages)[None], len(uniform), axis=0)
        if lengths is not None:
            drawn = lengths.remaining(ages, uniform)
        is_declared = declared > 0
        if is_declared.any() and (shares := self._survival(levels, as_shares=True)) is not None:
            known = declared[is_declared]
            drawn[:, is_declared] = shares.remaining(ages[is_declared] / known, uniform[:, is_declared]) * known
        return np.maximum(drawn, _MIN_REMAINING_SECONDS)

    def _survival(self, levels: Levels, *, as_shares: bool) -> Survival | None:
        asked = (levels, as_shares)
        if asked not in self._found:
            self._found[asked] = self._pooled(levels, as_shares=as_shares)
        return self._found[asked]

    def _pooled(self, levels: Levels, *, as_shares: bool) -> Survival | None:
        ends: list[float] = []
        ages: list[float] = []
        of_end: list[float] = []
        of_age: list[float] = []
        for depth, level in enumerate(levels):
            level_ends = self._history.ended(level, as_shares=as_shares)
            level_ages = self._ages[as_shares].get(level, [])
            size = len(level_ends) + len(level_ages)
            weight = 1.0 if depth == 0 else min(1.0, _BACKING_OFF_RUNS / max(size, 1))
            ends += level_ends
            ages += level_ages
            of_end += [weight] * len(level_ends)
            of_age += [weight] * len(level_ages)
        if len(ends) < MIN_ENDED_RUNS:
            return None
        is_end = np.arange(len(ends) + len(ages)) < len(ends)
        return kaplan_meier(np.array(ends + ages, dtype=np.float64), is_end, np.array(of_end + of_age))
