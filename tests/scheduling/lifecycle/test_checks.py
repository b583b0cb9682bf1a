"""A workload's life outside the cycle: admission checks (9)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.lifecycle import conditions
from scheduling.lifecycle.context import deadline
from scheduling.lifecycle.reconcile import StepEvent, next_step
from scheduling.model.admission_check import AdmissionCheckRule, AdmissionCheckState
from scheduling.model.vocabulary import AdmissionCheckStatus, ConditionType, EvictionReason
from scheduling.model.workload import RequeueState, Workload
from tests.scheduling.lifecycle_helpers import (
    QUEUE,
    admitted,
    context,
    reason_of,
    reserved,
    step_of,
    steps_to_rest,
    told,
    waiting,
)


class TestAdmissionChecks:
    CHECKED = replace(
        QUEUE, admission_checks=(AdmissionCheckRule("billing"), AdmissionCheckRule("security", ("spot",)))
    )

    def test_those_of_all_flavors_are_listed_while_it_waits_and_the_others_with_the_flavor(self) -> None:  # T61
        step = step_of(waiting(), 5, cluster_queue=self.CHECKED)
        assert [check.name for check in step.workload.admission_checks] == ["billing"]
        on_spot = steps_to_rest(reserved("spot"), 6, cluster_queue=self.CHECKED)
        assert [check.name for check in on_spot.admission_checks] == ["billing", "security"]
        assert reason_of(on_spot, ConditionType.ADMITTED) == ("False", "UnsatisfiedAdmissionChecks")
        on_demand = steps_to_rest(reserved("on-demand"), 6, cluster_queue=self.CHECKED)
        assert [check.name for check in on_demand.admission_checks] == ["billing"]

    @pytest.mark.parametrize("checks", [[], [AdmissionCheckState("billing")]])
    def test_a_check_that_comes_later_stops_nothing(self, checks: list[AdmissionCheckState]) -> None:
        runs = admitted(admission_checks=tuple(checks))
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        step = next_step(runs, context(cluster_queue=queue), 5)
        assert (step is None) is bool(checks)
        after = runs if step is None else step.workload
        assert reason_of(after, ConditionType.ADMITTED) == ("True", "Admitted")
        assert [check.state for check in after.admission_checks] == [AdmissionCheckStatus.PENDING]

    def test_all_ready_admits(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        ready = AdmissionCheckState("billing", AdmissionCheckStatus.READY)
        step = step_of(reserved(checks=[ready], at=2), 5, cluster_queue=queue)
        assert told(step) == StepEvent("Admitted", "Admitted by ClusterQueue main, wait time since reservation was 3s")
        assert reason_of(step.workload, ConditionType.ADMITTED) == ("True", "Admitted")

    def check(self, state: AdmissionCheckStatus, **fields: object) -> Workload:
        check = AdmissionCheckState("billing", state, "no money", **fields)  # type: ignore[arg-type]  # fields by name
        return conditions.sync_admitted(reserved(checks=[check]), 0)

    def test_retry_evicts_resets_and_comes_back_after_the_delay(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        asked = self.check(AdmissionCheckStatus.RETRY, last_transition_time=5.0, requeue_after_seconds=60.0)
        delayed = step_of(asked, 6, cluster_queue=queue).workload
        assert delayed.requeue_state == RequeueState(0, 65.0)
        evicted = step_of(delayed, 6, cluster_queue=queue).workload
        assert reason_of(evicted, ConditionType.EVICTED) == ("True", "AdmissionCheck")
        assert evicted.admission_checks[0].state is AdmissionCheckStatus.PENDING
        assert evicted.admission_checks[0].retry_count == 1
        released = step_of(evicted, 7, cluster_queue=queue, pods_stopped=True).workload
        assert next_step(released, context(cluster_queue=queue), 64) is None
        assert deadline(released, context(cluster_queue=queue), 64) == 65.0
        back = steps_to_rest(released, 65, cluster_queue=queue)
        assert reason_of(back, ConditionType.REQUEUED) == ("True", "BackoffFinished")
        assert back.requeue_state is None

    def test_a_retry_without_a_delay_evicts_and_sets_no_time(self) -> None:
        queue = replace(QUEUE, admission_checks=(AdmissionCheckRule("billing"),))
        step = step_of(self.check(AdmissionCheckStatus.RETRY, last_transition_time=5.0), 6, cluster_queue=queue)
        assert step.workload.requeue_state is None
        said = 'Evicted due to AdmissionCheck in Retry state: "billing" (no money)'
        assert told(step) == StepEvent("EvictedDueToAdmissionCheck", said)

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

    def test_an_eviction_resets_every_check_and_keeps_what_kueue_keeps(self) -> None:
        checks = (
            AdmissionCheckState("a", AdmissionCheckStatus.READY, "fine", 1.0, None, 2),
            AdmissionCheckState("b", AdmissionCheckStatus.RETRY, "later", 1.0, 60.0, 2),
            AdmissionCheckState("c", AdmissionCheckStatus.PENDING, "not yet", 1.0, 30.0, 2),
        )
        evicted = conditions.evict(admitted(admission_checks=checks), EvictionReason.PREEMPTED, "", 9.0)
        ready, retried, pending = evicted.admission_checks
        assert {check.state for check in evicted.admission_checks} == {AdmissionCheckStatus.PENDING}
        assert (ready.retry_count, retried.retry_count, pending) == (0, 3, checks[2])
        assert (retried.requeue_after_seconds, retried.last_transition_time) == (60.0, 9.0)
        assert ready.message == "Reset to Pending after eviction. Previously: Ready"
        assert retried.message == "Reset to Pending after eviction. Previously: Retry"

    def test_the_list_follows_the_queue_sorted_and_known_states_stay(self) -> None:
        known = AdmissionCheckState("billing", AdmissionCheckStatus.READY, "paid", 3.0)
        workload = reserved(checks=[known, AdmissionCheckState("old")])
        rules = (AdmissionCheckRule("security"), AdmissionCheckRule("billing"))
        step = step_of(workload, 5, cluster_queue=replace(QUEUE, admission_checks=rules))
        assert [check.name for check in step.workload.admission_checks] == ["billing", "security"]
        assert step.workload.admission_checks[0] == known
        assert step.workload.admission_checks[1].state is AdmissionCheckStatus.PENDING
        none = steps_to_rest(step.workload, 6)
        assert none.admission_checks == ()
        assert reason_of(none, ConditionType.ADMITTED) == ("True", "Admitted")

    @pytest.mark.parametrize(("known", "expected"), [(None, 95.0), (50.0, 95.0), (95.0, None), (500.0, None)])
    def test_the_latest_of_several_retries_counts_and_never_hastens(
        self, known: float | None, expected: float | None
    ) -> None:
        checks = (
            AdmissionCheckState("a", AdmissionCheckStatus.RETRY, "", 5.0, 60.0),
            AdmissionCheckState("b", AdmissionCheckStatus.RETRY, "", 90.0, 5.0),
        )
        rules = tuple(AdmissionCheckRule(name) for name in "ab")
        workload = replace(conditions.sync_admitted(reserved(checks=checks), 0), requeue_state=RequeueState(4, known))
        step = step_of(workload, 91, cluster_queue=replace(QUEUE, admission_checks=rules))
        assert step.workload.requeue_state == RequeueState(4, known if expected is None else expected)
        assert (told(step).reason == "RequeueDelayed") is (expected is not None)
