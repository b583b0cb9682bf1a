"""A workload's life outside the cycle: which step comes when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.lifecycle import conditions
from scheduling.lifecycle.context import EvictionRequest, deadline
from scheduling.lifecycle.inadmissible import NAMESPACE_MISMATCH
from scheduling.lifecycle.reconcile import StepEvent, next_step
from scheduling.model.admission_check import AdmissionCheckRule, AdmissionCheckState
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionStatus, ConditionType, EvictionReason, StopPolicy
from scheduling.model.workload import RequeueState, Workload
from scheduling.reservations.reserved_nodes import ReservedWindow
from tests.scheduling.lifecycle_helpers import (
    LOCAL_QUEUE,
    PODS_READY,
    QUEUE,
    admitted,
    context,
    message_of,
    pods_ready,
    reason_of,
    reserved,
    step_of,
    steps_to_rest,
    told,
    waiting,
)


def pending(reason: str, message: str) -> Workload:
    """A workload that waits, as QuotaReserved and Admitted say."""
    return conditions.sync_admitted(conditions.pending(waiting(), reason, message, 1), 1)


@pytest.mark.parametrize("workload", [waiting(), admitted(), pending("WaitingForQuota", "later")])
def test_nothing_is_due(workload: Workload) -> None:
    assert next_step(workload, context(), 5) is None
    assert deadline(workload, context(), 5) is None


def test_a_finished_workload_takes_no_step() -> None:
    finished = conditions.with_condition(admitted(), ConditionType.FINISHED, ConditionStatus.TRUE, "Succeeded", "", 1)
    assert next_step(finished, context(wanted_active=False), 5) is None


class TestEviction:
    def test_an_evicted_workload_keeps_its_quota_until_its_pods_stopped(self) -> None:
        evicted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 10)
        assert next_step(evicted, context(), 11) is None
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
        assert again.conditions[ConditionType.EVICTED].message == "Previously: for another"


class TestDeactivation:
    def test_it_evicts_once_and_forgets_the_back_off(self) -> None:
        step = step_of(admitted(requeue_state=RequeueState(3, 99)), 5, wanted_active=False)
        assert reason_of(step.workload, ConditionType.EVICTED) == ("True", "Deactivated")
        assert step.workload.requeue_state is None
        assert step.evicted == (EvictionReason.DEACTIVATED, "")
        assert next_step(step.workload, context(wanted_active=False), 6) is None

    def test_a_waiting_workload_is_counted_as_evicted_and_no_event_tells_it(self) -> None:
        step = step_of(waiting(), 5, wanted_active=False)
        assert step.events == ()
        assert step.evicted == (EvictionReason.DEACTIVATED, "")
        assert reason_of(step.workload, ConditionType.EVICTED) == ("True", "Deactivated")
        assert ConditionType.REQUEUED not in step.workload.conditions
        verdict = step_of(step.workload, 5, wanted_active=False)
        assert reason_of(verdict.workload, ConditionType.QUOTA_RESERVED) == ("False", "Deactivated")
        assert next_step(verdict.workload, context(wanted_active=False), 6) is None, "once"

    def test_it_comes_back_and_the_eviction_is_over_with_the_next_reservation(self) -> None:
        held = steps_to_rest(waiting(), 5, wanted_active=False)
        back = steps_to_rest(held, 6)
        assert reason_of(back, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")
        assert reason_of(back, ConditionType.EVICTED) == ("True", "Deactivated")
        again = conditions.reserved(back, "again", 7)
        assert reason_of(again, ConditionType.EVICTED) == ("False", "QuotaReserved")

    def test_a_workload_that_was_preempted_before_keeps_that_eviction(self) -> None:
        preempted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 3)
        stopping = replace(preempted, requeue_state=RequeueState(1, 9.0))
        forgotten = step_of(stopping, 4, wanted_active=False)
        assert forgotten.evicted is None, "it is stopping already"
        assert forgotten.workload.requeue_state is None
        released = step_of(forgotten.workload, 5, wanted_active=False, pods_stopped=True).workload
        assert reason_of(released, ConditionType.REQUEUED) == ("True", "Preempted")
        held = steps_to_rest(released, 5, wanted_active=False)
        assert reason_of(held, ConditionType.EVICTED) == ("True", "Preempted")
        assert reason_of(held, ConditionType.QUOTA_RESERVED) == ("False", "Deactivated")
        assert reason_of(steps_to_rest(held, 6), ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")

    def test_activation_ends_a_pods_ready_back_off(self) -> None:
        evicted = step_of(admitted(), 100, configuration=PODS_READY).workload
        released = step_of(evicted, 101, configuration=PODS_READY, pods_stopped=True).workload
        held = steps_to_rest(released, 102, configuration=PODS_READY, wanted_active=False)
        assert (held.requeue_state, reason_of(held, ConditionType.EVICTED)) == (None, ("True", "PodsReadyTimeout"))
        back = steps_to_rest(held, 103, configuration=PODS_READY)
        assert reason_of(back, ConditionType.REQUEUED) == ("True", "BackoffFinished")

    def test_a_waiting_one_forgets_its_back_off(self) -> None:
        asked = AdmissionCheckState("billing", AdmissionCheckStatus.RETRY, requeue_after_seconds=60.0)
        held = waiting(requeue_state=RequeueState(3, 99.0), admission_checks=(asked,))
        step = step_of(held, 5, wanted_active=False)
        assert step.workload.requeue_state is None
        assert steps_to_rest(step.workload, 5, wanted_active=False).requeue_state is None

    def test_one_that_was_evicted_is_reactivated(self) -> None:
        evicted = step_of(admitted(), 5, wanted_active=False).workload
        released = step_of(evicted, 6, wanted_active=False, pods_stopped=True).workload
        assert reason_of(released, ConditionType.REQUEUED) == ("False", "Deactivated")
        assert reason_of(step_of(released, 7).workload, ConditionType.REQUEUED) == ("True", "Reactivated")


class TestStopPolicy:  # T57
    @pytest.mark.parametrize("policy", [StopPolicy.HOLD, StopPolicy.HOLD_AND_DRAIN])
    def test_a_reservation_that_is_not_admitted_is_taken_back(self, policy: StopPolicy) -> None:
        check = AdmissionCheckState("security")
        queue = replace(QUEUE, stop_policy=policy, admission_checks=(AdmissionCheckRule("security"),))
        step = step_of(conditions.sync_admitted(reserved(checks=[check]), 0), 5, cluster_queue=queue)
        assert step.workload.admission is None
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Suspended")

    def test_hold_lets_run_what_runs(self) -> None:
        assert next_step(admitted(), context(cluster_queue=replace(QUEUE, stop_policy=StopPolicy.HOLD)), 5) is None

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


class TestRequeue:
    def test_who_is_asked_to_stops_and_queues_again(self) -> None:
        evicted = step_of(admitted(), 5, eviction_request=EvictionRequest("alice")).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "RequeueRequested")
        assert next_step(evicted, context(eviction_request=EvictionRequest("alice")), 6) is None
        released = step_of(evicted, 7, pods_stopped=True).workload
        assert released.admission is None
        assert reason_of(released, ConditionType.REQUEUED) == ("True", "RequeueRequested")


class TestOnHold:
    WHY = "StatefulSet scaled to zero; workload on hold"

    def test_quota_is_given_back_at_once_and_the_workload_is_not_queued(self) -> None:
        held = step_of(admitted(), 5, on_hold=self.WHY).workload
        assert held.admission is None
        assert reason_of(held, ConditionType.QUOTA_RESERVED) == ("False", "OnHold")
        assert message_of(held, ConditionType.QUOTA_RESERVED) == self.WHY
        assert reason_of(held, ConditionType.ADMITTED) == ("False", "NoReservation")
        assert next_step(held, context(on_hold=self.WHY), 6) is None

    def test_it_is_queued_again_when_its_job_wants_pods(self) -> None:
        again = step_of(pending("OnHold", self.WHY), 6, on_hold="").workload
        assert reason_of(again, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")
        assert next_step(again, context(on_hold=""), 7) is None

    def test_a_stopping_workload_is_put_on_hold_once_its_pods_have_stopped(self) -> None:
        evicted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 10)
        assert next_step(evicted, context(on_hold=self.WHY), 11) is None

    def test_a_deactivated_workload_is_evicted_instead(self) -> None:
        evicted = step_of(admitted(), 5, on_hold=self.WHY, wanted_active=False).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "Deactivated")

    def test_a_condition_of_another_controller_stays(self) -> None:
        assert next_step(pending("OnHold", self.WHY), context(), 6) is None


class TestQueues:
    @pytest.mark.parametrize(
        ("changes", "reason", "said"),
        [
            ({"local_queue": None}, "Misconfigured", "LocalQueue queue doesn't exist"),
            ({"cluster_queue": None}, "Misconfigured", "ClusterQueue main doesn't exist"),
            ({"inactive_reason": "flavors not found: spot"}, "Suspended", "ClusterQueue main is inactive"),
            (
                {"admissibility_error": NAMESPACE_MISMATCH},
                "Misconfigured",
                "workload namespace doesn't match ClusterQueue selector",
            ),
        ],
    )
    def test_a_missing_queue_is_reported_until_it_exists(
        self, changes: dict[str, object], reason: str, said: str
    ) -> None:
        step = step_of(waiting(), 5, **changes)
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", reason)
        assert message_of(step.workload, ConditionType.QUOTA_RESERVED) == said
        again = step_of(step.workload, 6).workload
        assert reason_of(again, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")

    def test_a_deleted_local_queue_takes_back_what_is_not_admitted_and_leaves_the_rest(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("security"),))
        reserving = conditions.sync_admitted(reserved(checks=[AdmissionCheckState("security")]), 0)
        step = step_of(reserving, 5, local_queue=None, cluster_queue=queue)
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Misconfigured")
        assert next_step(admitted(), context(local_queue=None), 5) is None

    def test_a_deleted_cluster_queue_takes_back_what_is_not_admitted_and_leaves_the_rest(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("security"),), terminating=True)
        reserving = conditions.sync_admitted(reserved(checks=[AdmissionCheckState("security")]), 0)
        for cluster_queue in (queue, None):
            step = step_of(reserving, 5, cluster_queue=cluster_queue)
            assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Misconfigured")
            assert (
                message_of(step.workload, ConditionType.QUOTA_RESERVED) == "ClusterQueue main is terminating or missing"
            )
            assert next_step(admitted(), context(cluster_queue=replace(QUEUE, terminating=True)), 5) is None
        assert next_step(admitted(), context(cluster_queue=None), 5) is None

    def test_a_local_queue_that_is_being_deleted_queues_nothing(self) -> None:
        step = step_of(waiting(), 5, local_queue=replace(LOCAL_QUEUE, terminating=True))
        assert reason_of(step.workload, ConditionType.QUOTA_RESERVED) == ("False", "Misconfigured")

    def test_setting_and_clearing_an_admission_gate_have_events(self) -> None:
        gated = step_of(waiting(admission_gates=("budget", "audit")), 5)
        assert told(gated) == StepEvent("AdmissionGated", "Workload admission is gated by: budget,audit")
        assert message_of(gated.workload, ConditionType.QUOTA_RESERVED) == "Admission is gated by: budget,audit"
        fewer = step_of(replace(gated.workload, admission_gates=("audit",)), 6)
        assert fewer.events == ()
        assert message_of(fewer.workload, ConditionType.QUOTA_RESERVED) == "Admission is gated by: audit"
        cleared = step_of(replace(fewer.workload, admission_gates=()), 7)
        assert told(cleared) == StepEvent("AdmissionGateCleared", "Admission gate cleared, workload is now admissible")
        assert reason_of(cleared.workload, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")

    def test_closed_preemption_gates_are_the_cycles_own_word(self) -> None:
        assert next_step(pending("AdmissionGated", "closed preemption gates: later"), context(), 5) is None

    def test_a_workload_on_hold_stays_on_hold(self) -> None:
        assert next_step(pending("OnHold", "scaled to 0"), context(cluster_queue=None), 5) is None

    def test_a_verdict_of_the_cycle_stays(self) -> None:
        refused = pending("Misconfigured", "didn't satisfy LimitRange constraints: cpu is above the maximum")
        assert next_step(refused, context(), 5) is None


class TestPodsReady:
    def test_a_start_that_takes_too_long_is_requeued_with_a_back_off_that_doubles(self) -> None:  # T58
        assert deadline(admitted(), context(configuration=PODS_READY), 5) == 100
        assert next_step(admitted(), context(configuration=PODS_READY), 99) is None
        step = step_of(admitted(), 100, configuration=PODS_READY)
        assert told(step) == StepEvent("EvictedDueToPodsReadyTimeout", "Exceeded the PodsReady timeout team/one")
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
        assert deadline(recovering, context(configuration=PODS_READY), 5) == 80
        assert step_of(recovering, 80, configuration=PODS_READY).evicted == (
            EvictionReason.PODS_READY_TIMEOUT,
            "WaitForRecovery",
        )

    def test_what_was_released_waits_for_its_pods_to_start_anew(self) -> None:
        ran = pods_ready(pods_ready(admitted(), True, "Started", 20), False, "WaitForRecovery", 30)
        evicted = conditions.evict(ran, EvictionReason.PREEMPTED, "", 40)
        released = step_of(evicted, 50, pods_stopped=True).workload
        assert reason_of(released, ConditionType.PODS_READY) == ("False", "WaitForStart")

    def test_pods_that_are_ready_are_left_alone(self) -> None:
        assert next_step(pods_ready(admitted(), True, "Started", 20), context(configuration=PODS_READY), 9999) is None


class TestExecutionTime:  # T59
    def test_what_it_ran_before_counts(self) -> None:
        workload = admitted(maximum_execution_time_seconds=100)
        assert deadline(workload, context(accumulated_seconds=40), 5) == 60
        assert next_step(workload, context(accumulated_seconds=40), 59) is None
        step = step_of(workload, 60, accumulated_seconds=40)
        assert reason_of(step.workload, ConditionType.DEACTIVATION_TARGET) == ("True", "MaximumExecutionTimeExceeded")
        assert step.accumulated_seconds == 0

    def test_pods_that_take_long_to_stop_use_it_up_too(self) -> None:
        preempted = conditions.evict(admitted(maximum_execution_time_seconds=100), EvictionReason.PREEMPTED, "", 90)
        assert deadline(preempted, context(), 5) == 100
        marked = step_of(preempted, 100)
        assert reason_of(marked.workload, ConditionType.DEACTIVATION_TARGET) == ("True", "MaximumExecutionTimeExceeded")
        assert step_of(marked.workload, 100).deactivates
        held = steps_to_rest(marked.workload, 100, wanted_active=False)
        assert reason_of(held, ConditionType.EVICTED) == ("True", "Preempted"), "it is stopping already"
        assert ConditionType.DEACTIVATION_TARGET not in held.conditions
        assert deadline(held, context(wanted_active=False), 100) is None


def test_a_group_whose_pods_are_missing_says_so_until_they_are_there() -> None:
    missing = conditions.with_condition(
        waiting(), ConditionType.WAITING_FOR_REPLACEMENT_PODS, ConditionStatus.TRUE, "PodsFailed", "1 of 3 missing", 0
    )
    waits = step_of(missing, 5).workload
    assert reason_of(waits, ConditionType.QUOTA_RESERVED) == ("False", "PodGroupIncomplete")
    assert message_of(waits, ConditionType.QUOTA_RESERVED) == "1 of 3 missing"
    complete = conditions.with_condition(
        waits, ConditionType.WAITING_FOR_REPLACEMENT_PODS, ConditionStatus.FALSE, "PodsReady", "", 9
    )
    again = step_of(complete, 10).workload
    assert reason_of(again, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")
    assert next_step(again, context(), 11) is None


class TestEvents:
    @pytest.mark.parametrize(
        ("reason", "cause", "event"),
        [
            (EvictionReason.PREEMPTED, "", "EvictedDueToPreempted"),
            (EvictionReason.PODS_READY_TIMEOUT, "WaitForStart", "EvictedDueToPodsReadyTimeout"),
            (EvictionReason.DEACTIVATED, "", "EvictedDueToDeactivated"),
            (EvictionReason.DEACTIVATED, "AdmissionCheck", "EvictedDueToDeactivatedDueToAdmissionCheck"),
        ],
    )
    def test_an_eviction_event_has_reason_and_cause(self, reason: EvictionReason, cause: str, event: str) -> None:
        assert conditions.eviction_event(reason, cause) == event

    def test_evictions_are_normal_and_what_went_wrong_is_a_warning(self) -> None:
        timed_out = step_of(admitted(), 100, configuration=PODS_READY)
        assert not told(timed_out).warning
        over = step_of(admitted(maximum_execution_time_seconds=10), 10)
        said = "The maximum execution time (10s) exceeded"
        assert told(over) == StepEvent("MaximumExecutionTimeExceeded", said, warning=True)


class TestReservations:
    WINDOW = ReservedWindow("maintenance", 100, 200)

    def test_the_start_of_a_window_evicts(self) -> None:
        waits = context(evicting_window=self.WINDOW)
        assert next_step(admitted(), waits, 99) is None
        assert deadline(admitted(), waits, 99) == 100
        step = step_of(admitted(), 100, evicting_window=self.WINDOW)
        assert step.evicted == (EvictionReason.RESERVATION_STARTED, "")
        assert message_of(step.workload, ConditionType.EVICTED) == (
            "The reservation maintenance of its nodes has started"
        )

    def test_an_evicted_workload_is_not_evicted_again(self) -> None:
        evicted = conditions.evict(admitted(), EvictionReason.PREEMPTED, "for another", 10)
        assert next_step(evicted, context(evicting_window=self.WINDOW), 150) is None

    def test_it_waits_again_at_once_when_its_pods_have_stopped(self) -> None:
        evicted = step_of(admitted(), 100, evicting_window=self.WINDOW).workload
        released = step_of(evicted, 101, pods_stopped=True).workload
        assert reason_of(released, ConditionType.REQUEUED) == ("True", "ReservationStarted")
