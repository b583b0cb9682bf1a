"""The inputs of a workload's lifecycle steps, and the times at which steps become due."""

from __future__ import annotations

from dataclasses import dataclass

from scheduling.devices.claims.charges import ClaimRefusal
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import Configuration
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import ConditionType, EvictionReason, PodsReadyReason, StopPolicy
from scheduling.model.workload import Workload
from scheduling.reservations.reserved_nodes import ReservedWindow


@dataclass(frozen=True, slots=True)
class EvictionRequest:
    """The wish of `actor`, a user or a program of the cluster, that a workload stops and waits again."""

    actor: str
    reason: EvictionReason = EvictionReason.REQUEUE_REQUESTED
    message: str = ""
    """The message of the Evicted condition; empty: one that names the actor."""


@dataclass(frozen=True, slots=True)
class WorkloadContext:
    """The inputs of a lifecycle step besides the workload itself.

    `cluster_queue` is the ClusterQueue that the LocalQueue names, and `inactive_reason` why it is inactive apart from
    its stop policy. `reserving_queue` is the ClusterQueue whose quota the workload holds. Each is None if the object
    does not exist. `admissibility_error` is the reason why ClusterQueue and workload do not match, `claim_refusal` the
    reason why its claims make it inadmissible.

    `wanted_active` is spec.active as its owner set it. `pods_stopped`: all of its pods have stopped. `lacks_devices`:
    it requests devices and was admitted on quota alone, before any device was known. `drained` names the nodes and
    devices it holds that an operator drains. `on_hold` is the reason why its job needs no pods for now, empty if it
    needs them; None where another controller writes that into the conditions. `accumulated_seconds` is its running time
    in earlier admissions. `evicting_window` is the window of a reservation at whose start it is evicted;
    `closing_window` is one that closes its nodes to it, if it is not admitted yet.
    """

    configuration: Configuration
    local_queue: LocalQueue | None
    cluster_queue: ClusterQueue | None
    reserving_queue: ClusterQueue | None = None
    wanted_active: bool = True
    pods_stopped: bool = False
    lacks_devices: bool = False
    drained: str = ""
    eviction_request: EvictionRequest | None = None
    on_hold: str | None = None
    accumulated_seconds: int = 0
    inactive_reason: str = ""
    admissibility_error: str = ""
    claim_refusal: ClaimRefusal | None = None
    evicting_window: ReservedWindow | None = None
    closing_window: ReservedWindow | None = None

    @property
    def strict(self) -> bool:
        """Whether to follow Kueue even if our rule is better for users."""
        return self.configuration.strict_kueue_lifecycle

    @property
    def reached_queue(self) -> ClusterQueue | None:
        """The ClusterQueue that the workload reaches; None if its LocalQueue does not exist or is stopped."""
        queue = self.local_queue
        return self.cluster_queue if queue is not None and queue.stop_policy is StopPolicy.NONE else None


def deadline(workload: Workload, context: WorkloadContext, now: float) -> float | None:
    """Return the next time at which a step may become due, once all steps due now are taken; None for never."""
    if workload.is_true(ConditionType.FINISHED):
        return None
    backoff_end = _backoff_end(workload, context)
    if context.strict and waits_for_backoff(workload, context, now):
        return backoff_end
    times = [*pods_ready_times(workload, context), *execution_times(workload, context)]
    if context.evicting_window is not None:
        times.append(context.evicting_window.starts_at)
    if backoff_end is not None and workload.admission is None:
        times.append(backoff_end)
    return min((at for at in times if at > now), default=None)


def waits_for_backoff(workload: Workload, context: WorkloadContext, now: float) -> bool:
    """Return whether it may be requeued only at a later time."""
    backoff_end = _backoff_end(workload, context)
    return backoff_end is not None and backoff_end > now


def _backoff_end(workload: Workload, context: WorkloadContext) -> float | None:
    state = workload.requeue_state
    return state.requeue_at if state is not None and context.wanted_active else None


def waits_for(workload: Workload) -> PodsReadyReason:
    """Return the reason of the wait: the first start of the workload's pods, or their recovery."""
    condition = workload.condition(ConditionType.PODS_READY)
    recovering = condition is not None and condition.reason == PodsReadyReason.WAIT_FOR_RECOVERY
    return PodsReadyReason.WAIT_FOR_RECOVERY if recovering else PodsReadyReason.WAIT_FOR_START


def pods_ready_times(workload: Workload, context: WorkloadContext) -> list[float]:
    """Return when WaitForPodsReady gives up: one timeout after admission, or after ready pods failed."""
    ready = context.configuration.wait_for_pods_ready
    running = workload.is_true(ConditionType.ADMITTED) and not workload.is_true(ConditionType.EVICTED)
    if ready is None or not running or not context.wanted_active or workload.is_true(ConditionType.PODS_READY):
        return []
    if workload.parent:
        return []  # its parent's pods
    if waits_for(workload) is PodsReadyReason.WAIT_FOR_RECOVERY:
        since = workload.conditions[ConditionType.PODS_READY].last_transition_time
        return [since + ready.recovery_timeout_seconds] if ready.recovery_timeout_seconds else []
    return [workload.conditions[ConditionType.ADMITTED].last_transition_time + ready.timeout_seconds]


def execution_times(workload: Workload, context: WorkloadContext) -> list[float]:
    """Return when the maximum execution time is over.

    Earlier admissions count, and so do pods that are stopping. One deactivation is enough, because an inactive workload
    has no limit any more; Kueue's controller checks again while the pods stop, and marks the workload a second time.
    """
    limit = None if workload.parent else workload.maximum_execution_time_seconds
    if limit is None or not workload.is_true(ConditionType.ADMITTED) or not (context.wanted_active or context.strict):
        return []
    return [workload.conditions[ConditionType.ADMITTED].last_transition_time + limit - context.accumulated_seconds]
