"""The specification's traps of preemption, T25 to T35 and T81, and what no recorded scenario tells apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.lifecycle.conditions import evict, release, with_condition
from scheduling.model.vocabulary import ConditionStatus, ConditionType, EvictionReason
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node, gpus
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    admitted,
    cycle,
    fungibility,
    messages,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    settled,
    workload,
)

RECLAIM = preemption(within="LowerPriority", reclaim="Any")

NO_LONGER_FITS = "the workload no longer fits after another workload was processed in this cycle"


def test_t25_preemption_needs_room_under_nominal_unless_borrowing_may_preempt() -> None:
    builder = Builder().queue("alpha", {"default": 2}, "all", preemption=RECLAIM).queue("beta", {"default": 2}, "all")
    builder.running("low", "alpha", 1, priority=-1).running("other", "beta", 1).pending("w", "alpha", 3, priority=5)
    result = cycle(builder.world)
    assert preemptions(result) == {}
    assert outcomes(result) == {"w": "WaitingForQuota"}
    assert "1 core more needed" in messages(result)["w"]


def test_t26_own_workloads_of_lower_priority_suffice_to_borrow_while_preempting() -> None:
    policy = preemption(within="LowerPriority", reclaim="LowerPriority", borrow="LowerPriority")
    builder = Builder().queue("c1", {"default": (6, 6, None)}, "all", preemption=policy)
    builder.queue("c2", {"default": (6, 6, None)}, "all")
    builder.running("low", "c1", 4, priority=-1).running("c1-other", "c1", 4, priority=1)
    builder.running("c2-one", "c2", 4).pending("w", "c1", 4, priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}


def test_t27_reclaim_takes_from_the_borrower_before_the_own_queue() -> None:
    policy = preemption(within="LowerPriority", reclaim="LowerPriority")
    builder = Builder().queue("c1", {"default": 6}, "all", preemption=policy).queue("c2", {"default": 6}, "all")
    builder.running("own", "c1", 3, priority=-1)
    builder.running("low", "c2", 3).running("mid", "c2", 6, priority=1).pending("w", "c1", 3, priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InCohortReclamation"}


def test_t28_a_borrower_back_at_its_nominal_quota_gives_no_more() -> None:
    builder = Builder().queue("a", {"default": 6}, "all", preemption=RECLAIM).queue("b", {"default": 6}, "all")
    for number in range(3):
        builder.running(f"b{number}", "b", 3, at=float(number))
    builder.running("a0", "a", 3, priority=9).pending("w", "a", 6, priority=5)
    assert preemptions(cycle(builder.world)) == {}, "one of three would go, and 3 of the 6 stay taken by the own queue"
    builder.world.delete_workload("team/a0")
    assert preemptions(cycle(builder.world)) == {"b2": "InCohortReclamation"}


def test_t29_targets_that_turn_out_not_to_be_needed_are_put_back() -> None:
    for sizes, victims in (((2, 3, 4), {"w2", "w3"}), ((1, 1, 4), {"w4"})):
        builder = Builder().queue("a", {"default": sum(sizes)}, preemption=preemption(within="LowerPriority"))
        for position, size in enumerate(sizes):
            builder.running(f"w{size}" if size > 1 else f"w1-{position}", "a", size, at=100.0 - position)
        builder.pending("needs", "a", 4, priority=1)
        assert set(preemptions(cycle(builder.world))) == victims


def test_t30_equal_priority_is_preempted_only_when_strictly_newer() -> None:
    for created, victims in ((1.0, {"running": "InClusterQueue"}), (0.0, {})):
        builder = Builder().queue("a", {"default": 5}, preemption=preemption(within="LowerOrNewerEqualPriority"))
        builder.running("running", "a", 5, at=created).pending("w", "a", 5, at=0.0)
        assert preemptions(cycle(builder.world)) == victims


def test_t30_one_that_holds_quota_again_is_as_old_as_it_was() -> None:
    builder = Builder().queue("a", {"default": 5}, preemption=preemption(within="LowerOrNewerEqualPriority"))
    before = admitted(workload("old", "a", 5, at=1.0), "a")
    waiting = release(evict(before, EvictionReason.ADMISSION_CHECK, "try again", 100.0), 100.0)
    finished = with_condition(waiting, ConditionType.REQUEUED, ConditionStatus.TRUE, "BackoffFinished", "", 110.0)
    builder.world.set_workload(finished, 110.0)
    assert admissions(cycle(builder.world, 120.0)) == ["old"]
    builder.pending("young", "a", 5, at=50.0)
    assert preemptions(cycle(builder.world, 130.0)) == {}, "created before, if evicted after"


@pytest.mark.parametrize(("priority", "victims"), [(5, {}), (0, {"running": "InCohortReclaimWhileBorrowing"})])
def test_t31_the_threshold_bounds_whom_a_borrower_may_preempt(priority: int, victims: dict[str, str]) -> None:
    policy = preemption(reclaim="LowerPriority", borrow="LowerPriority", threshold=0)
    builder = Builder().cohort("all", quotas={"default": 5}).queue("a", {"default": 0}, "all", preemption=policy)
    builder.queue("b", {"default": 0}, "all").running("running", "b", 5, priority=priority)
    assert preemptions(cycle(builder.pending("w", "a", 5, priority=10).world)) == victims


def test_t31_above_the_threshold_only_without_borrowing() -> None:
    policy = preemption(reclaim="LowerPriority", borrow="LowerPriority", threshold=0)
    builder = Builder().queue("a", {"default": 5}, "all", preemption=policy).queue("b", {"default": 0}, "all")
    builder.running("running", "b", 5, priority=5).pending("w", "a", 5, priority=10)
    assert preemptions(cycle(builder.world)) == {"running": "InCohortReclamation"}


def test_t32_the_advantage_of_the_hierarchy_ignores_priority_and_borrowing() -> None:
    builder = Builder().cohort("r").cohort("c", "r", {"default": 2})
    builder.queue("q", {"default": 0}, "c", preemption=preemption(reclaim="Any")).queue("qb", {"default": 0}, "r")
    builder.running("theirs", "qb", 2).pending("w", "q", 2)
    assert preemptions(cycle(builder.world)) == {"theirs": "InCohortReclamation"}


def test_t33_workloads_that_are_stopping_already_are_taken_first() -> None:
    builder = Builder().queue("a", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("old", "a", 2, at=1.0).running("new", "a", 2, at=2.0).pending("first", "a", 2, priority=1)
    assert preemptions(cycle(builder.world)) == {"new": "InClusterQueue"}
    second = cycle(builder.pending("second", "a", 2, priority=1, at=1.0).world)
    assert preemptions(second) == {}, "`first` is sticky, and `new` is already stopping for it"


def overlapping_preemptors() -> Builder:
    """Two queues that both reclaim from the same large borrower."""
    builder = Builder().cohort("all")
    builder.queue("tiny", {"default": 50}, "all", preemption=preemption(reclaim="Any"))
    builder.queue("hero", {"default": 2950}, "all", preemption=preemption(reclaim="Any"))
    builder.queue("bank", {"default": 3055}, "all").running("victim", "bank", 6055)
    return builder.pending("small", "tiny", 50, priority=1).pending("large", "hero", 2950)


def test_t34_a_shared_victim_is_preempted_once_and_the_second_waits_for_it() -> None:
    builder = overlapping_preemptors()
    result = cycle(builder.world)
    assert preemptions(result) == {"victim": "InCohortReclamation"}
    assert result.preemptions[0].preemptor == "team/small"
    assert outcomes(result) == {
        "small": "WaitingForPreemptedWorkloads",
        "large": "WaitingForPreemptedWorkloads",
    }
    assert "once the workloads that are being preempted have stopped" in messages(result)["large"]
    builder.world.finish_workload("team/victim", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["large", "small"]


def test_t34_the_second_finds_other_victims_when_the_shared_one_is_not_enough() -> None:
    builder = Builder().cohort("all")
    for name in ("a", "b"):
        builder.queue(name, {"default": 4}, "all", preemption=preemption(reclaim="Any"))
    builder.queue("bank", {"default": 0}, "all").running("new", "bank", 4, at=2.0).running("old", "bank", 4, at=1.0)
    builder.pending("first", "a", 4, priority=1).pending("second", "b", 4)
    result = cycle(builder.world)
    assert preemptions(result) == {"new": "InCohortReclamation", "old": "InCohortReclamation"}
    assert {p.workload: p.preemptor for p in result.preemptions} == {
        "team/new": "team/first",
        "team/old": "team/second",
    }


def test_t34_the_second_keeps_room_for_itself_when_no_other_victim_is_left() -> None:
    policy = preemption(within="LowerPriority", reclaim="LowerPriority")
    builder = Builder().cohort("all", quotas={"default": 1})
    builder.queue("a", {"default": 4}, "all", preemption=policy).queue("b", {"default": 4}, "all", preemption=policy)
    builder.queue("c", {"default": 0}, "all").queue("bank", {"default": 0}, "all")
    builder.running("victim", "bank", 3, priority=-1).running("keeper", "bank", 2, priority=9)
    builder.running("a-own", "a", 1, priority=9).running("b-own", "b", 2, priority=9)
    # One of 9 is free. Both need the victim; with it gone and `first` in, `second` lacks one.
    builder.pending("first", "b", 2, priority=2).pending("second", "a", 3, priority=1).pending("third", "c", 1)
    result = cycle(builder.world)
    assert preemptions(result) == {"victim": "InCohortReclamation"}
    assert outcomes(result) == {
        "first": "WaitingForPreemptedWorkloads",
        "second": "WaitingForQuota",
        "third": "WaitingForQuota",
    }
    assert "1 core more needed" in messages(result)["second"]
    assert messages(result)["third"] == NO_LONGER_FITS


def test_t35_a_preemptor_that_no_longer_fits_spares_its_victim() -> None:
    builder = Builder().cohort("all", quotas={"default": 1})
    for name in ("alpha", "beta"):
        policy = preemption(within="LowerPriority", reclaim="LowerPriority", borrow="LowerPriority")
        builder.queue(name, {"default": 2}, "all", preemption=policy).running(f"{name}-low", name, 2, priority=-1)
    builder.pending("first", "alpha", 3, priority=100).pending("second", "beta", 3, priority=50)
    result = cycle(builder.world)
    assert preemptions(result) == {"alpha-low": "InClusterQueue"}
    assert outcomes(result) == {"first": "WaitingForPreemptedWorkloads", "second": "WaitingForQuota"}
    assert messages(result)["second"] == NO_LONGER_FITS
    assert result.preemption_skips == builder.world.preemption_skips() == {"beta": 1}  # Kueue's gauge


def test_candidates_of_other_queues_by_priority_then_later_reservation_then_uid() -> None:
    builder = Builder().queue("a", {"default": 4}, "all", preemption=preemption(reclaim="Any"))
    builder.queue("b", {"default": 0}, "all").queue("c", {"default": 0}, "all")
    builder.running("b-old", "b", 1, at=1.0).running("c-new", "c", 1, at=2.0)
    builder.running("b-high", "b", 1, at=3.0, priority=1).running("c-uid", "c", 1, at=1.0)
    for size, victims in ((1, {"c-new"}), (2, {"c-new", "b-old"}), (3, {"c-new", "b-old", "c-uid"})):
        builder.pending("w", "a", size)
        assert set(preemptions(cycle(builder.world))) <= victims
        assert builder.world.workload("team/b-high") is not None
    stopping = {name for name in ("b-old", "c-new", "c-uid", "b-high") if is_stopping(builder, name)}
    assert stopping == {"c-new", "b-old", "c-uid"}


def is_stopping(builder: Builder, name: str) -> bool:
    """Whether a workload was told to stop."""
    found = builder.world.workload(f"team/{name}")
    return found is not None and found.status == "Evicted"


def test_an_entry_whose_worst_resource_fits_by_borrowing_is_skipped_not_preempting() -> None:
    # 19 A1: with PreemptionOverBorrowing (fit, level 1) is worse than (preempt, level 0).
    both = fungibility(borrow="TryNextFlavor", preempt="TryNextFlavor", prefer="PreemptionOverBorrowing")
    builder = Builder().cohort("all", quotas={"spot": {"cpu": 0, "memory": 4}})
    builder.queue(
        "a",
        {"spot": {"cpu": 4, "memory": 0}},
        "all",
        preemption=preemption(within="LowerPriority"),
        flavor_fungibility=both,
    )
    builder.running("low", "a", {"cpu": 4, "memory": 0}, "spot").pending("w", "a", {"cpu": 2, "memory": 2}, priority=1)
    result = cycle(builder.world)
    assert not result.decided
    assert outcomes(result) == {"w": "WaitingForQuota"}
    assert messages(result)["w"] == NO_LONGER_FITS


def test_preempted_workloads_keep_their_quota_until_they_have_stopped() -> None:
    builder = Builder().queue("a", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 4).pending("w", "a", 4, priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}
    again = cycle(builder.world)
    assert not again.decided
    assert not again.outcomes
    assert builder.world.cluster_queue_status("a").reserving == 1
    builder.world.release_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


def test_partial_admission_comes_after_preemption_with_full_counts() -> None:
    builder = Builder().queue("a", {"default": 10}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 4).pending("w", "a", [pod_set(1, count=10, min_count=2)], priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}


def test_partial_admission_may_preempt_with_reduced_counts() -> None:
    builder = Builder().queue("a", {"default": 10}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "a", 4).running("high", "a", 4, priority=9)
    builder.pending("w", "a", [pod_set(1, count=10, min_count=4)], priority=1)
    results = settled(builder.world)
    assert preemptions(results[0]) == {"low": "InClusterQueue"}
    (admission,) = results[1].admissions
    assert [ps.count for ps in admission.pod_sets] == [6]


def test_t81_what_a_cycle_preempts_counts_as_gone_for_the_rest_of_it() -> None:
    """As in Kueue, `late` gets quota that `big` still holds. The cohort is above its quota until `big` has stopped."""
    policy = preemption(within="Never", reclaim="LowerPriority")
    builder = Builder().queue("lender", {"default": 8}, "all", preemption=policy)
    builder.queue("borrower", {"default": 1}, "all").queue("third", {"default": 9}, "all")
    builder.running("big", "borrower", 9).running("l0", "lender", 4, priority=1).running("t0", "third", 4)
    builder.pending("w", "lender", 2, priority=1).pending("t1", "third", 1).pending("late", "borrower", 1)
    result = cycle(builder.world)
    assert preemptions(result) == {"big": "InCohortReclamation"}
    assert sorted(admissions(result)) == ["late", "t1"]
    used = {queue: builder.world.cluster_queue_status(queue).usage[0].used for queue in ("lender", "borrower", "third")}
    assert sum(used.values()) == 19_000, used


def test_t81_a_device_is_free_when_those_that_are_preempted_have_stopped() -> None:
    """Quota may be given away before; a device that two workloads hold would be one too many."""
    policy, plenty = preemption(within="Never", reclaim="LowerPriority"), 10_000_000
    builder = Builder().queue("lender", {"default": {GPU: 8, MEMORY: plenty}}, "all", preemption=policy)
    builder.queue("borrower", {"default": {GPU: 1, MEMORY: plenty}}, "all")
    builder.queue("third", {"default": {GPU: 9, MEMORY: plenty}}, "all")
    builder.world.set_node(gpu_node("n", 18))

    def submit(name: str, queue: str, pods: int, priority: int = 0) -> None:
        made = workload(name, queue, 0, priority=priority)
        builder.world.set_workload(replace(made, pod_sets=(gpus(1, 16384, pods=pods),)), 0.0)

    for name, queue, pods, priority in (("big", "borrower", 9, 0), ("l0", "lender", 4, 1), ("t0", "third", 4, 0)):
        submit(name, queue, pods, priority)
    settled(builder.world)
    for name, queue, pods, priority in (("w", "lender", 2, 1), ("t1", "third", 1, 0), ("late", "borrower", 1, 0)):
        submit(name, queue, pods, priority)
    result = cycle(builder.world)
    assert preemptions(result) == {"big": "InCohortReclamation"}
    assert admissions(result) == ["t1"]
    assert outcomes(result)["late"] == "WaitingForQuota"
    builder.world.release_workload("team/big", 1000.0)
    assert sorted(name for each in settled(builder.world) for name in admissions(each)) == ["late", "w"]
