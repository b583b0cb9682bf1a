"""Workloads in every stage of their life, and the context that steps follow from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from scheduling.lifecycle import conditions
from scheduling.lifecycle.context import WorkloadContext
from scheduling.lifecycle.reconcile import Step, StepEvent, next_step
from scheduling.model.admission_check import AdmissionCheckState
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import FlavorQuotas, ResourceGroup
from scheduling.model.configuration import Configuration, RequeuingStrategy, WaitForPodsReady
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import ConditionStatus, ConditionType
from scheduling.model.workload import Admission, PodSetAssignment, Workload

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


STRICT = Configuration(strict_kueue_lifecycle=True)
STRICT_PODS_READY = replace(PODS_READY, strict_kueue_lifecycle=True)


def context(**changes: object) -> WorkloadContext:
    """By default in a LocalQueue and a ClusterQueue that admit; the quota that it holds is the ClusterQueue's."""
    reserving = {"reserving_queue": changes.get("cluster_queue", QUEUE)} | changes
    return replace(WorkloadContext(Configuration(), LOCAL_QUEUE, QUEUE), **reserving)  # type: ignore[arg-type]  # fields by name


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
    step = next_step(workload, context(**changes), now)
    assert step is not None
    return step


def told(step: Step) -> StepEvent:
    """The one event of a step."""
    (event,) = step.events
    return event


def message_of(workload: Workload, type_: ConditionType) -> str:
    return workload.conditions[type_].message


def steps_to_rest(workload: Workload, now: float, **changes: object) -> Workload:
    """Every step that is due, one after the other."""
    for _ in range(10):
        step = next_step(workload, context(**changes), now)
        if step is None:
            return workload
        workload = step.workload
    raise AssertionError("it does not come to rest")


def reason_of(workload: Workload, type_: ConditionType) -> tuple[str, str]:
    condition = workload.conditions[type_]
    return condition.status.value, condition.reason
