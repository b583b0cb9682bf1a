"""Cohorts that divide their quota by a sharing policy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.vocabulary import SharingPolicy, StopPolicy
from scheduling.policies.proportion import WeightedQueue, proportion
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, Cell, admissions, cycle, preemption, preemptions, settled

ANY = preemption(reclaim="Any")
BOTH = preemption(within="LowerPriority", reclaim="Any")


def deserved(world: World, queue: str, resource: str = "cpu") -> dict[str, int | None]:
    """What the queue deserves per flavor, in whole cores or units."""
    factor = 1000 if resource == "cpu" else 1
    rows = [row for row in world.cluster_queue_status(queue).usage if row.resource == resource]
    return {row.flavor: None if row.deserved is None else row.deserved // factor for row in rows}


def used(world: World, queue: str) -> int:
    """The cores in use."""
    return sum(row.used for row in world.cluster_queue_status(queue).usage if row.resource == "cpu") // 1000


def cohort(policy: SharingPolicy | None, queues: Mapping[str, Mapping[str, Any]], quota: Cell = 10) -> Builder:
    """One cohort with quota of its own; `queues`: fields of each ClusterQueue, `quota` being its own."""
    builder = Builder().cohort("all", quotas={"default": quota}, sharing_policy=policy)
    for name, fields in queues.items():
        rest = {"preemption": ANY, **fields}
        builder.queue(name, {"default": rest.pop("quota", 0)}, "all", **rest)
    return builder


def by_weight(quota: Cell = 10, **weights: float) -> Builder:
    """Queues without quota of their own."""
    return cohort(SharingPolicy.PROPORTION, {name: {"fair_weight": weight} for name, weight in weights.items()}, quota)


def pods(builder: Builder, queue: str, count: int, cpu: int = 1, **fields: Any) -> Builder:
    """Waiting workloads of one queue."""
    for number in range(count):
        builder.pending(f"{queue}-{number}", queue, cpu, **{"at": float(number), **fields})
    return builder


def run(builder: Builder, queue: str, count: int, **fields: Any) -> Builder:
    """Running workloads of one core each."""
    for number in range(count):
        builder.running(f"{queue}-r{number}", queue, 1, **fields)
    return builder


def in_turn(builder: Builder) -> list[str]:
    """The workloads that a cycle admits, in the order in which it decides them."""
    return [each.workload.removeprefix("team/") for each in cycle(builder.world).admissions]


class TestProportion:
    def test_weight_and_demand_divide_the_quota(self) -> None:
        world = pods(pods(pods(by_weight(20, a=1, b=2, c=1), "a", 12), "b", 2), "c", 20).world
        assert [deserved(world, name) for name in "abc"] == [{"default": 9}, {"default": 2}, {"default": 9}]
        settled(world)
        assert [used(world, name) for name in "abc"] == [9, 2, 9]

    def test_what_a_queue_deserves_follows_arrivals_and_ends(self) -> None:
        builder = pods(by_weight(a=1, b=1), "a", 10)
        settled(builder.world)
        assert used(builder.world, "a") == 10
        pods(builder, "b", 8)
        assert [deserved(builder.world, name)["default"] for name in "ab"] == [5, 5]
        for number in range(7):
            builder.world.delete_workload(f"team/b-{number}")
        assert [deserved(builder.world, name)["default"] for name in "ab"] == [9, 1]

    def test_a_queue_takes_back_what_it_deserves_and_no_more(self) -> None:
        builder = pods(by_weight(a=1, b=1), "a", 10)
        settled(builder.world)
        world = pods(builder, "b", 8).world
        settled(world)
        assert (used(world, "a"), used(world, "b")) == (5, 5)
        assert not preemptions(cycle(world))

    def test_a_guarantee_is_kept_while_it_is_idle(self) -> None:
        queues = {"a": {}, "b": {"quota": (3, None, 0)}}
        world = pods(cohort(SharingPolicy.PROPORTION, queues, 7), "a", 10).world
        assert (deserved(world, "a"), deserved(world, "b")) == ({"default": 7}, {"default": 3})
        settled(world)
        assert used(world, "a") == 7

    def test_without_a_weight_a_queue_gets_its_guarantee_and_no_more(self) -> None:
        queues = {"a": {"quota": (3, None, 0), "fair_weight": 0}}
        world = pods(cohort(SharingPolicy.PROPORTION, queues, 7), "a", 10).world
        settled(world)
        assert (deserved(world, "a"), used(world, "a")) == ({"default": 3}, 3)

    def test_a_capability_is_the_limit(self) -> None:
        world = pods(cohort(SharingPolicy.PROPORTION, {"a": {"quota": (0, 4, None)}, "b": {}}), "a", 10).world
        settled(world)
        assert used(world, "a") == 4

    def test_a_request_beyond_the_entitlement_waits_for_quota(self) -> None:
        builder = pods(by_weight(a=1, b=1), "a", 10)
        world = builder.pending("big", "b", 8).world
        assert deserved(world, "b") == {"default": 5}
        outcome = {each.workload: each for each in cycle(world).outcomes}["team/big"]
        assert outcome.reason == "WaitingForQuota"

    def test_a_request_beyond_the_cohort_exceeds_the_maximum(self) -> None:
        world = by_weight(a=1, b=1).pending("big", "a", 11).world
        assert cycle(world).outcomes[0].reason == "ExceedsMaxQuota"

    def test_a_stopped_queue_keeps_nothing_for_its_pending_workloads(self) -> None:
        queues = {"a": {}, "b": {"stop_policy": StopPolicy.HOLD}}
        world = pods(pods(cohort(SharingPolicy.PROPORTION, queues), "a", 10), "b", 10).world
        assert (deserved(world, "a"), deserved(world, "b")) == ({"default": 10}, {"default": 0})

    def test_demand_moves_on_to_the_next_flavor(self) -> None:
        builder = Builder().cohort("all", quotas={"fast": 4, "slow": 6}, sharing_policy=SharingPolicy.PROPORTION)
        for name in "ab":
            builder.queue(name, {"fast": 0, "slow": 0}, "all")
        world = pods(pods(builder, "a", 5), "b", 5).world
        assert [deserved(world, name) for name in "ab"] == [{"fast": 2, "slow": 3}] * 2
        settled(world)
        assert (used(world, "a"), used(world, "b")) == (5, 5)

    def test_demand_counts_only_in_flavors_that_suit_the_pods(self) -> None:
        builder = Builder().flavor("fast", node_labels={"speed": "fast"}).flavor("slow", node_labels={"speed": "slow"})
        builder.cohort("all", quotas={"fast": 4, "slow": 4}, sharing_policy=SharingPolicy.PROPORTION)
        builder.queue("a", {"fast": 0, "slow": 0}, "all")
        world = builder.pending("w", "a", 2, spec={"nodeSelector": {"speed": "slow"}}).world
        assert deserved(world, "a") == {"fast": 0, "slow": 2}
        assert admissions(cycle(world)) == ["w"]

    def test_levels_divide_what_their_cohort_got(self) -> None:
        builder = by_weight(12, a=1).cohort("inner", "all", fair_weight=2).queue("b", {"default": 0}, "inner")
        builder.queue("c", {"default": 0}, "inner", fair_weight=3)
        for name in "abc":
            pods(builder, name, 12)
        assert [deserved(builder.world, name)["default"] for name in "abc"] == [4, 2, 6]
        settled(builder.world)
        assert [used(builder.world, name) for name in "abc"] == [4, 2, 6]


class TestCapacity:
    QUEUES: Mapping[str, Mapping[str, Any]] = {"a": {"quota": 8}, "b": {"quota": 4}}

    def test_idle_quota_is_lent_and_taken_back_down_to_the_deserved(self) -> None:
        builder = run(cohort(SharingPolicy.CAPACITY, self.QUEUES, 0), "a", 10)
        world = pods(builder, "b", 4).world
        assert (deserved(world, "a"), deserved(world, "b")) == ({"default": 8}, {"default": 4})
        settled(world)
        assert (used(world, "a"), used(world, "b")) == (8, 4)

    def test_the_queue_with_the_smaller_used_part_goes_first(self) -> None:
        builder = run(run(cohort(SharingPolicy.CAPACITY, self.QUEUES, 0), "a", 4), "b", 3)
        builder.pending("early", "b", 1, at=0.0).pending("late", "a", 1, at=9.0)
        assert in_turn(builder) == ["late", "early"]

    def test_without_a_policy_the_older_workload_goes_first(self) -> None:
        builder = run(run(cohort(None, self.QUEUES, 0), "a", 4), "b", 3)
        builder.pending("early", "b", 1, at=0.0).pending("late", "a", 1, at=9.0)
        assert in_turn(builder) == ["early", "late"]

    def test_a_higher_queue_priority_goes_before_the_used_part(self) -> None:
        queues = {"a": {"quota": 8}, "b": {"quota": 4, "queue_priority": 1}}
        builder = run(run(cohort(SharingPolicy.CAPACITY, queues, 0), "a", 4), "b", 3)
        builder.pending("early", "a", 1, at=0.0).pending("late", "b", 1, at=9.0)
        assert in_turn(builder) == ["late", "early"]

    def test_queues_of_other_trees_keep_their_places(self) -> None:
        builder = run(run(cohort(SharingPolicy.CAPACITY, self.QUEUES, 0), "a", 4), "b", 3)
        builder.queue("x", {"default": 9}).pending("other", "x", 1, at=5.0)
        builder.pending("early", "b", 1, at=0.0).pending("late", "a", 1, at=9.0)
        assert in_turn(builder) == ["late", "other", "early"]


class TestFairShare:
    def test_the_rest_is_divided_by_weight_in_whole_units(self) -> None:
        builder = Builder().cohort("all", quotas={"default": {"gpu": 6}}, sharing_policy=SharingPolicy.FAIR_SHARE)
        builder.queue("a", {"default": {"gpu": 2}}, "all", fair_weight=1, preemption=ANY)
        builder.queue("b", {"default": {"gpu": 2}}, "all", fair_weight=3, preemption=ANY)
        for name in "ab":
            for number in range(8):
                builder.pending(f"{name}-{number}", name, {"gpu": 1}, at=float(number))
        assert [deserved(builder.world, name, "gpu") for name in "ab"] == [{"default": 4}, {"default": 6}]

    def test_a_higher_priority_gets_the_rest_first(self) -> None:
        queues = {"a": {"quota": 2, "fair_weight": 9}, "b": {"quota": 2, "queue_priority": 5}}
        world = pods(pods(cohort(SharingPolicy.FAIR_SHARE, queues, 6), "a", 9), "b", 9).world
        assert (deserved(world, "a"), deserved(world, "b")) == ({"default": 2}, {"default": 8})

    def test_a_queue_may_use_idle_quota_beyond_its_share_and_gives_it_back(self) -> None:
        builder = run(cohort(SharingPolicy.FAIR_SHARE, {"a": {"quota": 5}, "b": {"quota": 5}}, 0), "a", 10)
        world = pods(builder, "b", 5).world
        settled(world)
        assert (used(world, "a"), used(world, "b")) == (5, 5)

    def test_a_queue_above_its_share_goes_last(self) -> None:
        queues = {"a": {"quota": 2, "queue_priority": 9}, "b": {"quota": 6}}
        builder = run(run(cohort(SharingPolicy.FAIR_SHARE, queues, 4), "a", 11), "b", 0)
        builder.pending("high", "a", 1, at=0.0).pending("low", "b", 1, at=9.0)
        assert admissions(cycle(builder.world)) == ["low"]


@pytest.mark.parametrize("policy", SharingPolicy)
def test_a_workload_that_is_never_preempted_stays_within_the_declared_quota(policy: SharingPolicy) -> None:
    world = cohort(policy, {"a": {"quota": 2}, "b": {}}, 8).pending("w", "a", 3, never_reclaimed=True).world
    assert not admissions(cycle(world))
    world = cohort(policy, {"a": {"quota": 2}, "b": {}}, 8).pending("w", "a", 2, never_reclaimed=True).world
    assert admissions(cycle(world)) == ["w"]


@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("never", [False, True])
def test_a_queue_that_is_never_reclaimed_keeps_what_it_borrowed(fair: bool, never: bool) -> None:
    builder = Builder(fair=fair).queue("a", {"default": 2}, "all", never_reclaimed=never)
    builder.queue("b", {"default": 2}, "all", preemption=ANY)
    world = run(builder, "a", 4).pending("w", "b", 1).world
    assert bool(preemptions(cycle(world))) is not never


def test_within_its_queue_priorities_still_preempt() -> None:
    queues = {"a": {"never_reclaimed": True, "preemption": BOTH}}
    world = run(cohort(SharingPolicy.PROPORTION, queues, 2), "a", 2).pending("high", "a", 1, priority=9).world
    assert len(preemptions(cycle(world))) == 1


def test_an_undone_batch_leaves_what_queues_deserve() -> None:
    builder = pods(pods(by_weight(a=1, b=1), "a", 10), "b", 2)
    world = builder.world
    before = [world.cluster_queue_status(name) for name in "ab"], world.cohort_status("all")
    point = world.savepoint()
    builder.pending("b-late", "b", 3)
    settled(world)
    world.undo(point)
    world.delete_workload("team/b-late")
    assert ([world.cluster_queue_status(name) for name in "ab"], world.cohort_status("all")) == before


@pytest.mark.parametrize("tried", [None, *SharingPolicy])
def test_an_undone_change_of_the_policy_leaves_no_trace(tried: SharingPolicy | None) -> None:
    builder = pods(pods(by_weight(a=1, b=1), "a", 10), "b", 8)
    same = pods(pods(by_weight(a=1, b=1), "a", 10), "b", 8).world
    world = builder.world
    cycle(world)
    cycle(same)
    point = world.savepoint()
    cycle(world)
    builder.cohort("all", quotas={"default": 30}, sharing_policy=tried)
    builder.queue("b", {"default": 9}, "all", fair_weight=5, preemption=ANY).queue("c", {"default": 1}, "all")
    settled(world)
    world.undo(point)
    for _ in range(2):
        assert [world.cluster_queue_status(name) for name in "ab"] == [same.cluster_queue_status(name) for name in "ab"]
        assert world.cohort_status("all") == same.cohort_status("all")
        assert [admissions(result) for result in settled(world)] == [admissions(result) for result in settled(same)]


def test_a_policy_that_is_taken_away_leaves_kueues_quota() -> None:
    builder = pods(by_weight(a=1, b=1), "a", 10)
    plain = pods(cohort(None, {"a": {}, "b": {}}), "a", 10)
    settled(builder.world)
    settled(plain.world)
    builder.cohort("all", quotas={"default": 10})
    for name in "ab":
        assert builder.world.cluster_queue_status(name) == plain.world.cluster_queue_status(name)
    assert builder.world.cohort_status("all") == plain.world.cohort_status("all")


DEMANDS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(0, 3)).filter(lambda each: each[0] or each[1] == 0),
    min_size=1,
    max_size=4,
)


@given(DEMANDS, st.integers(0, 30))
def test_the_world_divides_as_the_policy_does_and_stays_within_its_quota(
    demands: list[tuple[int, int, int]], quota: int
) -> None:
    builder = by_weight(quota, **{f"q{n}": weight for n, (weight, _, _) in enumerate(demands)})
    for n, (_, waiting, running) in enumerate(demands):
        run(pods(builder, f"q{n}", waiting), f"q{n}", running if quota >= 12 else 0)
    queues = {
        f"q{n}": WeightedQueue(weight, {"cpu": 1000.0 * (waiting + (running if quota >= 12 else 0))})
        for n, (weight, waiting, running) in enumerate(demands)
    }
    wanted = proportion({"cpu": 1000.0 * quota}, queues, {})
    world = builder.world
    for name in queues:
        (row,) = world.cluster_queue_status(name).usage
        assert row.deserved == int(wanted[name]["cpu"] + 0.1)
    settled(world)
    assert world.cohort_status("all").usage[0].used <= 1000 * quota
    for n, name in enumerate(queues):
        assert used(world, name) * 1000 <= max(wanted[name]["cpu"] + 0.1, 1000 * demands[n][2])
