"""What the steps of a workload's life follow from, and the times at which they are due by the clock alone (10)."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import Configuration
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import ConditionType, PodsReadyReason
from scheduling.model.workload import Workload


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """What a step follows from, besides the workload itself.

    `wanted_active` is spec.active as its owner left it; `pods_stopped` says that none of its pods runs any more;
    `lacks_devices` says that it asks for devices and was admitted on quota alone, before any device was known;
    `drained` names the nodes and cards it holds that an operator is emptying, or is empty; `accumulated_seconds` is
    what it ran in earlier admissions. `cluster_queue` is where it holds quota, else where its LocalQueue leads;
    `queue_problem` says why that one is inactive, other than by its stop policy.
    """

    configuration: Configuration
    local_queue: LocalQueue | None
    cluster_queue: ClusterQueue | None
    wanted_active: bool = True
    pods_stopped: bool = False
    lacks_devices: bool = False
    drained: str = ""
    accumulated_seconds: int = 0
    queue_problem: str = ""


def deadline(workload: Workload, context: WorkloadContext) -> float | None:
    """When a step may be due by the clock alone; None for never."""
    times = [*requeue_times(workload), *pods_ready_times(workload, context)]
    if context.wanted_active:
        times += execution_times(workload, context)
    return min(times, default=None)


def requeue_times(workload: Workload) -> list[float]:
    """When its back-off is over, while it waits."""
    state = workload.requeue_state
    return [] if state is None or state.requeue_at is None or workload.admission is not None else [state.requeue_at]


def waits_for(workload: Workload) -> PodsReadyReason:
    """What its pods are waited for: the first start, or to recover."""
    condition = workload.condition(ConditionType.PODS_READY)
    recovering = condition is not None and condition.reason == PodsReadyReason.WAIT_FOR_RECOVERY
    return PodsReadyReason.WAIT_FOR_RECOVERY if recovering else PodsReadyReason.WAIT_FOR_START


def pods_ready_times(workload: Workload, context: WorkloadContext) -> list[float]:
    """When WaitForPodsReady gives up: a time-out after admission, or after pods that were ready failed."""
    ready = context.configuration.wait_for_pods_ready
    running = workload.is_true(ConditionType.ADMITTED) and not workload.is_true(ConditionType.EVICTED)
    if ready is None or not running or workload.is_true(ConditionType.PODS_READY):
        return []
    if waits_for(workload) is PodsReadyReason.WAIT_FOR_RECOVERY:
        since = workload.conditions[ConditionType.PODS_READY].last_transition_time
        return [since + ready.recovery_timeout_seconds] if ready.recovery_timeout_seconds else []
    return [workload.conditions[ConditionType.ADMITTED].last_transition_time + ready.timeout_seconds]


def execution_times(workload: Workload, context: WorkloadContext) -> list[float]:
    """When its execution time is up: what it ran in earlier admissions counts, and so do pods that are stopping."""
    limit = workload.maximum_execution_time_seconds
    if limit is None or not workload.is_true(ConditionType.ADMITTED):
        return []
    return [workload.conditions[ConditionType.ADMITTED].last_transition_time + limit - context.accumulated_seconds]
