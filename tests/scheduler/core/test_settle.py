"""Cycles at one instant: when they end, and preemption that goes in circles (19 B11)."""

from __future__ import annotations

from collections import Counter

import pytest

from scheduler.core.settle import PREEMPTIONS_PER_WORKLOAD, settle
from tests.scheduler.core.world_helpers import (
    Builder,
    admissions,
    messages,
    preemption,
    preemptions,
    reason_of,
    settled,
)


def circling() -> Builder:
    """H preempts L in its own queue; the room goes to X, which is older; L reclaims it from X and is admitted, and H
    preempts L again, for ever."""
    policy = preemption(within="LowerPriority", reclaim="Any", borrow="LowerPriority")
    builder = Builder().cohort("all", quotas={"default": 2})
    builder.queue("q2", {"default": 4}, "all", preemption=policy).queue("q0", {"default": 0}, "all", preemption=policy)
    builder.pending("h", "q2", 6, priority=100, at=2.0).pending("l", "q2", 4, priority=50, at=1.0)
    return builder.pending("x", "q0", 3, priority=100, at=0.0)


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
    results = list(settle(builder.world, 1000.0, limit_idle=limit_idle))
    assert len(results) == 30 - left
    assert builder.world.cluster_queue_view("q").pending == left


def test_a_preemptor_waits_for_its_victims_without_spinning() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "q", 4).pending("high", "q", 4, priority=1)
    results = settled(builder.world, stop=False)
    assert [preemptions(result) for result in results] == [{"low": "InClusterQueue"}, {}]
    assert not results[-1].progressed


def test_preemption_in_circles_is_bounded_and_said_on_those_who_wait() -> None:
    builder = circling()
    results = settled(builder.world)
    counts = Counter(name for result in results for name in preemptions(result))
    assert set(counts) == {"l", "x"}
    assert max(counts.values()) == PREEMPTIONS_PER_WORKLOAD
    waiting = {name for name in ("h", "l", "x") if reason_of(builder.world, name)}
    assert set(messages(results[-1])) == waiting
    assert all("in circles" in text for text in messages(results[-1]).values())


def test_after_the_bound_the_next_instant_starts_afresh() -> None:
    builder = circling()
    settled(builder.world)
    builder.world.delete_workload("team/x")
    results = settled(builder.world, 2000.0)
    assert [name for result in results for name in admissions(result)][-1] == "h"
