"""Corrects a forecast by the errors of past forecasts, and gives it a valid interval.

The centre is a regression of absolute errors in logarithms over recent forecasts. A workload that has already waited
longer than predicted counts as a lower bound (as in Powell's censored regression). The interval is conformal: the
quantiles of the errors of the past forecasts nearest in value and time (Lei and others, 2018; here online).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MIN_COMPARED: Final = 20
_MIN_FITTED: Final = 5
_MAX_RESOLVED: Final = 500
MAX_OPEN: Final = 200
"""The newest forecasts without an outcome that a fit is made of."""
_HALF_LIFE_FORECASTS: Final = 200.0
_PRIOR_CENTRE: Final = 2.0
_PRIOR_SLOPE: Final = 20.0
_MIN_ERROR: Final = 0.15
"""Smaller errors, in logarithms, weigh alike: it keeps the regression of absolute errors stable."""
_MAX_CORRECTION: Final = 2.0
_ROUNDS: Final = 5
_NEIGHBOURS: Final = 100
_VALUE_SCALE: Final = 0.7
_AGE_SCALE: Final = 200.0
_TAIL: Final = 0.07
_UNCORRECTED_SPREAD: Final = 1.5
_BEYOND: Final = 2.0
"""An interval ends at most at this multiple of the longest wait that was compared: errors of longer waits are
unknown.
"""
_MIN_LATE: Final = 1.1
_MIN_SECONDS: Final = 5.0


@dataclass(slots=True)
class _Past:
    made_at: float
    features: tuple[float, ...]
    centre: float
    started_at: float | None = None

    def waited(self, now: float) -> float:
        """Return the seconds from the forecast to the start, or to `now`."""
        return (now if self.started_at is None else self.started_at) - self.made_at


@dataclass(frozen=True, slots=True)
class Corrected:
    """Seconds from now to the start, with the number of past forecasts that the interval rests on."""

    p10: float
    p50: float
    p90: float
    compared: int


@dataclass(frozen=True, slots=True)
class _Fit:
    """A correction that is linear in the features: the shift at their mean, then their slopes."""

    slopes: Floats
    mean: Floats

    def shift(self, features: Floats) -> float:
        return float(self.slopes[0] + (features - self.mean) @ self.slopes[1:])


class Correction:
    """The past forecasts of one age of waiting. `features` are logarithms of seconds; their mean is the uncorrected
    forecast."""

    def __init__(self) -> None:
        self._open: dict[str, _Past] = {}
        self._resolved: list[_Past] = []
        self._fitted: tuple[float, _Fit] | None = None
        """The time of the last fit, which serves all forecasts of that time until an outcome is added."""

    def corrected(self, features: tuple[float, ...], now: float) -> Corrected:
        """Return the forecast of these features, corrected by the outcomes known at `now`."""
        centre = self._centre(features, now)
        errors = self._errors_like(centre)
        low, high = (
            (-_UNCORRECTED_SPREAD, _UNCORRECTED_SPREAD)
            if errors.size < MIN_COMPARED
            else np.quantile(errors, [_TAIL, 1 - _TAIL])
        )
        p10, p50, p90 = (float(np.exp(centre + shift)) for shift in (min(low, 0.0), 0.0, max(high, 0.0)))
        if errors.size < MIN_COMPARED:
            return Corrected(p10, p50, p90, 0)
        return Corrected(p10, p50, max(p50 * _MIN_LATE, min(p90, self._longest_wait() * _BEYOND)), errors.size)

    def remember(self, key: str, made_at: float, features: tuple[float, ...], p50: float) -> None:
        """Keep a forecast until its workload starts."""
        self._fitted = None
        self._open[key] = _Past(made_at, features, float(np.log(p50)))

    def started(self, key: str, at: float) -> None:
        """Record the start of a workload; starts must come in order of time. Without a forecast, nothing
        happens.
        """
        self._fitted = None
        past = self._open.pop(key, None)
        if past is not None:
            past.started_at = at
            self._resolved.append(past)
            del self._resolved[:-_MAX_RESOLVED]

    def forget(self, key: str) -> None:
        """Drop the forecast of a workload that will not start."""
        self._fitted = None
        self._open.pop(key, None)

    def _centre(self, features: tuple[float, ...], now: float) -> float:
        base = float(np.mean(features))
        if len(self._resolved) < _MIN_FITTED:
            return base
        if self._fitted is None or self._fitted[0] != now:
            self._fitted = now, self._fit(now)
        shift = self._fitted[1].shift(np.array(features))
        return base + float(np.clip(shift, -_MAX_CORRECTION, _MAX_CORRECTION))

    def _fit(self, now: float) -> _Fit:
        # Forecasts with a known outcome first, then open ones; newer forecasts weigh more.
        past = [*self._resolved, *list(self._open.values())[-MAX_OPEN:]]
        known = np.array([each.features for each in past])
        waited = np.array([each.waited(now) for each in past])
        target = np.log(np.maximum(waited, _MIN_SECONDS)) - known.mean(axis=1)
        return _fit(known, target, np.arange(len(past)) >= len(self._resolved))

    def _longest_wait(self) -> float:
        return max(past.waited(0.0) for past in self._resolved)

    def _errors_like(self, centre: float) -> Floats:
        if not self._resolved:
            return np.empty(0)
        centres = np.array([each.centre for each in self._resolved])
        waited = np.array([each.waited(0.0) for each in self._resolved])
        age = np.arange(centres.size)[::-1]
        distance = np.abs(centres - centre) / _VALUE_SCALE + age / _AGE_SCALE
        nearest = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
        errors: Floats = (np.log(np.maximum(waited, _MIN_SECONDS)) - centres)[nearest]
        return errors


def _fit(known: Floats, target: Floats, is_bound: npt.NDArray[np.bool_]) -> _Fit:
    """Return the correction of the least absolute errors, by weights that are renewed; slopes shrink to 0."""
    recency = 0.5 ** (np.arange(target.size)[::-1] / _HALF_LIFE_FORECASTS)
    mean = recency @ known / recency.sum()
    design = np.column_stack([np.ones(target.size), known - mean])
    prior = np.diag([_PRIOR_CENTRE, *[_PRIOR_SLOPE] * known.shape[1]])
    weight = np.where(is_bound, 0.0, recency)
    slopes = np.zeros(design.shape[1])
    for _ in range(_ROUNDS):
        weighted = design * weight[:, None]
        slopes = np.linalg.solve(design.T @ weighted + prior, weighted.T @ target)
        error = target - design @ slopes
        weight = 0.5 * recency / np.maximum(np.abs(error), _MIN_ERROR)
        # A workload that has not yet waited as long as predicted says nothing so far.
        weight[is_bound & (error < 0)] = 0.0
    return _Fit(slopes, mean)
