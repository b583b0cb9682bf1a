"""Accuracy of estimates."""

import pytest

from scheduling.estimates.judgement import JudgedEstimate, accuracy


def test_figures_of_a_hand_made_set() -> None:
    judged = [JudgedEstimate(waited, 10, 20, 40) for waited in (5, 15, 20, 30, 50)]
    found = accuracy(judged)
    assert (found.count, found.coverage, found.median_error_seconds) == (5, 0.6, 10)
    assert (found.bias_seconds, found.mean_width_seconds) == (0, 30)


def test_unknown_estimates_never_make_figures_better() -> None:
    known = [JudgedEstimate(20, 10, 20, 40)] * 3
    found = accuracy([*known, *[JudgedEstimate(20, None, None, None)] * 2])
    assert (found.unknown, found.median_error_seconds) == (2, 0)
    assert found.coverage == pytest.approx(0.6)
    mostly = accuracy([*known, *[JudgedEstimate(20, None, None, None)] * 4])
    assert mostly.median_error_seconds is None


def test_fifths_are_ordered_by_the_forecast() -> None:
    judged = [JudgedEstimate(20, 0, 10 * number, 20 if number < 5 else 19) for number in range(10)]
    assert accuracy(judged).coverage_by_fifth == (1, 1, 0.5, 0, 0)


def test_nothing_judged_has_no_figures() -> None:
    assert accuracy([]).coverage is None
