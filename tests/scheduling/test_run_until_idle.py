"""Cycles at one instant: when they end. For preemption that goes in circles see test_circles.py."""

from __future__ import annotations

import pytest

from scheduling.run_until_idle import run_until_idle
from tests.scheduling.world_helpers import Builder, admissions, preemption, preemptions, settled


def test_it_ends_when_nobody_is_active() -> None:
    builder = Builder().queue("q", {"default": 2})
    for number in range(3):
        builder.pending(f"w{number}", "q", 1, at=float(number))
    assert [admissions(result) for result in settled(builder.world)] == [["w0"], ["w1"], []]


def test_it_ends_when_a_blocked_head_changes_nothing() -> None:
    builder = Builder().queue("q", {"default": 2}, strict=True).pending("large", "q", 5).pending("small", "q", 1)
    assert len(settled(builder.world)) == 1
    assert builder.world.has_active(), "the head stays active and is tried first at the next instant"


@pytest.mark.parametrize(("limit_idle", "left"), [(False, 0), (True, 18)])
def test_every_waiting_workload_is_looked_at_unless_idle_cycles_are_limited(limit_idle: bool, left: int) -> None:
    builder = Builder().queue("q", {"default": 1})
    for number in range(30):
        builder.pending(f"w{number:02}", "q", 2 + number, at=float(number))
    results = list(run_until_idle(builder.world, 1000.0, limit_idle=limit_idle))
    assert len(results) == 30 - left
    assert builder.world.cluster_queue_status("q").pending == left


def test_a_preemptor_waits_for_its_victims_without_spinning() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "q", 4).pending("high", "q", 4, priority=1)
    results = settled(builder.world, stop=False)
    assert [preemptions(result) for result in results] == [{"low": "InClusterQueue"}, {}]
    assert not results[-1].progressed
