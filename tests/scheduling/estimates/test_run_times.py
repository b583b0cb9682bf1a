"""Kaplan and Meier's estimator, and run times given an age."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.estimates.run_times import MAX_GROUPS, RunHistory, RunTimes, Survival, kaplan_meier
from scheduling.estimates.snapshot import EndedRun, RunningWorkload

LENGTHS = st.lists(st.integers(1, 50).map(float), min_size=1, max_size=30)
UNIFORM = np.linspace(0.01, 0.99, 50)[:, None]


def share_beyond(survival: Survival, time: float) -> float:
    """Return the chance to last longer than `time`."""
    index = int(np.searchsorted(survival.times, time, side="right"))
    return float(np.exp(survival.log_survival[index - 1])) if index else 1.0


@given(LENGTHS)
def test_without_running_workloads_it_is_the_share_of_longer_runs(lengths: list[float]) -> None:
    seconds = np.array(lengths)
    found = kaplan_meier(seconds, np.ones(seconds.size, dtype=bool), np.ones(seconds.size))
    for time in range(50):
        share = (seconds > time).mean()
        assert share_beyond(found, time) == pytest.approx(share, abs=1e-8)


def test_the_example_with_censored_runs_gives_the_products_by_hand() -> None:
    # At 1 one of four ends; the run of age 2 leaves; at 3 one of two ends.
    found = kaplan_meier(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, True, False]), np.ones(4))
    assert [share_beyond(found, time) for time in range(4)] == pytest.approx([1, 0.75, 0.75, 0.375])


def test_a_run_that_still_lasts_is_not_counted_as_short() -> None:
    seconds = np.array([10.0] * 5 + [9.0] * 5)
    ended = np.array([True] * 5 + [False] * 5)
    assert share_beyond(kaplan_meier(seconds, ended, np.ones(10)), 9.5) == pytest.approx(1)


def test_at_equal_lengths_ends_come_before_runs_that_last() -> None:
    found = kaplan_meier(np.array([5.0, 5.0]), np.array([False, True]), np.ones(2))
    assert share_beyond(found, 5) == pytest.approx(0.5)


def test_a_survival_without_an_end_is_refused() -> None:
    with pytest.raises(ValueError, match="Required value"):
        kaplan_meier(np.array([1.0]), np.array([False]), np.ones(1))


@given(LENGTHS, st.integers(0, 60))
def test_the_remaining_time_is_longer_the_smaller_the_number_and_never_in_the_past(
    lengths: list[float], age: int
) -> None:
    seconds = np.array(lengths)
    found = kaplan_meier(seconds, np.ones(seconds.size, dtype=bool), np.ones(seconds.size))
    remaining = found.remaining(np.array([float(age)]), UNIFORM)[:, 0]
    assert (remaining >= 0).all()
    assert (np.diff(remaining) <= 1e-9).all()


def test_a_run_that_outlives_all_known_ones_lasts_at_most_a_fifth_of_its_age_more() -> None:
    found = kaplan_meier(np.array([1.0, 2.0]), np.array([True, True]), np.ones(2))
    assert found.remaining(np.array([100.0]), UNIFORM).max() <= 20.0 + 1e-9


def test_few_runs_of_its_own_back_off_to_the_coarser_group() -> None:
    history = RunHistory([EndedRun(("other", "all"), 1000.0)] * 20)
    times = RunTimes(history, (), 0.0)
    remaining = times.remaining(("new", "all"), np.zeros(1), np.full(1, np.nan), UNIFORM)
    assert remaining.min() == 1000.0


def test_its_own_runs_outweigh_the_coarser_group() -> None:
    runs = [EndedRun(("other", "all"), 1000.0)] * 100 + [EndedRun(("own", "all"), 10.0)] * 50
    times = RunTimes(RunHistory(runs), (), 0.0)
    remaining = times.remaining(("own", "all"), np.zeros(1), np.full(1, np.nan), UNIFORM)
    assert np.median(remaining) == 10.0


def test_a_declared_time_is_scaled_by_the_share_that_runs_use() -> None:
    history = RunHistory([EndedRun(("own",), 50.0, declared_seconds=100.0)] * 20)
    times = RunTimes(history, (RunningWorkload(("own",), 0.0, 0, (1,), 100.0),), 0.0)
    declared = np.array([1000.0, np.nan])
    remaining = times.remaining(("own",), np.zeros(2), declared, np.repeat(UNIFORM, 2, axis=1))
    assert np.median(remaining, axis=0).tolist() == [500.0, 50.0]


@given(st.lists(st.integers(0, 9), min_size=1, max_size=60), st.integers(2, 6))
def test_the_groups_are_kept_in_which_runs_ended_last(jobs: list[int], max_groups: int) -> None:
    """The group of all runs is always among them."""
    history = RunHistory([EndedRun((f"job-{job}", "all"), float(job + 1)) for job in jobs], max_groups)
    newest = list(dict.fromkeys(reversed(jobs)))[: max_groups - 1]
    known = {job for job in range(10) if history.ended(f"job-{job}", as_shares=False)}
    assert known == set(newest)
    assert {job for job in range(10) if history.longest(f"job-{job}") is not None} == known
    assert history.ended("all", as_shares=False) == tuple(float(job + 1) for job in jobs)
    assert history.count == len(jobs)
    if len(set(jobs)) < max_groups:
        for job in known:
            assert len(history.ended(f"job-{job}", as_shares=False)) == jobs.count(job)


def test_names_that_users_choose_do_not_let_the_history_grow() -> None:
    history = RunHistory(EndedRun((f"job-{number}", "all"), 1.0, 2.0) for number in range(MAX_GROUPS + 100))
    known = [number for number in range(MAX_GROUPS + 100) if history.ended(f"job-{number}", as_shares=True)]
    assert len(known) == MAX_GROUPS - 1
    assert known[0] == 101
