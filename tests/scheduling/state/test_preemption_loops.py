"""Preemption loops end: the workloads in one get a message and may not preempt until something changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from scheduling.model.decisions import CycleResult
from scheduling.model.vocabulary import ConditionType
from scheduling.state.preemption_loops import (
    FIRST_PAUSE_SECONDS,
    PREEMPTIONS_ONCE_SEEN,
    PREEMPTIONS_PER_WORKLOAD,
    PreemptionLoopGuard,
)
from scheduling.world import World
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    messages,
    preemption,
    preemptions,
    reason_of,
    settled,
)

POLICY = preemption(within="LowerPriority", reclaim="Any", borrow="LowerPriority")


def circling() -> Builder:
    """H preempts L in its own queue; the room goes to X, which is older; L reclaims it from X and is admitted, and H
    preempts L again, forever."""
    builder = Builder().cohort("all", quotas={"default": 2})
    builder.queue("q2", {"default": 4}, "all", preemption=POLICY).queue("q0", {"default": 0}, "all", preemption=POLICY)
    builder.queue("elsewhere", {"default": 4})
    builder.pending("h", "q2", 6, priority=100, at=2.0).pending("l", "q2", 4, priority=50, at=1.0)
    return builder.pending("x", "q0", 3, priority=100, at=0.0)


def preempted(results: list[CycleResult]) -> Counter[str]:
    """How often who was preempted."""
    return Counter(name for result in results for name in preemptions(result))


def waiting(world: World) -> set[str]:
    return {name for name in ("h", "l", "x") if reason_of(world, name)}


def said(world: World, name: str) -> str:
    found = world.workload(f"team/{name}")
    assert found is not None
    return found.conditions[ConditionType.QUOTA_RESERVED].message


def test_it_is_bounded_and_said_on_those_who_wait() -> None:
    builder = circling()
    results = settled(builder.world)
    counts = preempted(results)
    assert set(counts) == {"l", "x"}
    assert max(counts.values()) == PREEMPTIONS_PER_WORKLOAD
    told = {name: text for result in results for name, text in messages(result).items() if "in a loop" in text}
    assert set(told) >= waiting(builder.world)
    assert all("in a loop" in said(builder.world, name) for name in waiting(builder.world))
    assert "until 1970-01-01T00:17:40Z" in said(builder.world, waiting(builder.world).pop())


def test_nobody_of_them_preempts_before_the_pause_is_over_and_then_less_and_the_pause_grows() -> None:
    world = circling().world
    settled(world, 1000.0)
    for now in (1001.0, 1030.0, 1059.0):
        world.advance(now)
        assert not world.has_active()
        assert not preempted(settled(world, now))
    world.advance(1060.0)
    assert world.has_active()
    again = preempted(settled(world, 1060.0))
    assert max(again.values()) == PREEMPTIONS_ONCE_SEEN
    world.advance(1179.0)
    assert not world.has_active()
    world.advance(1180.0)
    assert preempted(settled(world, 1180.0))


def raise_quota(builder: Builder) -> None:
    builder.queue("q2", {"default": 12}, "all", preemption=POLICY)


def more_of_the_cohort(builder: Builder) -> None:
    builder.cohort("all", quotas={"default": 12})


def one_ends(builder: Builder) -> None:
    builder.world.finish_workload("team/x", 1001.0)


def one_is_held(builder: Builder) -> None:
    found = builder.world.workload("team/x")
    assert found is not None
    builder.world.set_workload(replace(found, active=False), 1001.0)


@pytest.mark.parametrize("change", [raise_quota, more_of_the_cohort, one_ends, one_is_held])
def test_a_change_in_their_tree_lets_them_try_again_at_once(change: Callable[[Builder], None]) -> None:
    builder = circling()
    settled(builder.world)
    change(builder)
    settled(builder.world, 1001.0)
    found = builder.world.workload("team/h")
    assert found is not None
    assert found.is_true(ConditionType.ADMITTED)


def one_comes(builder: Builder) -> None:
    builder.pending("late", "q0", 1, priority=1, at=9.0)


def another_priority(builder: Builder) -> None:
    found = builder.world.workload("team/l")
    assert found is not None
    builder.world.set_workload(replace(found, priority=60), 1001.0)


@pytest.mark.parametrize("change", [one_comes, another_priority])
def test_a_change_that_does_not_help_costs_few_preemptions(change: Callable[[Builder], None]) -> None:
    builder = circling()
    settled(builder.world)
    change(builder)
    again = preempted(settled(builder.world, 1001.0))
    assert 0 < max(again.values()) <= PREEMPTIONS_ONCE_SEEN


def test_what_happens_in_another_tree_changes_nothing_for_them() -> None:
    builder = circling()
    settled(builder.world)
    builder.pending("other", "elsewhere", 1)
    results = settled(builder.world, 1001.0)
    assert [name for result in results for name in admissions(result)] == ["other"]
    assert not preempted(results)


def test_others_go_on_at_the_same_instant() -> None:
    builder = circling()
    for number in range(40):
        builder.pending(f"w{number:02}", "elsewhere", 1, at=100.0 + number)
        builder.queue(f"lone-{number}", {"default": 1}).pending(f"lone-{number}", f"lone-{number}", 1)
    admitted = [name for result in settled(builder.world) for name in admissions(result)]
    assert len([name for name in admitted if name.startswith("lone")]) == 40
    assert len([name for name in admitted if name.startswith("w")]) == 4


def test_circles_at_the_speed_of_pods_are_seen_too() -> None:
    """Victims take a while to stop, so each instant sees one preemption only."""
    world = circling().world
    now, count = 1000.0, 0
    victims: list[str] = []
    for _ in range(200):
        now += 10.0
        for victim in victims:
            world.release_workload(f"team/{victim}", now)
        found = preempted(settled(world, now, stop=False))
        victims = list(found)
        count += len(victims)
    # 31 until it is seen; in the 2000 s after that pauses of 60, 120, 240 ... s with few in between.
    assert count < 31 + 5 * 4
    assert "in a loop" in said(world, waiting(world).pop())


def test_an_undone_batch_leaves_no_trace() -> None:
    world = circling().world
    point = world.savepoint()
    first = preempted(settled(world))
    world.undo(point)
    assert preempted(settled(world)) == first


def test_another_configuration_is_a_change_too() -> None:
    builder = circling()
    settled(builder.world)
    builder.world.set_configuration(replace(builder.world.configuration, exclude_resource_prefixes=("example.com/",)))
    assert preempted(settled(builder.world, 1001.0))


def test_pauses_grow_up_to_an_hour_and_are_forgotten_in_time() -> None:
    guard = PreemptionLoopGuard()
    now, lengths = 0.0, []
    for _ in range(9):
        for _ in range(PREEMPTIONS_PER_WORKLOAD):
            guard.note("victim", "preemptor")
        paused = guard.close(now)
        assert set(paused) == {"victim", "preemptor"}
        lengths.append(paused["victim"] - now)
        now = paused["victim"]
    assert lengths == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600]
    now += 3601
    guard.note("victim", "preemptor")
    guard.note("victim", "preemptor")
    assert guard.close(now)["victim"] - now == FIRST_PAUSE_SECONDS


def test_preemptions_that_lead_somewhere_are_no_circle() -> None:
    builder = Builder().queue("q", {"default": 40}, preemption=preemption(within="LowerPriority"))
    for number in range(40):
        builder.running(f"low-{number}", "q", 1)
    for number in range(40):
        builder.pending(f"high-{number}", "q", 1, priority=1, at=float(number))
    results = settled(builder.world)
    assert len([name for result in results for name in admissions(result)]) == 40
    assert not any("in a loop" in text for result in results for text in messages(result).values())
