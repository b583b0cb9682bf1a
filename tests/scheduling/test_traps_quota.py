"""The specification's traps of quota arithmetic, T1 to T12."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.model.vocabulary import StopPolicy
from scheduling.state.status import Usage
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    flavors,
    fungibility,
    messages,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    reason_of,
    settled,
)


def cohort_usage(builder: Builder, name: str) -> dict[str, int]:
    """Usage of a cohort per flavor, in cores."""
    return {row.flavor: row.used // 1000 for row in builder.world.cohort_status(name).usage}


def queue_usage(builder: Builder, name: str) -> Usage:
    """The only usage row of a ClusterQueue."""
    (row,) = builder.world.cluster_queue_status(name).usage
    return row


def test_t01_a_lending_limit_hides_quota_from_the_cohort_but_not_from_its_owner() -> None:
    builder = Builder().queue("a", {"default": (10, None, 1)}, "all").queue("b", {"default": 1}, "all")
    builder.running("used", "a", 2).pending("nine", "a", 9)
    assert admissions(cycle(builder.world)) == ["nine"]
    assert queue_usage(builder, "a").borrowed == 1000


def test_t01_what_the_owner_does_not_lend_is_out_of_reach_for_the_others() -> None:
    builder = Builder().queue("a", {"default": (10, None, 1)}, "all").queue("b", {"default": 1}, "all")
    builder.pending("two", "b", 2).pending("three", "b", 3)
    settled(builder.world)
    assert queue_usage(builder, "b").used == 2000
    assert reason_of(builder.world, "three") == "ExceedsMaxQuota"


def test_t02_lending_nothing_makes_a_larger_request_infeasible_for_ever() -> None:
    builder = Builder().queue("a", {"default": 1}, "all").queue("b", {"default": (10, None, 0)}, "all")
    builder.running("used", "b", 9).pending("two", "a", 2)
    assert outcomes(cycle(builder.world)) == {"two": "ExceedsMaxQuota"}


def test_t03_a_borrowing_limit_above_what_the_cohort_owns() -> None:
    policy = preemption(reclaim="Any", borrow="LowerPriority")
    for nominal, reason, victims in ((11, "ExceedsMaxQuota", {}), (12, "", {"used": "InCohortReclaimWhileBorrowing"})):
        builder = Builder().queue("a", {"default": (0, 12, None)}, "all", preemption=policy)
        builder.queue("b", {"default": 0}, "all").cohort("all", quotas={"default": nominal})
        builder.running("used", "b", 10).pending("twelve", "a", 12, priority=1)
        result = cycle(builder.world)
        assert preemptions(result) == victims
        if reason:
            assert outcomes(result) == {"twelve": reason}


def test_t03_what_the_lender_uses_within_its_nominal_quota_is_not_preempted() -> None:
    policy = preemption(reclaim="Any", borrow="LowerPriority")
    builder = Builder().queue("a", {"default": (0, 12, None)}, "all", preemption=policy)
    builder.queue("b", {"default": 12}, "all").running("used", "b", 10).pending("twelve", "a", 12, priority=1)
    assert outcomes(cycle(builder.world)) == {"twelve": "WaitingForQuota"}


def test_t04_a_borrowing_limit_of_a_cohort() -> None:
    builder = Builder().cohort("root").cohort("c1", "root", {"default": (10, 5, None)})
    builder.queue("a", {"default": 0}, "c1").queue("z", {"default": 20}, "root")
    builder.pending("sixteen", "a", 16, priority=1).pending("fifteen", "a", 15)
    results = settled(builder.world)
    assert outcomes(results[0]) == {"sixteen": "ExceedsMaxQuota"}
    assert [name for result in results for name in admissions(result)] == ["fifteen"]


def test_t05_a_lending_limit_of_a_cohort() -> None:
    builder = Builder().cohort("root").cohort("c1", "root", {"default": (10, None, 4)})
    builder.queue("a", {"default": 0}, "c1").queue("z", {"default": 20}, "root")
    builder.pending("z25", "z", 25).pending("a31", "a", 31, priority=1).pending("a30", "a", 30)
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["a30"]
    assert reason_of(builder.world, "z25") == "ExceedsMaxQuota"
    assert reason_of(builder.world, "a31") == "ExceedsMaxQuota"


def test_t06_usage_rises_in_the_cohort_only_beyond_the_local_quota() -> None:
    builder = Builder().queue("a", {"default": (10, None, 4)}, "all")
    builder.running("five", "a", 5).running("three", "a", 3)
    assert cohort_usage(builder, "all") == {"default": 2}
    builder.world.delete_workload("team/three")
    assert cohort_usage(builder, "all") == {"default": 0}
    assert queue_usage(builder, "a").used == 5000


def test_t07_quota_cut_below_usage_leaves_nothing_but_what_others_lend() -> None:
    builder = Builder().queue("a", {"default": 10}).running("ten", "a", 10)
    builder.queue("a", {"default": 4}).pending("one", "a", 1)
    assert outcomes(cycle(builder.world)) == {"one": "WaitingForQuota"}
    builder = Builder().queue("a", {"default": 10}, "all").queue("b", {"default": 10}, "all").running("ten", "a", 10)
    builder.queue("a", {"default": 4}, "all").pending("five", "a", 5, priority=1).pending("four", "a", 4)
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["four"]


def test_t08_the_borrowing_level_is_a_height() -> None:
    builder = Builder().cohort("root", quotas={"on-demand": 2, "spot": 0})
    builder.cohort("child", "root", {"on-demand": 5, "spot": 7})
    builder.queue("q1", {"on-demand": 3, "spot": 3}, "child", flavor_fungibility=fungibility(borrow="TryNextFlavor"))
    builder.running("od", "q1", 8, "on-demand").running("sp", "q1", 3, "spot").pending("one", "q1", 1)
    result = cycle(builder.world)
    assert dict(result.admissions[0].pod_sets[0].flavors) == {"cpu": "spot"}


def test_t09_who_borrows_inside_a_cohort_that_stays_within_its_quota_is_protected() -> None:
    policy = preemption(within="LowerPriority", reclaim="Any")
    builder = Builder().cohort("root").cohort("right", "root", {"default": 1})
    builder.queue("a", {"default": 5}, "root", preemption=policy).queue("b", {"default": 0}, "right")
    builder.running("own", "a", 3).running("theirs", "b", 1).pending("five", "a", 5, priority=1)
    assert preemptions(cycle(builder.world)) == {"own": "InClusterQueue"}


def test_t10_amounts_are_rounded_up_per_pod() -> None:
    builder = Builder().queue("a", {"default": 10}).pending("w", "a", "100.1m", count=3)
    result = cycle(builder.world)
    assert dict(result.admissions[0].pod_sets[0].resource_usage) == {"cpu": 303}


def test_t10_reclaimed_pods_free_their_share_in_whole_numbers() -> None:
    builder = Builder().queue("a", {"default": 10})
    builder.running("w", "a", 3, count=3, reclaimable_pods={"main": 1})
    assert queue_usage(builder, "a").used == 6000


def test_t10_pods_that_were_reclaimed_before_an_admission_are_not_taken_off_again() -> None:
    builder = Builder().queue("a", {"default": 10})
    builder.pending("w", "a", 3, count=3, reclaimable_pods={"main": 2})
    assert cycle(builder.world).admissions[0].pod_sets[0].count == 1
    assert queue_usage(builder, "a").used == 3000
    again = builder.world.workload("team/w")
    assert again is not None
    builder.world.delete_workload("team/w")
    builder.world.set_workload(again, 1.0)
    assert queue_usage(builder, "a").used == 3000
    builder.world.set_workload(replace(again, reclaimable_pods={"main": 3}), 1.0)
    assert queue_usage(builder, "a").used == 0


def test_t11_pods_count_only_where_the_queue_covers_them() -> None:
    five = {"cpu": 1}
    builder = Builder().queue("a", {"default": {"cpu": 10, "pods": 4}}).queue("b", {"default": 10})
    builder.pending("a5", "a", five, count=5).pending("b5", "b", five, count=5)
    result = cycle(builder.world)
    assert admissions(result) == ["b5"]
    assert outcomes(result) == {"a5": "ExceedsMaxQuota"}
    builder.pending("a4", "a", five, count=4)
    assert dict(cycle(builder.world).admissions[0].pod_sets[0].resource_usage) == {"cpu": 4000, "pods": 4}


def test_t12_an_inactive_queue_still_lends() -> None:
    builder = Builder().queue("lender", {"default": 5}, "all", stop_policy=StopPolicy.HOLD)
    builder.queue("a", {"default": 1}, "all").pending("six", "a", 6).pending("held", "lender", 1)
    assert admissions(cycle(builder.world)) == ["six"]
    view = builder.world.cluster_queue_status("lender")
    assert (view.pending, view.inadmissible, view.reason) == (0, 1, "Stopped")


def test_an_absent_cell_never_refuses_and_is_not_charged() -> None:
    builder = Builder().queue("a", {"one": {"cpu": 4, "memory": "1Gi"}, "two": {"cpu": 4}})
    builder.pending("w", "a", [pod_set({"cpu": 3, "memory": "64Gi"})])
    result = cycle(builder.world)
    assert dict(result.admissions[0].pod_sets[0].flavors) == {"cpu": "two", "memory": "two"}
    assert {(row.flavor, row.resource) for row in builder.world.cluster_queue_status("a").usage if row.used} == {
        ("two", "cpu")
    }


def test_usage_of_a_flavor_that_is_no_longer_listed_stays_charged() -> None:
    builder = Builder().queue("a", {"old": 5, "new": 5}, "all").queue("b", {"old": 5}, "all")
    builder.running("w", "a", 4, "old").queue("a", {"new": 5}, "all")
    assert cohort_usage(builder, "all") == {"old": 4, "new": 0}
    assert builder.world.cluster_queue_status("a").weighted_share == 0
    builder.pending("two", "b", 2)
    assert outcomes(cycle(builder.world)) == {"two": "WaitingForQuota"}


def test_a_cycle_of_cohorts_stops_its_queues_until_it_is_broken() -> None:
    builder = Builder().cohort("x", "y").cohort("y", "x").queue("a", {"default": 5}, "x").pending("w", "a", 1)
    assert not builder.world.has_active()
    assert builder.world.cluster_queue_status("a").reason == "CohortCycle"
    builder.cohort("y")
    assert admissions(cycle(builder.world)) == ["w"]


class TestT80WhatIsNeverPreemptedDoesNotBorrow:
    """Its owner would never get the quota back, since reclaim finds no victim."""

    def test_it_waits_where_another_workload_borrows(self) -> None:
        builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
        builder.pending("large", "a", 5, never_reclaimed=True)
        result = cycle(builder.world)
        assert outcomes(result) == {"large": "ExceedsMaxQuota"}
        assert messages(result)["large"] == (
            "cpu in flavor default: 5 cores requested, at most 4 cores possible; "
            "a workload that is never preempted may not borrow"
        )
        assert admissions(cycle(builder.pending("other", "a", 5, at=1.0).world)) == ["other"]

    def test_it_waits_while_its_own_queue_uses_the_quota(self) -> None:
        builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
        builder.running("own", "a", 3).pending("w", "a", 2, never_reclaimed=True)
        result = cycle(builder.world)
        assert outcomes(result) == {"w": "WaitingForQuota"}
        assert "1 core more needed (2 cores requested, 1 core free); a workload" in messages(result)["w"]
        builder.world.finish_workload("team/own", 1001.0)
        assert admissions(cycle(builder.world, 1001.0)) == ["w"]

    def test_it_takes_the_first_flavor_whose_quota_is_its_own(self) -> None:
        builder = Builder().queue("a", {"one": 2, "two": 4}, "all").queue("b", {"one": 4, "two": 0}, "all")
        builder.pending("w", "a", 3, never_reclaimed=True)
        assert flavors(cycle(builder.world), "w") == {"cpu": "two"}

    @pytest.mark.parametrize("fair", [False, True])
    def test_it_preempts_until_it_does_not_borrow(self, fair: bool) -> None:
        policy = preemption(within="LowerPriority", reclaim="Any", borrow="LowerPriority")
        builder = Builder(fair=fair)
        builder.queue("a", {"default": 4}, "all", preemption=policy).queue("b", {"default": 4}, "all")
        builder.running("own", "a", 3).pending("w", "a", 2, priority=1, never_reclaimed=True)
        assert preemptions(cycle(builder.world)) == {"own": "InClusterQueue"}, "though it could borrow beside it"

    @pytest.mark.parametrize("fair", [False, True])
    def test_it_reclaims_its_own_quota(self, fair: bool) -> None:
        builder = Builder(fair=fair)
        builder.queue("a", {"default": 4}, "all", preemption=preemption(reclaim="Any")).queue(
            "b", {"default": 4}, "all"
        )
        builder.running("theirs", "b", 6).pending("w", "a", 4, never_reclaimed=True)
        assert set(preemptions(cycle(builder.world))) == {"theirs"}

    def test_an_equal_workload_that_may_borrow_is_not_refused_with_it(self) -> None:
        builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
        builder.pending("kept", "a", 5, never_reclaimed=True).pending("other", "a", 5, at=1.0)
        assert outcomes(cycle(builder.world)) == {"kept": "ExceedsMaxQuota"}
        assert admissions(cycle(builder.world)) == ["other"]

    def test_it_is_looked_at_again_when_it_may_borrow(self) -> None:
        builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
        builder.pending("w", "a", 5, never_reclaimed=True)
        cycle(builder.world)
        builder.pending("w", "a", 5)
        assert admissions(cycle(builder.world)) == ["w"]
