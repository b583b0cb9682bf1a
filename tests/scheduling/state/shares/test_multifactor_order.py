"""Queues that are ordered by a multifactor priority."""

from __future__ import annotations

from typing import Any

from scheduling.model.cohort import PriorityWeights
from scheduling.model.local_queue import LocalQueue
from scheduling.state.shares.multifactor_order import PERIOD_SECONDS
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, admissions, cycle, preemption, preemptions

DAY = 86400.0
AGE = PriorityWeights(age=1000, qos=100)


def order(world: World, queue: str = "q") -> list[str]:
    return [position.workload.removeprefix("team/") for position in world.pending(queue)]


def queue(weights: PriorityWeights | None = AGE, quota: Any = 1, **fields: Any) -> Builder:
    return Builder().queue("q", {"default": quota}, priority_weights=weights, **fields)


def two_ages(weights: PriorityWeights | None) -> Builder:
    """An old workload of a low class, and a new one of a high class."""
    builder = queue(weights).pending("old", "q", 1, priority=1, at=0.0).pending("new", "q", 1, priority=5, at=DAY)
    builder.world.advance(DAY + PERIOD_SECONDS)
    return builder


def test_without_weights_the_class_decides() -> None:
    assert order(two_ages(None).world) == ["new", "old"]


def test_with_weights_the_sum_decides() -> None:
    world = two_ages(AGE).world
    assert order(world) == ["old", "new"]
    assert admissions(cycle(world, DAY + PERIOD_SECONDS)) == ["old"]


def test_the_order_changes_as_workloads_age() -> None:
    weights = PriorityWeights(age=1000, qos=100, max_age_seconds=10 * DAY)
    builder = queue(weights, quota=0).pending("old", "q", 1, priority=1).pending("new", "q", 1, priority=5, at=1.0)
    world = builder.world
    world.advance(DAY)
    assert order(world) == ["new", "old"]
    builder.pending("late", "q", 1, priority=5, at=9 * DAY, now=9 * DAY)
    world.advance(10 * DAY)
    assert order(world) == ["new", "old", "late"]


def test_a_workload_that_arrives_has_its_place_at_once() -> None:
    builder = two_ages(AGE)
    assert order(builder.world) == ["old", "new"]
    builder.pending("later", "q", 1, priority=9, at=DAY + PERIOD_SECONDS, now=DAY + PERIOD_SECONDS)
    assert order(builder.world) == ["old", "new", "later"]
    builder.world.advance(DAY + 2 * PERIOD_SECONDS)
    assert order(builder.world) == ["old", "later", "new"]


def test_a_queue_without_weights_any_more_is_in_kueues_order_again() -> None:
    builder = two_ages(AGE)
    assert order(builder.world) == ["old", "new"]
    builder.queue("q", {"default": 1})
    assert order(builder.world) == ["new", "old"]


def test_resources_count_as_parts_of_the_quota_of_the_tree() -> None:
    builder = queue(PriorityWeights(resources={"cpu": 1000}), quota=10)
    world = builder.pending("small", "q", 1, priority=9).pending("large", "q", 5).world
    assert order(world) == ["large", "small"]
    factors = world.explain("team/large").factors
    assert factors is not None
    assert (factors.priority, factors.resources) == (500, {"cpu": 500.0})


def test_nice_lowers_a_priority() -> None:
    builder = queue(PriorityWeights(qos=1000)).pending("nice", "q", 1, priority=2, nice=600)
    assert order(builder.pending("plain", "q", 1, priority=1).world) == ["plain", "nice"]


def test_the_priority_of_the_queue_orders_the_heads_of_a_cohort() -> None:
    builder = Builder().cohort("all", priority_weights=PriorityWeights(partition=1000))
    builder.queue("low", {"default": 0}, "all", queue_priority=1).queue("high", {"default": 0}, "all", queue_priority=4)
    builder.queue("lender", {"default": 1}, "all")
    world = builder.pending("a", "low", 1, priority=9).pending("b", "high", 1).world
    assert admissions(cycle(world)) == ["b"]


def test_weights_of_one_queue_do_not_order_the_heads_of_its_cohort() -> None:
    builder = Builder().queue("q", {"default": 0}, "all", priority_weights=PriorityWeights(age=10**6))
    builder.queue("other", {"default": 0}, "all").queue("lender", {"default": 1}, "all")
    world = builder.pending("a", "q", 1, priority=1).pending("b", "other", 1, priority=5).world
    assert admissions(cycle(world, DAY)) == ["b"]


def test_users_who_used_less_come_first() -> None:
    builder = queue(PriorityWeights(fair_share=1000))
    for name, used in (("heavy", 50.0), ("light", 1.0)):
        builder.world.set_local_queue(LocalQueue("team", name, "q", past_use={"cpu": used, "memory": 9 - used}))
    world = builder.pending("a", "heavy", 1, priority=9).pending("b", "light", 1).world
    assert order(world) == ["b", "a"]
    factors = world.explain("team/a").factors
    assert factors is not None
    assert factors.fair_share == 1000 / 3


def test_use_counts_by_the_weights_of_its_resources() -> None:
    builder = queue(PriorityWeights(fair_share=1000, usage={"gpu": 10, "cpu": 1}))
    builder.world.set_local_queue(LocalQueue("team", "cores", "q", past_use={"cpu": 50.0}))
    builder.world.set_local_queue(LocalQueue("team", "gpus", "q", past_use={"gpu": 6.0}))
    assert order(builder.pending("a", "gpus", 1, priority=9).pending("b", "cores", 1).world) == ["b", "a"]


def equal_users(quota: int) -> Builder:
    """Users x and y of equal use, with a workload each."""
    builder = queue(PriorityWeights(fair_share=1000), quota=quota)
    for name in "xy":
        builder.world.set_local_queue(LocalQueue("team", name, "q", past_use={"cpu": 1.0}))
    return builder.pending("a", "x", 1).pending("b", "y", 1)


def test_new_use_changes_the_order_of_the_next_period() -> None:
    world = equal_users(1).world
    assert order(world) == ["a", "b"]
    world.set_local_queue(LocalQueue("team", "x", "q", past_use={"cpu": 9.0}))
    assert order(world) == ["a", "b"]
    world.advance(PERIOD_SECONDS)
    assert order(world) == ["b", "a"]


def test_new_use_wakes_no_workload() -> None:
    world = equal_users(0).world
    while cycle(world).heads:
        continue
    world.set_local_queue(LocalQueue("team", "x", "q", past_use={"cpu": 9.0}))
    assert not cycle(world).heads


def test_accounts_who_used_less_come_first_whatever_their_users_did() -> None:
    builder = Builder().cohort("all", priority_weights=PriorityWeights(fair_share=1000))
    for name, used in (("busy", 50.0), ("idle", 5.0)):
        builder.queue(name, {"default": 0}, "all")
        builder.world.set_local_queue(LocalQueue("team", f"{name}-user", name, past_use={"cpu": used}))
    builder.queue("lender", {"default": 1}, "all")
    world = builder.pending("a", "busy", 1, priority=9).pending("b", "idle-user", 1).world
    assert admissions(cycle(world)) == ["b"]


def test_preemption_follows_the_class() -> None:
    builder = queue(PriorityWeights(age=10**6), preemption=preemption("LowerPriority"))
    builder.running("r", "q", 1, priority=3).pending("old", "q", 1, priority=3)
    assert preemptions(cycle(builder.world, 7 * DAY)) == {}
    builder.pending("high", "q", 1, priority=4, at=7 * DAY, now=7 * DAY)
    assert order(builder.world) == ["old", "high"]
    assert preemptions(cycle(builder.world, 7 * DAY)) == {"r": "InClusterQueue"}


def test_an_undone_batch_leaves_the_order_as_it_was() -> None:
    world = two_ages(AGE).world
    before = order(world)
    point = world.savepoint()
    assert admissions(cycle(world, DAY + 2 * PERIOD_SECONDS)) == ["old"]
    world.undo(point)
    assert order(world) == before
    assert admissions(cycle(world, DAY + 2 * PERIOD_SECONDS)) == ["old"]
