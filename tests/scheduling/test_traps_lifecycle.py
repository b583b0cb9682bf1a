"""The specification's traps of the life of a workload that the core holds, T56 to T65."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduling.cycle.nomination import search_reduced
from scheduling.lifecycle.conditions import with_condition
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule, AdmissionCheckState
from scheduling.model.cohort import PreemptionProtection
from scheduling.model.configuration import RequeuingStrategy, WaitForPodsReady
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionStatus, ConditionType, StopPolicy
from scheduling.model.workload import Workload
from scheduling.state.workload_info import PodSetRequests
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    reason_of,
    settled,
)


def current(builder: Builder, name: str) -> Workload:
    """The workload as the world sees it."""
    found = builder.world.workload(f"team/{name}")
    assert found is not None
    return found


def test_t56_an_evicted_workload_keeps_its_quota_until_its_pods_have_stopped() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("low", "q", 4).pending("w", "q", 4, priority=1)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}
    victim = current(builder, "low")
    assert victim.is_true(ConditionType.EVICTED)
    assert victim.is_true(ConditionType.PREEMPTED)
    assert victim.is_true(ConditionType.QUOTA_RESERVED)
    assert reason_of(builder.world, "w") == "WaitingForPreemptedWorkloads"
    builder.world.release_workload("team/low", 1001.0)
    released = current(builder, "low")
    assert released.is_true(ConditionType.REQUEUED)
    assert released.admission is None
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]
    assert not current(builder, "low").is_true(ConditionType.ADMITTED)


def test_t56b_deactivation_frees_the_quota_at_once() -> None:
    builder = Builder().queue("q", {"default": 4}).running("old", "q", 4).pending("w", "q", 4)
    assert outcomes(cycle(builder.world)) == {"w": "WaitingForQuota"}
    builder.world.set_workload(replace(current(builder, "old"), active=False), 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


@pytest.mark.parametrize("policy", [StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN])
def test_t57_a_stopped_queue_admits_nothing_and_goes_on_when_it_is_started(policy: StopPolicy) -> None:
    builder = Builder().queue("q", {"default": 4}, stop_policy=policy).pending("w", "q", 1)
    assert not builder.world.has_active()
    builder.queue("q", {"default": 4})
    assert admissions(cycle(builder.world)) == ["w"]
    builder.world.set_local_queue(LocalQueue("team", "q", "q", policy))
    builder.pending("held", "q", 1)
    assert not builder.world.has_active()
    builder.world.set_local_queue(LocalQueue("team", "q", "q"))
    assert admissions(cycle(builder.world)) == ["held"]


def test_t58_back_off_doubles_up_to_its_maximum() -> None:
    strategy = RequeuingStrategy()
    assert [strategy.backoff_seconds(count) for count in range(1, 9)] == [60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest.mark.parametrize(("room", "count"), [(7, 7), (10, 10), (4, 4), (3, None)])
def test_t60_partial_admission_finds_the_largest_count_that_fits(room: int, count: int | None) -> None:
    builder = Builder().queue("q", {"default": room}).pending("w", "q", [pod_set(1, count=10, min_count=4)])
    result = cycle(builder.world)
    assert [ps.count for a in result.admissions for ps in a.pod_sets] == ([] if count is None else [count])


def test_t60_the_search_probes_like_a_binary_search_and_may_miss_what_is_not_monotone() -> None:
    pods = [PodSetRequests(pod_set(1, count=10, min_count=0), 10, {"cpu": 1})]
    probes: list[int] = []

    def only_nine_less(reduced: Sequence[PodSetRequests]) -> str | None:
        probes.append(10 - reduced[0].count)
        return "nine" if probes[-1] == 9 else None

    assert search_reduced(pods, only_nine_less) is None
    assert probes == [5, 8, 10]
    assert search_reduced(pods, lambda reduced: 10 - reduced[0].count if reduced[0].count <= 6 else None) == 4


def checks(**states: AdmissionCheckStatus) -> tuple[AdmissionCheckState, ...]:
    """`status.admissionChecks`."""
    return tuple(AdmissionCheckState(name, state) for name, state in states.items())


def with_spot_check() -> Builder:
    """A queue whose flavor spot needs a check."""
    builder = Builder()
    builder.world.set_admission_check(AdmissionCheck("budget"))
    rules = (AdmissionCheckRule("budget", ("spot",)),)
    return builder.queue("q", {"spot": 4, "on-demand": 4}, admission_checks=rules)


def test_t61_a_check_for_some_flavors_concerns_only_them() -> None:
    builder = with_spot_check().pending("first", "q", 4).pending("second", "q", 4, at=1.0)
    on_spot, on_demand = (result.admissions[0] for result in settled(builder.world))
    assert (on_spot.workload, on_spot.admitted) == ("team/first", False)
    assert (on_demand.workload, on_demand.admitted) == ("team/second", True)
    assert current(builder, "first").status == "QuotaReserved"
    assert current(builder, "second").status == "Admitted"
    assert builder.world.cluster_queue_status("q").admitted == 1


def test_t61_admitted_at_once_when_every_check_is_ready_already() -> None:
    builder = with_spot_check()
    builder.pending("w", "q", 4, admission_checks=checks(budget=AdmissionCheckStatus.READY))
    assert cycle(builder.world).admissions[0].admitted


@pytest.mark.parametrize("state", [AdmissionCheckStatus.RETRY, AdmissionCheckStatus.REJECTED])
def test_t62_a_workload_with_a_failed_check_is_not_nominated(state: AdmissionCheckStatus) -> None:
    builder = with_spot_check().pending("w", "q", 4, admission_checks=checks(budget=state))
    assert outcomes(cycle(builder.world)) == {"w": "PendingEvaluation"}


def test_t62_a_missing_or_inactive_check_stops_the_queue() -> None:
    builder = with_spot_check().pending("w", "q", 1)
    builder.world.delete_admission_check("budget")
    assert not builder.world.has_active()
    assert builder.world.cluster_queue_status("q").reason == "AdmissionCheckNotFound"
    builder.world.set_admission_check(AdmissionCheck("budget", active=False))
    assert builder.world.cluster_queue_status("q").reason == "AdmissionCheckInactive"
    builder.world.set_admission_check(AdmissionCheck("budget"))
    assert admissions(cycle(builder.world)) == ["w"]


MK, PR = "kueue.x-k8s.io/multikueue", "kueue.x-k8s.io/provisioning-request"


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"east": (MK, ())}, "Ready"),
        ({"east": (MK, ()), "west": (MK, ())}, "MultipleMultiKueueAdmissionChecks"),
        ({"east": (MK, ("default",))}, "MultiKueueAdmissionCheckAppliedPerFlavor"),
        ({"east": (MK, ()), "nodes": (PR, ())}, "MultiKueueWithProvisioningRequest"),
        ({"nodes": (PR, ("default",)), "other": (PR, ())}, "Ready"),
    ],
)
def test_a_queue_has_one_check_of_multikueue_for_all_flavors_and_alone(
    rules: dict[str, tuple[str, tuple[str, ...]]], reason: str
) -> None:
    builder = Builder()
    listed = tuple(AdmissionCheckRule(name, flavors) for name, (_, flavors) in rules.items())
    builder.queue("q", {"default": 4}, admission_checks=listed)
    for name, (controller, _) in rules.items():
        builder.world.set_admission_check(AdmissionCheck(name, controller))
    status = builder.world.cluster_queue_status("q")
    assert (status.reason, status.active) == (reason, reason == "Ready")
    if reason != "Ready":
        assert "east" in status.message
    for name in rules:
        builder.world.set_admission_check(AdmissionCheck(name, "example.com/other"))
    assert builder.world.cluster_queue_status("q").active


def test_t63_blocked_admission_holds_the_whole_scheduler_until_pods_are_ready() -> None:
    builder = Builder(wait_for_pods_ready=WaitForPodsReady(block_admission=True))
    builder.queue("a", {"default": 4}).queue("b", {"default": 4})
    builder.pending("first", "a", 1).pending("second", "b", 1, at=1.0)
    result = cycle(builder.world)
    assert admissions(result) == ["first"]
    assert outcomes(result) == {"second": "WaitingForPodsReady"}
    assert not builder.world.has_active()
    ready = with_condition(
        current(builder, "first"), ConditionType.PODS_READY, ConditionStatus.TRUE, "Started", "", 1001.0
    )
    builder.world.set_workload(ready, 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["second"]


def test_t63_who_is_next_is_told_what_it_waits_for() -> None:
    builder = Builder(wait_for_pods_ready=WaitForPodsReady(block_admission=True)).queue("a", {"default": 4})
    builder.pending("first", "a", 1).pending("second", "a", 1, at=1.0).pending("third", "a", 1, at=2.0)
    results = settled(builder.world)
    assert [admissions(result) for result in results] == [["first"], []]
    assert [reason_of(builder.world, name) for name in ("second", "third")] == ["WaitingForPodsReady", ""]
    assert len(settled(builder.world)) == 0, "said once"


def test_t63_what_must_preempt_first_is_not_held_up_and_waits_then() -> None:
    builder = Builder(wait_for_pods_ready=WaitForPodsReady(block_admission=True)).queue("a", {"default": 4})
    builder.queue("b", {"default": 4}, preemption=preemption(within="LowerPriority")).running("low", "b", 4)
    low = with_condition(current(builder, "low"), ConditionType.PODS_READY, ConditionStatus.TRUE, "Started", "", 1.0)
    builder.world.set_workload(low, 1.0)
    assert admissions(cycle(builder.pending("first", "a", 1).world)) == ["first"]
    builder.pending("high", "b", 4, priority=1).pending("huge", "a", 9, priority=2)
    result = cycle(builder.world)
    assert preemptions(result) == {"low": "InClusterQueue"}
    assert outcomes(result) == {"high": "WaitingForPreemptedWorkloads", "huge": "ExceedsMaxQuota"}
    builder.world.release_workload("team/low", 1001.0)
    builder.pending("later", "a", 1, at=5.0)
    assert "WaitingForPodsReady" in outcomes(cycle(builder.world, 1001.0)).values()
    assert not builder.world.has_active(), "who fits stops the whole scheduler"
    ready = with_condition(current(builder, "first"), ConditionType.PODS_READY, ConditionStatus.TRUE, "Started", "", 9)
    builder.world.set_workload(ready, 1002.0)
    assert len(admissions(cycle(builder.world, 1002.0))) == 1


def test_t63_undone_with_the_batch() -> None:
    builder = Builder(wait_for_pods_ready=WaitForPodsReady(block_admission=True)).queue("a", {"default": 4})
    builder.pending("first", "a", 1).pending("second", "a", 1, at=1.0)
    point = builder.world.savepoint()
    settled(builder.world)
    assert not builder.world.has_active()
    builder.world.undo(point)
    assert [admissions(result) for result in settled(builder.world)] == [["first"], []]


def test_t64_waiting_for_ready_pods_takes_half_an_hour_and_does_not_block_by_default() -> None:
    assert WaitForPodsReady().timeout_seconds == 1800
    builder = Builder(wait_for_pods_ready=WaitForPodsReady()).queue("a", {"default": 4}).queue("b", {"default": 4})
    assert admissions(cycle(builder.pending("x", "a", 1).pending("y", "b", 1).world)) == ["x", "y"]
    condition = current(builder, "x").conditions[ConditionType.PODS_READY]
    assert (condition.status, condition.reason) == (ConditionStatus.FALSE, "WaitForStart")
    assert admissions(cycle(Builder().queue("a", {"default": 4}).pending("z", "a", 1).world)) == ["z"]


def test_closed_preemption_gates_stop_preemption_but_not_a_fit() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority")).running("low", "q", 4)
    result = cycle(builder.pending("w", "q", 4, priority=1, closed_preemption_gates=("gate",)).world)
    assert not result.decided
    assert outcomes(result) == {"w": "AdmissionGated"}
    builder.world.finish_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


def test_an_admission_gate_keeps_a_workload_out_of_its_queue() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("w", "q", 1, admission_gates=("budget",))
    assert not builder.world.has_active()
    builder.world.set_workload(replace(current(builder, "w"), admission_gates=()), 1001.0)
    assert admissions(cycle(builder.world)) == ["w"]


def test_reclaimed_pods_free_quota_for_others() -> None:
    builder = Builder().queue("q", {"default": 4}).running("old", "q", 1, count=4).pending("w", "q", 2)
    assert outcomes(cycle(builder.world)) == {"w": "WaitingForQuota"}
    builder.world.set_workload(replace(current(builder, "old"), reclaimable_pods={"main": 2}), 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["w"]


def test_a_workload_that_changes_queue_keeps_its_age() -> None:
    builder = Builder().queue("a", {"default": 0}).queue("b", {"default": 4})
    builder.pending("old", "a", 4, at=1.0).pending("new", "b", 4, at=2.0)
    builder.world.set_workload(replace(current(builder, "old"), queue_name="b"), 1001.0)
    assert admissions(cycle(builder.world)) == ["old"]


def test_protection_from_preemption_is_off_unless_configured() -> None:
    for protection, victims in (
        (PreemptionProtection(), {"low": "InClusterQueue"}),
        (PreemptionProtection(minimum_run_seconds=5000.0), {}),
        (PreemptionProtection(minimum_run_seconds=500.0), {"low": "InClusterQueue"}),
    ):
        builder = Builder().cohort("all", protection=protection)
        builder.queue("q", {"default": 4}, "all", preemption=preemption(within="LowerPriority"))
        builder.running("low", "q", 4).pending("w", "q", 4, priority=1)
        assert preemptions(cycle(builder.world, 1000.0)) == victims


def test_a_minimum_run_begins_with_the_admission_not_with_the_wait_for_a_check() -> None:
    builder = Builder()
    protection = PreemptionProtection(minimum_run_seconds=500.0)
    builder.queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"), protection=protection)
    builder.running("low", "q", 4, at=100.0).pending("w", "q", 4, priority=1)
    held = current(builder, "low")
    admitted = replace(held.conditions[ConditionType.ADMITTED], last_transition_time=800.0)
    conditions = {**held.conditions, ConditionType.ADMITTED: admitted}
    builder.world.set_workload(replace(held, conditions=conditions), 900.0)
    assert preemptions(cycle(builder.world, 1299.0)) == {}
    builder.world.advance(1300.0)
    assert preemptions(cycle(builder.world, 1300.0)) == {"low": "InClusterQueue"}


def test_those_who_wait_for_the_end_of_a_protection_are_looked_at_when_it_is_over() -> None:
    builder = Builder()
    protection = PreemptionProtection(minimum_run_seconds=5000.0)
    builder.queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"), protection=protection)
    builder.running("low", "q", 4, at=100.0).pending("w", "q", 4, priority=1)
    assert outcomes(cycle(builder.world, 1000.0)) == {"w": "WaitingForQuota"}
    builder.world.advance(5099.0)
    assert not builder.world.has_active()
    builder.world.advance(5100.0)
    assert builder.world.has_active()
    assert preemptions(cycle(builder.world, 5100.0)) == {"low": "InClusterQueue"}


def test_a_workload_that_was_preempted_is_safe_for_a_while_from_the_whole_subtree() -> None:
    builder = Builder().cohort("all", protection=PreemptionProtection(cool_down_seconds=100.0))
    builder.queue("a", {"default": 2}, "all", preemption=preemption(reclaim="Any")).queue("b", {"default": 2}, "all")
    builder.running("theirs", "b", 4, last_preempted_at=950.0).pending("w", "a", 2)
    assert outcomes(cycle(builder.world, 1000.0)) == {"w": "WaitingForQuota"}
    builder.world.advance(1050.0)
    assert preemptions(cycle(builder.world, 1050.0)) == {"theirs": "InCohortReclamation"}


def test_a_workload_marked_so_is_never_reclaimed_but_its_own_queue_may_preempt_it() -> None:
    policy = preemption(within="LowerPriority", reclaim="Any")
    builder = Builder().queue("a", {"default": 4}, "all", preemption=policy)
    builder.queue("b", {"default": 0}, "all", preemption=policy)
    builder.running("theirs", "b", 4, never_reclaimed=True)
    assert not cycle(builder.pending("w", "a", 4, priority=9).world).decided
    builder = Builder().queue("b", {"default": 4}, preemption=policy).running("own", "b", 4, never_reclaimed=True)
    assert preemptions(cycle(builder.pending("x", "b", 4, priority=9).world)) == {"own": "InClusterQueue"}
