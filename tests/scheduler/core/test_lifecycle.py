"""A workload's life outside the cycle: which step comes when."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from scheduler.core import conditions
from scheduler.core.admission_check import AdmissionCheckState
from scheduler.core.cluster_queue import AdmissionCheckRule, ClusterQueue
from scheduler.core.cohort import FlavorQuotas, ResourceGroup
from scheduler.core.configuration import Configuration, RequeuingStrategy, WaitForPodsReady
from scheduler.core.decisions import AdmissionCheckStatus, ConditionStatus, ConditionType, EvictionReason, StopPolicy
from scheduler.core.lifecycle import Step, next_step
from scheduler.core.lifecycle_facts import Facts, deadline
from scheduler.core.local_queue import LocalQueue
from scheduler.core.workload import Admission, PodSetAssignment, RequeueState, Workload

QUEUE = ClusterQueue(
    "main", resource_groups=(ResourceGroup(("cpu",), (FlavorQuotas("spot"), FlavorQuotas("on-demand"))),)
)
LOCAL_QUEUE = LocalQueue("team", "queue", "main")
PODS_READY = Configuration(
    wait_for_pods_ready=WaitForPodsReady(
        timeout_seconds=100,
        recovery_timeout_seconds=50,
        requeuing_strategy=RequeuingStrategy(backoff_limit_count=2, backoff_base_seconds=60),
    )
)


def facts(**changes: object) -> Facts:
    return replace(Facts(Configuration(), LOCAL_QUEUE, QUEUE), **changes)  # type: ignore[arg-type]  # fields by name


def waiting(**fields: object) -> Workload:
    return replace(Workload("team", "one", "uid-1", "queue"), **fields)  # type: ignore[arg-type]  # fields by name


def reserved(flavor: str = "spot", at: float = 0, checks: Sequence[AdmissionCheckState] = ()) -> Workload:
    assignment = PodSetAssignment("main", 1, {"cpu": flavor}, {"cpu": 1000})
    workload = waiting(admission=Admission("main", (assignment,)), admission_checks=tuple(checks))
    return conditions.reserved(workload, "Quota reserved in ClusterQueue main", at)


def admitted(at: float = 0, **fields: object) -> Workload:
    return replace(conditions.sync_admitted(reserved(at=at), at), **fields)  # type: ignore[arg-type]  # fields by name


def pods_ready(workload: Workload, ready: bool, reason: str, at: float) -> Workload:
    status = ConditionStatus.TRUE if ready else ConditionStatus.FALSE
    return conditions.with_condition(workload, ConditionType.PODS_READY, status, reason, "", at)


def step_of(workload: Workload, now: float, **changes: object) -> Step:
    step = next_step(workload, facts(**changes), now)
    assert step is not None
    return step


def reason_of(workload: Workload, type_: ConditionType) -> tuple[str, str]:
    condition = workload.conditions[type_]
    return condition.status.value, condition.reason


@pytest.mark.parametrize(
    "workload", [waiting(), admitted(), conditions.pending(waiting(), "WaitingForQuota", "later", 0)]
)
def test_nothing_is_due(workload: Workload) -> None:
    assert next_step(workload, facts(), 5) is None
    assert deadline(workload, facts()) is None


def test_a_finished_workload_takes_no_step() -> None:
    finished = conditions.with_condition(admitted(), ConditionType.FINISHED, ConditionStatus.TRUE, "Succeeded", "", 1)
    assert next_step(finished, facts(wanted_active=False), 5) is None


class TestEviction:
    def test_an_evicted_workload_keeps_its_quota_until_its_pods_stopped(self) -> None:
        evicted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 10)
        assert next_step(evicted, facts(), 11) is None
        step = step_of(evicted, 12, pods_stopped=True)
        assert step.workload.admission is None
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")
        assert reason_of(step.workload, ConditionType.ADMITTED) == ("False", "NoReservation")
        assert reason_of(step.workload, ConditionType.REQUEUED) == ("True", "Preempted")

    def test_execution_time_adds_up_in_whole_seconds(self) -> None:  # T59
        evicted = conditions.evict(admitted(at=0), EvictionReason.PREEMPTED, "", 40)
        assert step_of(evicted, 40.9, pods_stopped=True, accumulated_seconds=7).accumulated_seconds == 47

    def test_a_new_reservation_ends_the_eviction(self) -> None:
        evicted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 10)
        again = conditions.reserved(evicted, "again", 20)
        assert reason_of(again, ConditionType.EVICTED) == ("False", "QuotaReserved")
        assert again.conditions[ConditionType.EVICTED].message == "previously: for another"


class TestDeactivation:
    def test_it_evicts_once_and_forgets_the_back_off(self) -> None:
        step = step_of(admitted(requeue_state=RequeueState(3, 99)), 5, wanted_active=False)
        assert reason_of(step.workload, ConditionType.EVICTED) == ("True", "Deactivated")
        assert step.workload.requeue_state is None
        assert step.evicted == (EvictionReason.DEACTIVATED, "")
        assert next_step(step.workload, facts(wanted_active=False), 6) is None

    def test_it_tells_a_waiting_one_and_lets_it_come_back(self) -> None:
        step = step_of(waiting(), 5, wanted_active=False)
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Deactivated")
        back = step_of(step.workload, 6)
        assert reason_of(back.workload, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")

    def test_a_waiting_one_forgets_its_back_off(self) -> None:  # 10.5
        asked = AdmissionCheckState("billing", AdmissionCheckStatus.RETRY, requeue_after_seconds=60.0)
        held = waiting(requeue_state=RequeueState(3, 99.0), admission_checks=(asked,))
        step = step_of(held, 5, wanted_active=False)
        assert step.workload.requeue_state is None
        assert step_of(step.workload, 5, wanted_active=False).reason != step.reason, "once"

    def test_one_that_was_evicted_is_reactivated(self) -> None:
        evicted = step_of(admitted(), 5, wanted_active=False).workload
        released = step_of(evicted, 6, wanted_active=False, pods_stopped=True).workload
        assert reason_of(released, ConditionType.REQUEUED) == ("False", "Deactivated")
        assert reason_of(step_of(released, 7).workload, ConditionType.REQUEUED) == ("True", "Reactivated")


class TestStopPolicy:  # 2.6, T57
    @pytest.mark.parametrize("policy", [StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN])
    def test_a_reservation_that_is_not_admitted_is_taken_back(self, policy: StopPolicy) -> None:
        check = AdmissionCheckState("security")
        queue = replace(QUEUE, stop_policy=policy, admission_checks=(AdmissionCheckRule("security"),))
        step = step_of(conditions.sync_admitted(reserved(checks=[check]), 0), 5, cluster_queue=queue)
        assert step.workload.admission is None
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Suspended")

    def test_hold_lets_run_what_runs(self) -> None:
        assert next_step(admitted(), facts(cluster_queue=replace(QUEUE, stop_policy=StopPolicy.HOLD)), 5) is None

    DRAINED_CLUSTER_QUEUE = {"cluster_queue": replace(QUEUE, stop_policy=StopPolicy.HOLD_AND_DRAIN)}
    DRAINED_LOCAL_QUEUE = {"local_queue": replace(LOCAL_QUEUE, stop_policy=StopPolicy.HOLD_AND_DRAIN)}

    @pytest.mark.parametrize(
        ("changes", "reason", "restarted"),
        [
            (DRAINED_CLUSTER_QUEUE, "ClusterQueueStopped", "ClusterQueueRestarted"),
            (DRAINED_LOCAL_QUEUE, "LocalQueueStopped", "LocalQueueRestarted"),
        ],
    )
    def test_drain_evicts_and_a_restart_queues_again(
        self, changes: dict[str, object], reason: str, restarted: str
    ) -> None:
        evicted = step_of(admitted(), 5, **changes).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", reason)
        released = step_of(evicted, 6, pods_stopped=True, **changes).workload
        assert reason_of(released, ConditionType.REQUEUED) == ("False", reason)
        suspended = step_of(released, 7, **changes).workload
        assert reason_of(suspended, ConditionType.QUOTA_RESERVED) == ("False", "Suspended")
        assert reason_of(step_of(suspended, 8).workload, ConditionType.REQUEUED) == ("True", restarted)


class TestQueues:
    @pytest.mark.parametrize(
        ("changes", "reason", "said"),
        [
            ({"local_queue": None}, "Misconfigured", "LocalQueue team/queue does not exist"),
            ({"cluster_queue": None}, "Misconfigured", "ClusterQueue main does not exist"),
            (
                {"queue_problem": "flavors not found: spot"},
                "Suspended",
                "ClusterQueue main is inactive: flavors not found: spot",
            ),
        ],
    )
    def test_a_missing_queue_is_said_and_forgotten_when_it_is_there(
        self, changes: dict[str, object], reason: str, said: str
    ) -> None:
        step = step_of(waiting(), 5, **changes)
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", reason)
        assert step.message == said
        assert step_of(step.workload, 6).reason == "PendingEvaluation"

    def test_a_deleted_local_queue_takes_back_what_is_not_admitted_and_leaves_the_rest(self) -> None:  # 2.9
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("security"),))
        reserving = conditions.sync_admitted(reserved(checks=[AdmissionCheckState("security")]), 0)
        step = step_of(reserving, 5, local_queue=None, cluster_queue=queue)
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Misconfigured")
        assert next_step(admitted(), facts(local_queue=None), 5) is None

    def test_a_verdict_of_the_cycle_stays(self) -> None:
        told = conditions.pending(waiting(), "Misconfigured", "namespace team does not match", 1)
        assert next_step(told, facts(), 5) is None


class TestAdmissionChecks:
    CHECKED = replace(
        QUEUE, admission_checks=(AdmissionCheckRule("billing"), AdmissionCheckRule("security", ("spot",)))
    )

    def test_those_of_all_flavors_are_listed_while_it_waits_and_the_others_with_the_flavor(self) -> None:  # 9.1, T61
        step = step_of(waiting(), 5, cluster_queue=self.CHECKED)
        assert [check.name for check in step.workload.admission_checks] == ["billing"]
        on_spot = step_of(reserved("spot"), 6, cluster_queue=self.CHECKED).workload
        assert [check.name for check in on_spot.admission_checks] == ["billing", "security"]
        assert reason_of(on_spot, ConditionType.ADMITTED) == ("False", "UnsatisfiedAdmissionChecks")
        on_demand = step_of(reserved("on-demand"), 6, cluster_queue=self.CHECKED).workload
        assert [check.name for check in on_demand.admission_checks] == ["billing"]

    @pytest.mark.parametrize("checks", [[], [AdmissionCheckState("billing")]])
    def test_a_check_that_comes_later_stops_nothing(self, checks: list[AdmissionCheckState]) -> None:  # 2.5.12
        runs = admitted(admission_checks=tuple(checks))
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        step = next_step(runs, facts(cluster_queue=queue), 5)
        assert (step is None) is bool(checks)
        after = runs if step is None else step.workload
        assert reason_of(after, ConditionType.ADMITTED) == ("True", "Admitted")
        assert [check.state for check in after.admission_checks] == [AdmissionCheckStatus.PENDING]

    def test_all_ready_admits(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        ready = AdmissionCheckState("billing", AdmissionCheckStatus.READY)
        step = step_of(reserved(checks=[ready]), 5, cluster_queue=queue)
        assert reason_of(step.workload, ConditionType.ADMITTED) == ("True", "Admitted")

    def check(self, state: AdmissionCheckStatus, **fields: object) -> Workload:
        check = AdmissionCheckState("billing", state, "no money", **fields)  # type: ignore[arg-type]  # fields by name
        return conditions.sync_admitted(reserved(checks=[check]), 0)

    def test_retry_evicts_resets_and_comes_back_after_the_delay(self) -> None:  # 9.2
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        asked = self.check(AdmissionCheckStatus.RETRY, last_transition_time=5.0, requeue_after_seconds=60.0)
        delayed = step_of(asked, 6, cluster_queue=queue).workload
        assert delayed.requeue_state == RequeueState(0, 65.0)
        evicted = step_of(delayed, 6, cluster_queue=queue).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "AdmissionCheck")
        assert evicted.admission_checks[0].state is AdmissionCheckStatus.PENDING
        assert evicted.admission_checks[0].retry_count == 1
        released = step_of(evicted, 7, cluster_queue=queue, pods_stopped=True).workload
        assert next_step(released, facts(cluster_queue=queue), 64) is None
        assert deadline(released, facts(cluster_queue=queue)) == 65.0
        back = step_of(released, 65, cluster_queue=queue).workload
        assert reason_of(back, ConditionType.REQUEUED) == ("True", "BackoffFinished")
        assert back.requeue_state == RequeueState(0, None)

    def test_rejected_wins_over_retry_and_deactivates(self) -> None:
        rules = (AdmissionCheckRule("billing"), AdmissionCheckRule("security"))
        queue = replace(QUEUE, admission_checks=rules)
        checks = [
            AdmissionCheckState("billing", AdmissionCheckStatus.RETRY),
            AdmissionCheckState("security", AdmissionCheckStatus.REJECTED, "no"),
        ]
        workload = replace(conditions.sync_admitted(reserved(checks=checks), 0), requeue_state=RequeueState(0, 1.0))
        marked = step_of(workload, 5, cluster_queue=queue).workload
        assert reason_of(marked, ConditionType.DEACTIVATION_TARGET) == ("True", "AdmissionCheck")
        deactivating = step_of(marked, 5, cluster_queue=queue)
        assert deactivating.deactivates
        evicted = step_of(deactivating.workload, 5, cluster_queue=queue, wanted_active=False).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "DeactivatedDueToAdmissionCheck")
        assert ConditionType.DEACTIVATION_TARGET not in evicted.conditions


class TestPodsReady:
    def test_a_start_that_takes_too_long_is_requeued_with_a_back_off_that_doubles(self) -> None:  # 10.2, T58
        assert deadline(admitted(), facts(configuration=PODS_READY)) == 100
        assert next_step(admitted(), facts(configuration=PODS_READY), 99) is None
        step = step_of(admitted(), 100, configuration=PODS_READY)
        assert step.reason == "EvictedDueToPodsReadyTimeoutDueToWaitForStart"
        assert step.workload.requeue_state == RequeueState(1, 160)
        second = step_of(admitted(requeue_state=RequeueState(1)), 100, configuration=PODS_READY)
        assert second.workload.requeue_state == RequeueState(2, 220)

    def test_after_too_many_attempts_it_is_deactivated(self) -> None:
        step = step_of(admitted(requeue_state=RequeueState(2)), 100, configuration=PODS_READY)
        assert reason_of(step.workload, ConditionType.DEACTIVATION_TARGET) == ("True", "RequeuingLimitExceeded")

    def test_a_requeue_time_never_moves_to_an_earlier_one(self) -> None:
        step = step_of(admitted(requeue_state=RequeueState(0, 500)), 100, configuration=PODS_READY)
        assert step.workload.requeue_state == RequeueState(1, 500)

    def test_recovery_has_its_own_time(self) -> None:
        recovering = pods_ready(pods_ready(admitted(), True, "Started", 20), False, "WaitForRecovery", 30)
        assert deadline(recovering, facts(configuration=PODS_READY)) == 80
        assert step_of(recovering, 80, configuration=PODS_READY).evicted == (
            EvictionReason.PODS_READY_TIMEOUT,
            "WaitForRecovery",
        )

    def test_pods_that_are_ready_are_left_alone(self) -> None:
        assert next_step(pods_ready(admitted(), True, "Started", 20), facts(configuration=PODS_READY), 9999) is None


class TestExecutionTime:  # 10.7, T59
    def test_what_it_ran_before_counts(self) -> None:
        workload = admitted(maximum_execution_time_seconds=100)
        assert deadline(workload, facts(accumulated_seconds=40)) == 60
        assert next_step(workload, facts(accumulated_seconds=40), 59) is None
        step = step_of(workload, 60, accumulated_seconds=40)
        assert reason_of(step.workload, ConditionType.DEACTIVATION_TARGET) == ("True", "MaximumExecutionTimeExceeded")
        assert step.accumulated_seconds == 0


def test_a_group_whose_pods_are_missing_says_so_until_they_are_there() -> None:
    missing = conditions.with_condition(
        waiting(), ConditionType.WAITING_FOR_REPLACEMENT_PODS, ConditionStatus.TRUE, "PodsFailed", "1 of 3 missing", 0
    )
    told = step_of(missing, 5).workload
    assert reason_of(told, ConditionType.QUOTA_RESERVED) == ("False", "PodGroupIncomplete")
    assert told.conditions[ConditionType.QUOTA_RESERVED].message == "1 of 3 missing"
    complete = conditions.with_condition(
        told, ConditionType.WAITING_FOR_REPLACEMENT_PODS, ConditionStatus.FALSE, "PodsReady", "", 9
    )
    again = step_of(complete, 10).workload
    assert reason_of(again, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")
    assert next_step(again, facts(), 11) is None
