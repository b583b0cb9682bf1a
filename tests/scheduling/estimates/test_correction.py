"""Corrections learn a bias, give intervals that cover, and use workloads that still wait."""

import numpy as np
import pytest

from scheduling.estimates.correction import MIN_COMPARED, Correction


def _learned(factor: float, spread: float, count: int, random: np.random.Generator) -> Correction:
    """Return a correction that has seen forecasts whose workloads waited `factor` times as long, give or take."""
    correction = Correction()
    for number in range(count):
        _one(correction, number, factor, spread, random)
    return correction


def _one(correction: Correction, number: int, factor: float, spread: float, random: np.random.Generator) -> bool:
    made = number * 1e6
    forecast = float(np.exp(random.uniform(5, 9)))
    found = correction.corrected((np.log(forecast),), made)
    correction.remember(str(number), made, (np.log(forecast),), found.p50)
    waited = forecast * factor * float(np.exp(spread * random.standard_normal()))
    correction.started(str(number), made + waited)
    return found.p10 <= waited <= found.p90


@pytest.mark.parametrize("factor", [0.4, 1.0, 2.5])
def test_a_constant_bias_is_learned(factor: float) -> None:
    correction = _learned(factor, 0.1, 120, np.random.default_rng(1))
    found = correction.corrected((np.log(1000.0),), 1e9)
    assert found.p50 == pytest.approx(1000 * factor, rel=0.1)


@pytest.mark.parametrize("spread", [0.2, 1.0])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_intervals_cover_four_of_five(spread: float, seed: int) -> None:
    random = np.random.default_rng(seed)
    correction = _learned(1.7, spread, 60, random)
    covered = [_one(correction, 60 + number, 1.7, spread, random) for number in range(400)]
    assert 0.75 <= np.mean(covered) <= 0.9


def test_a_wilder_past_gives_a_wider_interval() -> None:
    calm = _learned(1.0, 0.1, 100, np.random.default_rng(1)).corrected((np.log(1000.0),), 1e9)
    wild = _learned(1.0, 1.0, 100, np.random.default_rng(1)).corrected((np.log(1000.0),), 1e9)
    assert wild.p90 - wild.p10 > 3 * (calm.p90 - calm.p10)


def test_workloads_that_wait_longer_than_foreseen_raise_the_forecast() -> None:
    correction = _learned(1.0, 0.1, 40, np.random.default_rng(1))
    asked = (np.log(1000.0),)
    before = correction.corrected(asked, 1e9).p50
    for number in range(40):
        correction.remember(f"open {number}", 1e9, asked, 1000.0)
    assert correction.corrected(asked, 1e9 + 10).p50 == pytest.approx(before, rel=0.2)
    assert correction.corrected(asked, 1e9 + 5000).p50 > 1.2 * before


def test_forgotten_workloads_teach_nothing() -> None:
    correction = _learned(1.0, 0.1, 40, np.random.default_rng(1))
    before = correction.corrected((7.0,), 1e9)
    correction.remember("gone", 0, (7.0,), 1000.0)
    correction.forget("gone")
    correction.started("gone", 1e9)
    assert correction.corrected((7.0,), 1e9) == before


def test_an_interval_of_few_comparisons_is_wide_and_says_so() -> None:
    found = Correction().corrected((np.log(1000.0),), 0.0)
    assert found.compared == 0
    assert found.p90 / found.p10 > 10
    assert _learned(1.0, 0.1, MIN_COMPARED, np.random.default_rng(1)).corrected((7.0,), 1e9).compared == MIN_COMPARED
