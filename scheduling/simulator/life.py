"""Plays the life of one workload step by step: actions of its owner, its cluster and the scheduler, and their
effects.

The rules are those of `scheduling.lifecycle`; queue and quota are those of a `World`. The job side acts as Kueue's
job reconciler does for a job that it manages. Time is in seconds since `EPOCH`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from scheduling.lifecycle import conditions as to
from scheduling.lifecycle.context import WorkloadContext, deadline
from scheduling.lifecycle.inadmissible import NAMESPACE_MISMATCH
from scheduling.lifecycle.reconcile import Step, StepEvent, next_step
from scheduling.lifecycle.retention import (
    DEACTIVATED_MESSAGE,
    DELETED,
    FINISHED_MESSAGE,
    Retention,
    job_expires_at,
    workload_expires_at,
)
from scheduling.model.admission_check import AdmissionCheckRule, AdmissionCheckState, PodSetUpdate, required_checks
from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import Configuration
from scheduling.model.local_queue import LocalQueue
from scheduling.model.resources import pod_requests
from scheduling.model.vocabulary import (
    AdmissionCheckStatus,
    ConditionType,
    EvictionReason,
    FinishedReason,
    PreemptionReason,
    StopPolicy,
)
from scheduling.model.workload import Admission, PodSetAssignment, Workload
from scheduling.simulator.scenario import (
    read_admission_check,
    read_cluster_queue,
    read_local_queue,
    read_resource_flavor,
)
from scheduling.simulator.simulator import EPOCH
from scheduling.simulator.workload_manifest import read_workload
from scheduling.state.workload_info import QueueState
from scheduling.world import World

JOB_UID_LABEL: Final = "kueue.x-k8s.io/job-uid"
GATES_ANNOTATION: Final = "kueue.x-k8s.io/admission-gated-by"
MAX_STEPS: Final = 64
"""A workload with more steps than this in one instant counts as never idle."""

Manifest = Mapping[str, Any]


@dataclass(slots=True)
class Life:
    """A workload, the objects that it references, and the events of the present step."""

    world: World
    workload: Workload
    retention: Retention
    has_owner: bool
    was_of_a_job: bool
    active: bool = True
    accumulated_seconds: int = 0
    evictions: Counter[tuple[str, str]] = field(default_factory=Counter)
    now: float = EPOCH
    cluster_queues: dict[str, ClusterQueue] = field(default_factory=dict)
    local_queues: dict[str, LocalQueue] = field(default_factory=dict)
    pods_ready: bool = False
    pods_running: bool = False
    in_heap: bool = False
    """Whether it is in the heap of its ClusterQueue."""
    deleted: bool = False
    deleting: bool = False
    job_deleted: bool = False
    events: list[StepEvent] = field(default_factory=list)
    job_events: list[StepEvent] = field(default_factory=list)

    # -- steps
    # --------------------------------------------------------------------------------------------------------

    def play(self, step: Manifest) -> None:
        """Play one step and all its effects at that instant."""
        self.events, self.job_events = [], []
        _STEPS[step["op"]](self, step)
        self.come_to_rest()

    def come_to_rest(self) -> None:
        """Reconcile, remove empty ClusterQueues and let the job act, until nothing changes."""
        for _ in range(MAX_STEPS):
            if self.deleted:
                return
            reconciled = self._reconcile()
            if not (self._drop_empty_queues() or self._job_acts() or reconciled):
                return
        raise RuntimeError(f"workload {self.workload.key} never settles")

    def _reconcile(self) -> bool:
        for count in range(MAX_STEPS):
            if self.deleted or not self._reconcile_once():
                return count > 0
        raise RuntimeError(f"workload {self.workload.key} changes state again and again")

    def _reconcile_once(self) -> bool:
        """Delete an orphan or a workload whose retention has ended; otherwise apply the next step of its lifecycle."""
        if not self.has_owner and (self.deleting or self.was_of_a_job):
            if not self.deleting:
                reason, message = FinishedReason.OWNER_NOT_FOUND, "The workload's owner no longer exists"
                if self.put(to.finish(self.workload, reason, message, self.now)):
                    return True
            else:
                self._delete()
                return True
        expires_at = workload_expires_at(self.workload, self.retention)
        if expires_at is not None and expires_at <= self.now:
            if not self.deleting:
                self.events.append(StepEvent(DELETED, FINISHED_MESSAGE))
            self._delete()
            return True
        return self._take(next_step(self.workload, self.context(), self.now))

    def _take(self, step: Step | None) -> bool:
        if step is None:
            return False
        strict = self.world.configuration.strict_kueue_lifecycle
        self.events += [event for event in step.events if not (event.ours and strict)]
        if step.evicted is not None:
            self.evictions[step.evicted[0].value, step.evicted[1]] += 1
        if step.accumulated_seconds is not None:
            self.accumulated_seconds = step.accumulated_seconds
        if step.deactivates:
            self.active = False
        self.put(step.workload)
        return True

    def _delete(self) -> None:
        self.deleted, self.in_heap = True, False
        self.world.delete_workload(self.workload.key)

    def put(self, workload: Workload) -> bool:
        """Replace the workload by a new version, with its queue state and quota. False if nothing changed."""
        workload = replace(workload, active=self.active)
        if workload == self.workload:
            return False
        moved = workload.queue_name != self.workload.queue_name
        self.workload = workload
        self.world.set_workload(workload, self.now)
        self.in_heap = (self.in_heap and not moved and self.may_stay_in_heap()) or self._is_active_in_world()
        return True

    def _drop_empty_queues(self) -> bool:
        """Remove a ClusterQueue that is being deleted and holds no workload."""
        empty = [
            name
            for name, queue in self.cluster_queues.items()
            if queue.terminating and not self.world.cluster_queue_status(name).reserving
        ]
        for name in empty:
            del self.cluster_queues[name]
            self.world.delete_cluster_queue(name)
            self.in_heap = self.in_heap and self.may_stay_in_heap()
        return bool(empty)

    def _job_acts(self) -> bool:
        """Return the first action of the job side that is due, if any."""
        workload = self.workload
        if self.deleted or self.deleting or not self.has_owner or self.job_deleted:
            return False
        if workload.is_true(ConditionType.FINISHED):
            return False
        if self.world.configuration.wait_for_pods_ready is not None and self.put(
            to.sync_pods_ready(workload, self.pods_ready, self.now)
        ):
            return True
        released = next_step(workload, replace(self.context(), pods_stopped=not self.pods_running), self.now)
        if released is not None:
            return self._take(released)
        expires_at = job_expires_at(workload, self.retention, active=self.active)
        if expires_at is None or expires_at > self.now:
            return False
        self.job_deleted = True
        self.job_events.append(StepEvent(DELETED, DEACTIVATED_MESSAGE))
        return True

    # -- reading
    # ------------------------------------------------------------------------------------------------------

    def context(self) -> WorkloadContext:
        """Return the inputs of its next lifecycle step; its pods count as running."""
        workload, local_queue = self.workload, self.local_queues.get(self.workload.queue_key)
        name = local_queue.cluster_queue if local_queue is not None else ""
        selected = name not in self.cluster_queues or self.world.selects_namespace(name, workload.namespace)
        return WorkloadContext(
            configuration=self.world.configuration,
            local_queue=local_queue,
            cluster_queue=self.cluster_queues.get(name),
            reserving_queue=self.cluster_queues.get(workload.admission.cluster_queue) if workload.admission else None,
            wanted_active=self.active,
            accumulated_seconds=self.accumulated_seconds,
            inactive_reason=self.world.queue_problems().get(name, ""),
            admissibility_error="" if selected else NAMESPACE_MISMATCH,
        )

    def next_look(self) -> float | None:
        """Return when the workload must be reconciled again even if nothing changes."""
        if self.deleted:
            return None
        expires_at = workload_expires_at(self.workload, self.retention)
        return expires_at if expires_at is not None else deadline(self.workload, self.context(), self.now)

    def job_next_look(self) -> float | None:
        """Return when its job must be reconciled again even if nothing changes."""
        if self.deleted or self.deleting or self.job_deleted or not self.has_owner:
            return None
        if self.workload.is_true(ConditionType.FINISHED) or self.workload.admission is not None:
            return None
        return job_expires_at(self.workload, self.retention, active=self.active)

    def local_queue_added(self) -> None:
        """Kueue's queue manager puts the workloads of a new LocalQueue into the heap, whatever their back-off, and
        leaves gated ones in the heap, so its scheduler may give them quota. The World does not."""
        self.in_heap = (self.may_stay_in_heap() and not self.workload.admission_gates) or self._is_active_in_world()

    def may_stay_in_heap(self) -> bool:
        workload, queue = self.workload, self.local_queues.get(self.workload.queue_key)
        if queue is None or queue.stop_policy is not StopPolicy.NONE or queue.cluster_queue not in self.cluster_queues:
            return False
        ended = workload.is_true(ConditionType.FINISHED) or workload.is_true(ConditionType.QUOTA_RESERVED)
        return self.active and not ended and not self.deleted

    def _is_active_in_world(self) -> bool:
        known = self.world.workload(self.workload.key) is not None
        return known and self.world.queue_state(self.workload.key) is QueueState.ACTIVE


def build_life(scenario: Manifest, configuration: Configuration, retention: Retention) -> Life:
    """Build the life of the scenario's workload, before its first step."""
    world = World(configuration)
    for namespace in scenario["namespaces"]:
        world.set_namespace(namespace["metadata"]["name"], namespace["metadata"].get("labels") or {})
    for flavor in scenario["resourceFlavors"]:
        world.set_resource_flavor(read_resource_flavor(flavor))
    for check in scenario["admissionChecks"]:
        world.set_admission_check(read_admission_check(check))
    manifest = scenario["workload"]
    metadata, status = manifest["metadata"], manifest.get("status") or {}
    workload = replace(read_workload(manifest), admission_gates=_gates(metadata.get("annotations") or {}))
    life = Life(
        world,
        workload,
        retention,
        has_owner=bool(metadata.get("ownerReferences")),
        was_of_a_job=bool((metadata.get("labels") or {}).get(JOB_UID_LABEL)),
        active=workload.active,
        accumulated_seconds=status.get("accumulatedPastExecutionTimeSeconds") or 0,
    )
    for entry in (status.get("schedulingStats") or {}).get("evictions") or ():
        life.evictions[entry["reason"], entry.get("underlyingCause") or ""] = entry["count"]
    for queue in scenario["clusterQueues"]:
        _set_cluster_queue(life, read_cluster_queue(queue))
    for queue in scenario["localQueues"]:
        _set_local_queue(life, read_local_queue(queue))
    life.pods_ready = workload.is_true(ConditionType.PODS_READY)
    world.set_workload(workload, life.now)
    life.local_queue_added()
    life.come_to_rest()
    return life


def _gates(annotations: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(filter(None, annotations.get(GATES_ANNOTATION, "").split(",")))


def _set_cluster_queue(life: Life, queue: ClusterQueue) -> None:
    life.cluster_queues[queue.name] = queue
    life.world.set_cluster_queue(queue)


def _set_local_queue(life: Life, queue: LocalQueue) -> None:
    before = life.local_queues.get(queue.key)
    life.local_queues[queue.key] = queue
    life.world.set_local_queue(queue)
    if queue.key != life.workload.queue_key:
        return
    if before is None or before.stop_policy is not StopPolicy.NONE:
        life.local_queue_added()
    else:
        life.in_heap = life.in_heap and life.may_stay_in_heap()


# -- steps -------------------------------------------------------------------------------------------------------------


def _advance(life: Life, step: Manifest) -> None:
    life.now += step["seconds"]
    life.world.advance(life.now)


def _reserve(life: Life, step: Manifest) -> None:
    """The scheduler gives it quota in its ClusterQueue if it is queued there."""
    local_queue = life.local_queues.get(life.workload.queue_key)
    if not life.in_heap or local_queue is None:
        return
    workload, flavors = life.workload, step["flavors"]
    assignments = []
    for pod_set in workload.pod_sets:
        count = pod_set.count - workload.reclaimable_pods.get(pod_set.name, 0)
        usage = {name: amount * count for name, amount in pod_requests(pod_set.template).items()}
        assignments.append(PodSetAssignment(pod_set.name, count, dict(flavors.get(pod_set.name) or {}), usage))
    admission = Admission(local_queue.cluster_queue, tuple(assignments))
    assigned = {flavor for chosen in flavors.values() for flavor in chosen.values()}
    required = required_checks(life.cluster_queues[local_queue.cluster_queue].admission_checks, assigned)
    life.pods_ready = False
    life.put(to.reserve(workload, admission, None, required, life.now))


def _preempt(life: Life, step: Manifest) -> None:
    if life.workload.admission is None or life.workload.is_true(ConditionType.EVICTED):
        return
    life.put(to.preempt(life.workload, PreemptionReason(step["reason"]), step["message"], life.now))
    life.evictions[EvictionReason.PREEMPTED.value, ""] += 1
    life.events.append(StepEvent(to.eviction_event(EvictionReason.PREEMPTED), step["message"]))


def _verdict(life: Life, step: Manifest) -> None:
    """The scheduler evaluated a pending workload and did not admit it."""
    if life.workload.admission is None:
        life.put(to.pending(life.workload, step["reason"], step["message"], life.now))


def _pods(life: Life, step: Manifest) -> None:
    life.pods_ready = step.get("ready", life.pods_ready)
    life.pods_running = step.get("running", life.pods_running)


def _check(life: Life, step: Manifest) -> None:
    """The controller of a check answers. The time of the answer changes only with the state."""
    state = AdmissionCheckStatus(step["state"])

    def answered(check: AdmissionCheckState) -> AdmissionCheckState:
        return AdmissionCheckState(
            check.name,
            state,
            step.get("message") or "",
            check.last_transition_time if check.state is state else life.now,
            step.get("requeueAfterSeconds"),
            check.retry_count,
            tuple(PodSetUpdate.from_manifest(update) for update in step.get("podSetUpdates") or ()),
        )

    checks = life.workload.admission_checks
    found = tuple(answered(check) if check.name == step["name"] else check for check in checks)
    life.put(replace(life.workload, admission_checks=found))


def _active(life: Life, step: Manifest) -> None:
    life.active = step["value"]
    life.put(life.workload)


def _queue_name(life: Life, step: Manifest) -> None:
    """The API server refuses a queue change for a workload that holds quota."""
    if life.workload.admission is None:
        life.put(replace(life.workload, queue_name=step["queue"]))


def _maximum_execution_time(life: Life, step: Manifest) -> None:
    life.put(replace(life.workload, maximum_execution_time_seconds=step["limit"]))


def _gate(life: Life, step: Manifest) -> None:
    life.put(replace(life.workload, admission_gates=_gates({GATES_ANNOTATION: step.get("gate") or ""})))


def _reclaimable(life: Life, step: Manifest) -> None:
    life.put(replace(life.workload, reclaimable_pods=dict(step["counts"])))


def _finish(life: Life, step: Manifest) -> None:
    life.put(to.finish(life.workload, step["reason"], step["message"], life.now))


def _orphan(life: Life, step: Manifest) -> None:
    life.has_owner = False


def _delete(life: Life, step: Manifest) -> None:
    life.deleting = True


def _stop_local_queue(life: Life, step: Manifest) -> None:
    key = f"{life.workload.namespace}/{step['name']}"
    if key in life.local_queues:
        _set_local_queue(life, replace(life.local_queues[key], stop_policy=StopPolicy(step["stopPolicy"])))


def _stop_cluster_queue(life: Life, step: Manifest) -> None:
    queue = life.cluster_queues.get(step["name"])
    if queue is not None:
        _set_cluster_queue(life, replace(queue, stop_policy=StopPolicy(step["stopPolicy"])))


def _cluster_queue_checks(life: Life, step: Manifest) -> None:
    queue = life.cluster_queues.get(step["name"])
    if queue is not None:
        rules = tuple(AdmissionCheckRule(rule["name"], tuple(rule.get("onFlavors") or ())) for rule in step["rules"])
        _set_cluster_queue(life, replace(queue, admission_checks=rules))


def _delete_local_queue(life: Life, step: Manifest) -> None:
    key = f"{life.workload.namespace}/{step['name']}"
    if life.local_queues.pop(key, None) is not None:
        life.world.delete_local_queue(key)
        life.in_heap = life.in_heap and life.may_stay_in_heap()


def _create_local_queue(life: Life, step: Manifest) -> None:
    _set_local_queue(life, read_local_queue(step["object"]))


def _delete_cluster_queue(life: Life, step: Manifest) -> None:
    queue = life.cluster_queues.get(step["name"])
    if queue is not None:
        _set_cluster_queue(life, replace(queue, terminating=True))


def _delete_admission_check(life: Life, step: Manifest) -> None:
    life.world.delete_admission_check(step["name"])


def _set_admission_check(life: Life, step: Manifest) -> None:
    life.world.set_check_active(step["name"], active=step["value"])


_STEPS: Final[Mapping[str, Callable[[Life, Manifest], None]]] = {
    "advance": _advance,
    "reserve": _reserve,
    "preempt": _preempt,
    "verdict": _verdict,
    "pods": _pods,
    "check": _check,
    "active": _active,
    "queueName": _queue_name,
    "maximumExecutionTime": _maximum_execution_time,
    "gate": _gate,
    "reclaimable": _reclaimable,
    "finish": _finish,
    "orphan": _orphan,
    "delete": _delete,
    "localQueue": _stop_local_queue,
    "clusterQueue": _stop_cluster_queue,
    "clusterQueueChecks": _cluster_queue_checks,
    "deleteLocalQueue": _delete_local_queue,
    "createLocalQueue": _create_local_queue,
    "deleteClusterQueue": _delete_cluster_queue,
    "deleteAdmissionCheck": _delete_admission_check,
    "admissionCheck": _set_admission_check,
}
