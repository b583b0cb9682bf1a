"""The specification's traps of fair sharing, T45 to T55, and ties that no recorded scenario tells apart."""

from __future__ import annotations

import math

import pytest

from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    outcomes,
    preemption,
    preemptions,
)

RECLAIM = preemption(within="LowerPriority", reclaim="Any")
FINAL, INITIAL = "LessThanOrEqualToFinalShare", "LessThanInitialShare"


def three(nominal: int = 3, **weights: float) -> Builder:
    """Cohort `all` of a, b and c with three units each: one borrowed unit is a share of 111.1."""
    builder = Builder(fair=True)
    for name in ("a", "b", "c"):
        fair_weight = weights.get(name, 1.0)
        builder.queue(name, {"default": nominal}, "all", preemption=RECLAIM, fair_weight=fair_weight)
    return builder


def units(builder: Builder, queue: str, *sizes: int | str) -> Builder:
    """Admitted workloads of these sizes; later ones reserved later."""
    for number, size in enumerate(sizes):
        builder.running(f"{queue}{number}", queue, size, at=float(number))
    return builder


def share(builder: Builder, queue: str) -> float:
    """The weighted share of a ClusterQueue, to one decimal."""
    return round(builder.world.cluster_queue_status(queue).weighted_share, 1)


def test_t45_a_queue_within_nominal_takes_the_first_workload_of_the_borrower() -> None:
    builder = units(units(three(), "a", 1, 1, 1), "b", 1, 1, 1, 1, 1).running("c0", "c", 1).pending("w", "c", 1)
    assert preemptions(cycle(builder.world)) == {"b4": "InCohortReclamation"}


def test_t45_a_borrower_takes_as_long_as_its_share_stays_at_most_the_others() -> None:
    builder = units(units(three(), "a", 1, 1, 1), "b", 1, 1, 1, 1, 1).running("c0", "c", 1).pending("w", "a", 1)
    assert preemptions(cycle(builder.world)) == {"b4": "InCohortFairSharing"}


def test_t46_not_when_it_would_have_more_than_the_others_then() -> None:
    builder = units(units(three(), "a", 1, 1, 1), "b", 1, 1, 1, 1, 1).running("c0", "c", 1).pending("w", "a", 2)
    result = cycle(builder.world)
    assert not result.decided
    assert outcomes(result) == {"w": "WaitingForQuota"}


def test_t47_the_second_strategy_takes_at_most_one_workload_of_a_queue() -> None:
    builder = units(three(), "b", 2, 2, 3).running("c0", "c", 2).pending("w", "a", 6)
    assert not cycle(builder.world).decided


def test_t48_the_second_strategy_takes_one_workload_of_each_queue_and_there_is_no_flapping() -> None:
    builder = units(units(three(), "b", 2, "2.5"), "c", 2, "2.5").pending("w", "a", "3.5")
    found = preemptions(cycle(builder.world))
    assert found == {"b1": "InCohortFairSharing", "c1": "InCohortFairSharing"}
    for name in found:
        builder.world.finish_workload(f"team/{name}", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]
    result = cycle(builder.pending("back", "b", 2).world, 1002.0)
    assert not result.decided


def test_t49_a_borrower_of_weight_zero_gives_until_it_is_at_nominal() -> None:
    builder = units(units(three(b=0.0), "a", 3), "b", 1, 1, 1, 1, 1, 1).pending("w", "a", 3)
    assert set(preemptions(cycle(builder.world)).values()) == {"InCohortFairSharing"}
    assert sum(is_stopping(builder, f"b{number}") for number in range(6)) == 3


def test_t49_and_then_gives_no_more() -> None:
    builder = units(units(three(b=0.0), "a", 3), "b", 1, 1, 1).running("c0", "c", 3).pending("w", "a", 1)
    assert not cycle(builder.world).decided


def is_stopping(builder: Builder, name: str) -> bool:
    """Whether a workload was told to stop."""
    found = builder.world.workload(f"team/{name}")
    return found is not None and found.status == "Evicted"


def test_t50_a_preemptor_of_weight_zero_takes_from_no_finite_share() -> None:
    builder = units(units(three(a=0.0), "a", 3), "b", 1, 1, 1, 1, 1, 1).pending("w", "a", 1)
    assert not cycle(builder.world).decided


def test_t50_but_from_another_of_weight_zero_with_a_larger_ratio() -> None:
    builder = units(units(three(a=0.0, b=0.0), "a", 3), "b", 1, 1, 1, 1, 1, 1).pending("w", "a", 1)
    assert preemptions(cycle(builder.world)) == {"b5": "InCohortFairSharing"}


def test_t51_the_threshold_of_borrowing_is_irrelevant() -> None:
    policy = preemption(reclaim="LowerPriority", borrow="LowerPriority", threshold=100)
    builder = Builder(fair=True).queue("a", {"default": 3}, "all", preemption=policy)
    builder.queue("low", {"default": 0}, "all").cohort("all", quotas={"default": 1})
    builder.running("cheap", "low", 1, priority=-10).running("own", "a", 3).pending("w", "a", 1, priority=10)
    assert not cycle(builder.world).decided, "1 of 4 each, and the share of a would be as large as that of low was"


def test_t52_a_share_sees_what_the_parent_could_reach() -> None:
    builder = (
        Builder(fair=True).cohort("root", quotas={"default": 50}).cohort("child", "root", {"default": (0, 10, None)})
    )
    builder.queue("q", {"default": 0}, "child").running("w", "q", 10)
    assert share(builder, "q") == 1000
    assert builder.world.cohort_status("child").weighted_share == 200


def test_t53_resources_that_nobody_lends_count_as_borrowing_but_not_in_the_ratio() -> None:
    builder = Builder(fair=True)
    builder.queue("a", {"od": 20, "spot": 0}, "all").queue("b", {"od": 180, "spot": 0}, "all")
    builder.running("w", "a", 15, "od").running("x", "a", 10, "od")
    assert share(builder, "a") == 25


def test_t54_not_borrowing_what_is_asked_for_beats_any_share() -> None:
    builder = Builder(fair=True).cohort("all", quotas={"od": 2, "spot": 20})
    builder.queue("a", {"od": 5, "spot": 0}, "all").queue("b", {"od": 0, "spot": 0}, "all")
    builder.running("heavy", "a", 18, "spot").running("full", "a", 0, "od")
    builder.pending("within", "a", 5).pending("beyond", "b", 7)
    result = cycle(builder.world)
    assert admissions(result) == ["within"], "the rest would need what `within` got"


def test_t55_shares_are_exact_here_and_rounded_up_where_kueue_reports_them() -> None:
    builder = units(three(), "b", 1, 1, 1, 1)
    assert share(builder, "b") == 111.1
    assert math.ceil(builder.world.cluster_queue_status("b").weighted_share) == 112


def test_a_share_is_shown_even_where_fair_sharing_is_off() -> None:
    builder = Builder().queue("a", {"default": 3}, "all").queue("b", {"default": 3}, "all").running("w", "a", 6)
    assert share(builder, "a") == 500


@pytest.mark.parametrize("strategies", [[FINAL], [FINAL, INITIAL]])
def test_one_strategy_alone_does_not_try_the_other(strategies: list[str]) -> None:
    builder = Builder(fair=strategies)
    for name in ("a", "b", "c"):
        builder.queue(name, {"default": 3}, "all", preemption=RECLAIM)
    units(units(builder, "b", 2, "2.5"), "c", 2, "2.5").pending("w", "a", "3.5")
    assert bool(cycle(builder.world).preemptions) is (len(strategies) == 2)


def test_queues_of_equal_share_give_in_the_order_of_their_first_candidates() -> None:
    builder = three()
    builder.running("b-new", "b", 4, at=2.0).running("c-low", "c", 4, at=1.0, priority=-1).running("a0", "a", 1)
    assert preemptions(cycle(builder.pending("w", "a", 1).world)) == {"c-low": "InCohortReclamation"}
    builder = three()
    builder.running("b-new", "b", 4, at=2.0).running("c-old", "c", 4, at=1.0).running("a0", "a", 1)
    assert preemptions(cycle(builder.pending("w", "a", 1).world)) == {"b-new": "InCohortReclamation"}


def test_between_a_cohort_and_a_queue_of_equal_share_the_cohort_gives() -> None:
    builder = Builder(fair=True).cohort("root").cohort("child", "root")
    builder.queue("a", {"default": 6}, "root", preemption=RECLAIM).queue("q", {"default": 0}, "root")
    builder.queue("inside", {"default": 0}, "child")
    builder.running("in-queue", "q", 3, at=9.0).running("in-cohort", "inside", 3, at=1.0).pending("w", "a", 3)
    assert preemptions(cycle(builder.world)) == {"in-cohort": "InCohortReclamation"}


def test_nominal_is_judged_once_before_the_first_victim() -> None:
    # 19 A2: a's own victim brings it back to nominal; the foreign one is judged by shares all the same.
    builder = Builder(fair=True)
    builder.queue("a", {"default": 4}, "all", preemption=preemption(within="LowerPriority", reclaim="Any"))
    builder.queue("b", {"default": 4}, "all", fair_weight=2.0).queue("c", {"default": 4}, "all")
    builder.running("own", "a", 3, priority=-1).running("b0", "b", 7).running("b1", "b", 1, at=2.0)
    builder.running("c0", "c", 1).pending("w", "a", 4, priority=5)
    assert preemptions(cycle(builder.world)) == {"own": "InClusterQueue", "b1": "InCohortFairSharing"}


def test_the_tournament_goes_through_the_tree_and_is_updated_after_each_winner() -> None:
    builder = Builder(fair=True).cohort("root", quotas={"default": 4}).cohort("left", "root").cohort("right", "root")
    for cohort, names in (("left", ("l1", "l2")), ("right", ("r1",))):
        for name in names:
            builder.queue(name, {"default": 0}, cohort)
    for name in ("l1", "l2", "r1"):
        builder.pending(f"{name}-w", name, 2, at=1.0 if name == "r1" else 0.0)
    # l1 goes first by time; then `left` already has 2, so r1 beats the earlier l2.
    assert admissions(cycle(builder.world)) == ["l1-w", "r1-w"]
