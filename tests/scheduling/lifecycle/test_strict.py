"""Where a workload's life differs from Kueue's on purpose, and how StrictKueueLifecycle does Kueue's."""

from __future__ import annotations

from dataclasses import replace

from scheduling.lifecycle import conditions
from scheduling.lifecycle.context import deadline
from scheduling.lifecycle.reconcile import next_step
from scheduling.model.admission_check import AdmissionCheckRule, AdmissionCheckState
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType, EvictionReason, StopPolicy
from scheduling.model.workload import RequeueState, Workload
from tests.scheduling.lifecycle_helpers import (
    LOCAL_QUEUE,
    QUEUE,
    STRICT,
    admitted,
    context,
    pods_ready,
    reason_of,
    step_of,
    steps_to_rest,
    waiting,
)

CHECKED = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
DRAINED = replace(QUEUE, stop_policy=StopPolicy.HOLD_AND_DRAIN)


def asked_to_retry() -> Workload:
    """A check asked at 5 to try again a minute later."""
    check = AdmissionCheckState("billing", AdmissionCheckStatus.RETRY, "later", 5.0, 60.0)
    return admitted(admission_checks=(check,))


class TestRetryWithADelay:
    def test_it_evicts_at_once_so_that_others_can_have_its_quota(self) -> None:
        evicted = steps_to_rest(asked_to_retry(), 6, cluster_queue=CHECKED)
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "AdmissionCheck")
        assert evicted.requeue_state == RequeueState(0, 65.0)

    def test_strict_it_evicts_when_the_delay_is_over(self) -> None:
        held = steps_to_rest(asked_to_retry(), 6, cluster_queue=CHECKED, configuration=STRICT)
        assert ConditionType.EVICTED not in held.conditions
        assert deadline(held, context(cluster_queue=CHECKED, configuration=STRICT), 6) == 65.0
        evicted = steps_to_rest(held, 65, cluster_queue=CHECKED, configuration=STRICT)
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "AdmissionCheck")


class TestActivationAfterADeactivationByTheRules:
    def held(self) -> Workload:
        evicted = conditions.evict(admitted(), EvictionReason.DEACTIVATED, "no", 5, "AdmissionCheck")
        return steps_to_rest(conditions.release(evicted, 6), 6, wanted_active=False)

    def test_it_is_queued_again(self) -> None:
        assert reason_of(steps_to_rest(self.held(), 9), ConditionType.REQUEUED) == ("True", "Reactivated")

    def test_strict_it_stays_inadmissible(self) -> None:
        back = steps_to_rest(self.held(), 9, configuration=STRICT)
        assert reason_of(back, ConditionType.REQUEUED) == ("False", "DeactivatedDueToAdmissionCheck")
        assert reason_of(back, ConditionType.QUOTA_RESERVED) == ("False", "PendingEvaluation")


class TestExecutionTimeOfAWorkloadThatIsBeingStopped:
    def stopping(self) -> Workload:
        runs = admitted(maximum_execution_time_seconds=100)
        return steps_to_rest(runs, 50, wanted_active=False)

    def test_an_inactive_workload_has_no_limit(self) -> None:
        assert deadline(self.stopping(), context(wanted_active=False), 50) is None
        assert next_step(self.stopping(), context(wanted_active=False), 100) is None

    def test_strict_the_mark_stays_and_undoes_the_next_activation(self) -> None:
        marked = steps_to_rest(self.stopping(), 100, wanted_active=False, configuration=STRICT)
        assert marked.is_true(ConditionType.DEACTIVATION_TARGET)
        assert step_of(marked, 101, configuration=STRICT).deactivates

    def test_a_mark_that_is_left_over_goes(self) -> None:
        marked = steps_to_rest(self.stopping(), 100, wanted_active=False, configuration=STRICT)
        assert not steps_to_rest(marked, 101, wanted_active=False).is_true(ConditionType.DEACTIVATION_TARGET)


class TestBackOff:
    def kept_out(self) -> Workload:
        evicted = conditions.evict(admitted(), EvictionReason.LOCAL_QUEUE_STOPPED, "The LocalQueue is stopped", 5)
        return replace(conditions.release(evicted, 6), requeue_state=RequeueState(1, 100.0))

    def test_what_happens_meanwhile_is_followed_at_once(self) -> None:
        back = steps_to_rest(self.kept_out(), 9)
        assert reason_of(back, ConditionType.REQUEUED) == ("True", "LocalQueueRestarted")

    def test_strict_nothing_is_looked_at_before_its_end(self) -> None:
        assert next_step(self.kept_out(), context(configuration=STRICT), 9) is None
        back = steps_to_rest(self.kept_out(), 100, configuration=STRICT)
        assert reason_of(back, ConditionType.REQUEUED) == ("True", "LocalQueueRestarted")


class TestDrainedClusterQueue:
    GONE = {"local_queue": None, "cluster_queue": None, "reserving_queue": DRAINED}
    HELD = {"local_queue": replace(LOCAL_QUEUE, stop_policy=StopPolicy.HOLD), "cluster_queue": DRAINED}

    def test_it_stops_workloads_whose_local_queue_is_gone_or_on_hold(self) -> None:
        for changes in (self.GONE, self.HELD):
            assert step_of(admitted(), 5, **changes).evicted == (EvictionReason.CLUSTER_QUEUE_STOPPED, "")

    def test_strict_they_go_on(self) -> None:
        for changes in (self.GONE, self.HELD):
            assert next_step(admitted(), context(configuration=STRICT, **changes), 5) is None


class TestAdmissionGate:
    def test_it_keeps_a_workload_out_of_its_queue_and_stops_nothing(self) -> None:
        assert next_step(admitted(admission_gates=("audit",)), context(), 5) is None

    def test_strict_it_takes_back_quota(self) -> None:
        taken = step_of(admitted(admission_gates=("audit",)), 5, configuration=STRICT).workload
        assert (taken.admission, reason_of(taken, ConditionType.QUOTA_RESERVED)) == (None, ("False", "AdmissionGated"))

    def test_beside_a_missing_queue_it_comes_to_rest(self) -> None:
        gated = waiting(admission_gates=("audit",))
        for configuration in (STRICT, context().configuration):
            rests = steps_to_rest(gated, 5, local_queue=None, configuration=configuration)
            assert reason_of(rests, ConditionType.QUOTA_RESERVED) == ("False", "Misconfigured")


def test_pods_ready_is_kept_without_wait_for_pods_ready_unless_strict() -> None:
    ran = pods_ready(admitted(), True, "Started", 20)
    evicted = conditions.evict(ran, EvictionReason.PREEMPTED, "", 40)
    released = step_of(evicted, 50, pods_stopped=True).workload
    assert reason_of(released, ConditionType.PODS_READY) == ("False", "WaitForStart")
    strict = step_of(evicted, 50, pods_stopped=True, configuration=STRICT).workload
    assert reason_of(strict, ConditionType.PODS_READY) == ("True", "Started")


def test_a_step_marks_events_that_kueue_does_not_have() -> None:
    backed_off = replace(waiting(), requeue_state=RequeueState(1, 5.0))
    assert [(event.reason, event.ours) for event in step_of(backed_off, 5).events] == [("Requeued", True)]
    timed_out = step_of(admitted(maximum_execution_time_seconds=5), 5)
    assert [(event.reason, event.ours) for event in timed_out.events] == [("MaximumExecutionTimeExceeded", False)]
