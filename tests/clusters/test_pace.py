"""Turns of the watcher and of the push, kept apart."""

from __future__ import annotations

from itertools import pairwise

from clusters.pace import Pace


def test_a_change_after_a_quiet_time_waits_a_moment_only() -> None:
    pace = Pace(0.25, delay=0.05)
    assert [pace.next(now) for now in (100.0, 200.0)] == [100.05, 200.05]


def test_a_flow_of_changes_has_few_turns() -> None:
    """A batch for each of 20 jobs a second cost more than the jobs did."""
    pace = Pace(0.25, delay=0.05)
    begun = [pace.next(100.0)]
    while begun[-1] < 110.0:
        begun.append(pace.next(begun[-1] + 0.05))
    assert [round(after - before, 9) for before, after in pairwise(begun)] == [0.25] * 40


def test_a_slow_turn_is_followed_at_once() -> None:
    pace = Pace(0.25)
    assert [pace.next(now) for now in (100.0, 101.0, 101.1)] == [100.0, 101.0, 101.25]


def test_expensive_turns_gather_more_changes() -> None:
    """A loop takes a fiftieth of a processor, until its turns are as far apart as they may be."""
    pace = Pace(0.25, delay=0.05, longest=1.0)
    begun = [pace.next(100.0)]
    for processor_seconds in (0.004, 0.012, 3.0, 0.0):
        pace.spent(processor_seconds)
        begun.append(pace.next(begun[-1]))
    assert [round(after - before, 9) for before, after in pairwise(begun)] == [0.25, 0.6, 1.0, 0.25]


def test_expensive_turns_hold_up_no_change_after_a_quiet_time() -> None:
    pace = Pace(0.25, delay=0.05, longest=1.0)
    pace.next(100.0)
    pace.spent(3.0)
    assert pace.next(101.5) == 101.55
