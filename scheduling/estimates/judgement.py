"""Judges estimates of starts by the starts that happened: coverage, error, bias, width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

FIFTHS: Final = 5


@dataclass(frozen=True, slots=True)
class JudgedEstimate:
    """An estimate, and the seconds that its workload waited after it was made; all quantiles are None if no estimate
    was possible.
    """

    waited: float
    p10: float | None
    p50: float | None
    p90: float | None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """The accuracy of estimated starts. A figure is None without data.

    An unknown estimate is not covered, and its error counts as infinite: giving no estimate never improves the figures.
    """

    count: int
    unknown: int
    coverage: float | None
    """Share of starts inside p10 to p90; 0.8 where estimates are true."""
    coverage_by_fifth: tuple[float, ...]
    """The same in each fifth of the known estimates, ordered by p50: the shortest first."""
    median_error_seconds: float | None
    """Median of |p50 - waited|; None also where most estimates are unknown."""
    bias_seconds: float | None
    """Median of p50 - waited; negative: workloads start later than foretold."""
    mean_width_seconds: float | None


def accuracy(judged: Sequence[JudgedEstimate]) -> Accuracy:
    """Return the accuracy of these estimates."""
    known = np.array(
        [(each.p10, each.p50, each.p90, each.waited) for each in judged if each.p50 is not None], dtype=np.float64
    ).reshape(-1, 4)
    unknown = len(judged) - len(known)
    if not len(known):
        return Accuracy(len(judged), unknown, 0.0 if judged else None, (), None, None, None)
    low, middle, high, waited = known.T
    covered = (waited >= low) & (waited <= high)
    error = median_error((middle - waited).tolist(), unknown)
    fifths = np.array_split(covered[np.argsort(middle, kind="stable")], FIFTHS)
    return Accuracy(
        count=len(judged),
        unknown=unknown,
        coverage=float(covered.sum() / len(judged)),
        coverage_by_fifth=tuple(float(fifth.mean()) for fifth in fifths if fifth.size),
        median_error_seconds=error,
        bias_seconds=float(np.median(middle - waited)),
        mean_width_seconds=float((high - low).mean()),
    )


def median_error(differences: Sequence[float], unknown: int = 0) -> float | None:
    """Return the median of the absolute differences. `unknown` more differences are infinite. None if the median is
    infinite, or if there are no differences."""
    errors = np.append(np.abs(np.asarray(differences, dtype=np.float64)), np.full(unknown, np.inf))
    found = float(np.median(errors)) if errors.size else np.inf
    return found if np.isfinite(found) else None
