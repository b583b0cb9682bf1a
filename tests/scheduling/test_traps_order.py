"""The specification's traps of reservation and ordering, T36 to T44."""

from __future__ import annotations

import pytest

from scheduling.lifecycle.conditions import evict, release, with_condition
from scheduling.model.selectors import LabelSelector
from scheduling.model.vocabulary import ConditionStatus, ConditionType, EvictionReason, StopPolicy
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    admissions,
    admitted,
    cycle,
    flavors,
    messages,
    outcomes,
    preemption,
    preemptions,
    reason_of,
    settled,
    workload,
)


@pytest.mark.parametrize(("reclaim", "admitted_names"), [("Any", ["b1"]), ("LowerPriority", []), ("Never", [])])
def test_t36_a_preemptor_without_candidates_reserves_unless_it_may_reclaim_anything(
    reclaim: str, admitted_names: list[str]
) -> None:
    policy = preemption(within="LowerPriority", reclaim=reclaim)
    builder = Builder().queue("A", {"default": 2}, "all", preemption=policy).queue("B", {"default": 0}, "all")
    builder.running("a1", "A", 1).pending("a2", "A", 2, priority=0).pending("b1", "B", 1, at=1.0)
    # b1 borrows, so a2 (level 0) is decided first.
    result = cycle(builder.world)
    assert admissions(result) == admitted_names
    assert outcomes(result)["a2"] == "WaitingForQuota"


def test_t37_the_reservation_is_capped_by_the_borrowing_limit() -> None:
    policy = preemption(within="LowerPriority", reclaim="LowerPriority", borrow="LowerPriority")
    builder = Builder().cohort("shared", quotas={"default": 4})
    builder.queue("a", {"default": (0, 3, None)}, "shared", preemption=policy).queue("b", {"default": 0}, "shared")
    builder.running("used", "a", 2, priority=9).pending("three", "a", 3, priority=5).pending("one", "b", 1)
    result = cycle(builder.world)
    assert admissions(result) == ["one"]
    assert outcomes(result)["three"] == "WaitingForQuota"


def test_a_reservation_where_too_much_is_used_already_frees_nothing_for_the_cohort() -> None:
    builder = Builder().queue("a", {"default": (4, 0, 0)}, "all").queue("b", {"default": 2}, "all")
    builder.running("used", "a", 6).pending("more", "a", 2).pending("other", "b", 2, at=1.0)
    before = builder.world.cohort_status("all").usage
    assert [row.used for row in before] == [2000]
    for _ in range(2):
        assert [name for result in settled(builder.world) for name in admissions(result)] == []
        assert builder.world.cohort_status("all").usage == before
        builder.pending("late", "b", 3, at=2.0)


def test_t38_a_lower_borrowing_level_beats_priority() -> None:
    builder = Builder().cohort("root").cohort("guaranteed", "root", {"default": 4})
    builder.queue("g", {"default": 0}, "guaranteed").queue("best-effort", {"default": 0}, "root")
    builder.pending("low", "g", 4).pending("high", "best-effort", 4, priority=3)
    assert admissions(cycle(builder.world)) == ["low"]


@pytest.mark.parametrize(("second", "expected"), [(55, ["a", "b"]), (56, ["a"])])
def test_t39_several_heads_of_one_cohort_are_admitted_in_one_cycle(second: int, expected: list[str]) -> None:
    builder = Builder().queue("alpha", {"default": 50}, "all").queue("beta", {"default": 50}, "all")
    result = cycle(builder.pending("a", "alpha", 45).pending("b", "beta", second).world)
    assert admissions(result) == expected


def test_t40_a_sticky_preemptor_goes_before_higher_priorities() -> None:
    builder = Builder().queue("a", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 4, priority=-1).pending("w1", "a", 4)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}
    builder.pending("w2", "a", 4, priority=10).world.finish_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w1"]


def test_t40_strict_fifo_has_no_sticky_preemptor() -> None:
    builder = Builder().queue("a", {"default": 4}, strict=True, preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 4, priority=-1).pending("w1", "a", 4)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}
    builder.pending("w2", "a", 4, priority=10).world.finish_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w2"]


@pytest.mark.parametrize(("strict", "expected"), [(True, []), (False, ["small"])])
def test_t41_a_strict_head_blocks_its_queue(strict: bool, expected: list[str]) -> None:
    builder = Builder().queue("a", {"default": 8}, strict=strict).running("used", "a", 3)
    builder.pending("large", "a", 8).pending("small", "a", 1, at=1.0)
    assert [name for result in settled(builder.world) for name in admissions(result)] == expected


def test_t42_a_preempted_workload_keeps_its_place_and_one_that_was_not_ready_does_not() -> None:
    for reason, first in ((EvictionReason.PREEMPTED, "w1"), (EvictionReason.PODS_READY_TIMEOUT, "w2")):
        builder = Builder().queue("a", {"default": 4})
        held = admitted(workload("w1", "a", 4, at=0.0), "a")
        stopped = release(evict(held, reason, "stopped", 100.0), 100.0)
        fields = {name: getattr(stopped, name) for name in stopped.__slots__}
        conditions = {type_: c for type_, c in stopped.conditions.items() if type_ != "Requeued"}
        builder.world.set_workload(type(stopped)(**{**fields, "conditions": conditions}), 200.0)
        builder.pending("w2", "a", 4, at=50.0)
        assert admissions(cycle(builder.world)) == [first]


def test_t42_a_workload_waits_for_its_back_off() -> None:
    builder = Builder().queue("a", {"default": 4})
    held = admitted(workload("w1", "a", 4), "a")
    waiting = release(evict(held, EvictionReason.PODS_READY_TIMEOUT, "not ready", 100.0), 100.0)
    builder.world.set_workload(waiting, 100.0)
    assert not builder.world.has_active(), "Requeued is False"


def test_t43_equal_workloads_are_inadmissible_together_and_woken_together() -> None:
    builder = Builder().queue("a", {"default": 4}).running("used", "a", 4)
    for number in range(100):
        builder.pending(f"w{number:03}", "a", 2)
    result = cycle(builder.world)
    assert result.heads == 1
    view = builder.world.cluster_queue_status("a")
    assert (view.pending, view.inadmissible) == (0, 100)
    assert reason_of(builder.world, "w099") == "WaitingForQuota"
    builder.pending("late", "a", 2)
    assert not builder.world.has_active(), "one that comes later is inadmissible at once"
    (said,) = settled(builder.world)
    assert outcomes(said) == {"late": "WaitingForQuota"}
    assert messages(said)["late"].endswith("; an equivalent workload was refused in this cycle")
    assert settled(builder.world) == []
    builder.world.finish_workload("team/used", 1001.0)
    assert builder.world.cluster_queue_status("a").pending == 101
    assert [name for r in settled(builder.world) for name in admissions(r)] == ["late", "w000"]


def test_t43_never_in_a_strict_queue() -> None:
    builder = Builder().queue("a", {"default": 4}, strict=True).running("used", "a", 4)
    for number in range(5):
        builder.pending(f"w{number}", "a", 2)
    cycle(builder.world)
    assert builder.world.cluster_queue_status("a").pending == 5


def test_t44_without_a_selector_no_namespace_is_admitted_and_even_a_strict_head_becomes_inadmissible() -> None:
    builder = Builder().queue("a", {"default": 4}, strict=True, namespace_selector=None).pending("w", "a", 1)
    assert outcomes(cycle(builder.world)) == {"w": "Misconfigured"}
    assert builder.world.cluster_queue_status("a").inadmissible == 1
    builder.queue("a", {"default": 4}, strict=True, namespace_selector=LabelSelector({"tier": "gold"}))
    assert not builder.world.has_active()
    builder.world.set_namespace("team", {"tier": "gold"})
    assert admissions(cycle(builder.world)) == ["w"]


@pytest.mark.parametrize("inactive", [False, True])
def test_the_reason_follows_the_selector_also_where_nothing_else_could_wake_the_workload(inactive: bool) -> None:
    """It said forever that the quota was too small, though its namespace was not selected any more."""
    builder = Builder().queue("q", {"default": 1}).pending("w", "q", 5)
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    if inactive:
        builder.queue("q", {"default": 1}, stop_policy=StopPolicy.HOLD)
        assert not outcomes(cycle(builder.world, 1001.0))
    while_edited = StopPolicy.HOLD if inactive else StopPolicy.NONE
    builder.queue("q", {"default": 1}, namespace_selector=None, stop_policy=while_edited)
    builder.queue("q", {"default": 1}, namespace_selector=None)
    assert outcomes(cycle(builder.world, 1002.0)) == {"w": "Misconfigured"}
    assert not outcomes(cycle(builder.world, 1003.0))
    builder.queue("q", {"default": 1})
    assert outcomes(cycle(builder.world, 1004.0)) == {"w": "ExceedsMaxQuota"}


def test_the_reason_follows_the_labels_of_the_namespace() -> None:
    """The other side of the same selector."""
    selector = LabelSelector.from_manifest({"matchLabels": {"team": "yes"}})
    builder = Builder()
    builder.world.set_namespace(NAMESPACE, {"team": "yes"})
    builder.queue("q", {"default": 1}, namespace_selector=selector).pending("w", "q", 5)
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    builder.world.set_namespace(NAMESPACE, {"team": "no"})
    assert outcomes(cycle(builder.world, 1001.0)) == {"w": "Misconfigured"}


def skipped_at_flavor_one() -> Builder:
    """`low` was skipped after its search stopped at flavor one, which is free again since."""
    builder = Builder().cohort("all", quotas={"one": 2})
    for name, nominal in (("a", 0), ("b", 9)):
        builder.queue(name, {"one": 0, "two": 0, "three": nominal}, "all", strict=True)
    builder.running("own", "b", 1, "three").pending("high", "a", 2, priority=1).pending("low", "b", 2)
    first = cycle(builder.world)
    assert (admissions(first), outcomes(first)) == (["high"], {"low": "WaitingForQuota"})
    builder.world.finish_workload("team/high", 1001.0)
    return builder


def test_t23_progress_made_one_cycle_ago_counts_whatever_the_generation_says() -> None:
    builder = skipped_at_flavor_one()
    builder.world.finish_workload("team/own", 1001.0)
    assert flavors(cycle(builder.world), "low") == {"cpu": "three"}


@pytest.mark.parametrize(("generation_grows", "flavor"), [(True, "one"), (False, "three")])
def test_t23_older_progress_counts_until_the_generation_grows(generation_grows: bool, flavor: str) -> None:
    builder = skipped_at_flavor_one()
    cycle(builder.pending("urgent", "b", 99, priority=9).world)
    builder.world.delete_workload("team/urgent")
    if generation_grows:
        builder.world.finish_workload("team/own", 1001.0)
    assert flavors(cycle(builder.world), "low") == {"cpu": flavor}


@pytest.mark.parametrize(("news", "flavor"), [(True, "one"), (False, "three")])
def test_t23_the_generation_grows_with_any_news_of_what_holds_quota(news: bool, flavor: str) -> None:
    builder = skipped_at_flavor_one()
    cycle(builder.pending("urgent", "b", 99, priority=9).world)
    builder.world.delete_workload("team/urgent")
    found = builder.world.workload("team/own")
    assert found is not None
    if news:
        found = with_condition(found, ConditionType.PODS_READY, ConditionStatus.TRUE, "Started", "", 1001.0)
    builder.world.set_workload(found, 1001.0)
    assert flavors(cycle(builder.world), "low") == {"cpu": flavor}


def test_t23_the_generation_grows_when_a_victim_leaves() -> None:
    builder = skipped_at_flavor_one()
    policy = preemption(within="LowerPriority")
    builder.world.finish_workload("team/own", 1001.0)
    builder.running("victim", "b", 9, "three", priority=-5)
    builder.queue("b", {"one": 0, "two": 0, "three": 9}, "all", strict=True, preemption=policy)
    assert preemptions(cycle(builder.pending("urgent", "b", 9, priority=9).world)) == {"victim": "InClusterQueue"}
    builder.world.release_workload("team/victim", 1001.0)
    builder.world.delete_workload("team/urgent")
    assert flavors(cycle(builder.world), "low") == {"cpu": "one"}
