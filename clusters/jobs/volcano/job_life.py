"""The life of a Volcano Job: the effect of one request on a job and its pods (pure).

The rules are those of Volcano's job controller: policies turn an event into an action, whose effect depends on the
job's phase. The caller holds the pods and carries out a `Step`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from clusters.jobs.volcano.job_spec import (
    INTERNAL_EVENTS,
    RESTARTS_OF_PARTS,
    UNLIMITED_RETRIES,
    JobAction,
    JobEvent,
    Policy,
    TaskSpec,
    VolcanoJobSpec,
)


class JobPhase(StrEnum):
    """The phase of a job, as its status names it."""

    PENDING = "Pending"
    ABORTING = "Aborting"
    ABORTED = "Aborted"
    RUNNING = "Running"
    RESTARTING = "Restarting"
    COMPLETING = "Completing"
    COMPLETED = "Completed"
    TERMINATING = "Terminating"
    TERMINATED = "Terminated"
    FAILED = "Failed"


FINISHED: Final = frozenset({JobPhase.COMPLETED, JobPhase.FAILED, JobPhase.TERMINATED})
"""Phases that a job never leaves."""


class PodPhase(StrEnum):
    """The phase of a pod, as Kubernetes names it."""

    PENDING = "Pending"
    RUNNING = "Running"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"


_ENDED: Final = frozenset({PodPhase.SUCCEEDED, PodPhase.FAILED})
_LIVE: Final = frozenset({PodPhase.PENDING, PodPhase.RUNNING})


@dataclass(frozen=True, slots=True)
class JobPod:
    """A pod of a job.

    * ready: whether all its containers are; restarts: of its containers, summed up.
    * version: that of the job when the pod was made. deleting: it is on its way out.
    """

    name: str
    task: str
    index: int
    phase: PodPhase = PodPhase.PENDING
    ready: bool = False
    restarts: int = 0
    version: int = 0
    exit_code: int = 0
    deleting: bool = False


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The state of a job between two requests: `counts` are its pods by phase, `terminating` those on their way out.

    `by_task` counts by task and phase. `version` rises with each kill of the whole job.
    """

    phase: JobPhase = JobPhase.PENDING
    retry_count: int = 0
    version: int = 0
    counts: Mapping[PodPhase, int] = field(default_factory=dict)
    by_task: Mapping[str, Mapping[PodPhase, int]] = field(default_factory=dict)
    terminating: int = 0

    def count(self, *phases: PodPhase) -> int:
        return sum(self.counts.get(phase, 0) for phase in phases)


@dataclass(frozen=True, slots=True)
class Request:
    """An event to handle, or an action that a user commands. `version` is that of the pod it is about; None: no pod."""

    event: JobEvent
    action: JobAction | None = None
    task: str = ""
    pod: str = ""
    exit_code: int = 0
    version: int | None = None


SYNC: Final = Request(JobEvent.OUT_OF_SYNC)


@dataclass(frozen=True, slots=True)
class Step:
    """The result of a request: the new status, the pods to create and to delete, and the fate of the pod group.

    `delay_seconds` above 0: nothing is done now; the action is due after that time, unless it is cancelled.
    """

    status: JobStatus
    action: JobAction
    create: tuple[JobPod, ...] = ()
    delete: tuple[str, ...] = ()
    deletes_pod_group: bool = False
    makes_pod_group: bool = False
    delay_seconds: float = 0.0


# From what happens to a request


def pod_request(job: VolcanoJobSpec, before: JobPod, pod: JobPod, pods: Iterable[JobPod]) -> Request:
    """Return the request that a changed pod raises; `pods` are all of the job, the changed one included."""
    event, task = JobEvent.OUT_OF_SYNC, job.task(pod.task)
    siblings = [each for each in pods if each.task == pod.task]
    turned = pod.phase != before.phase
    if pod.phase is PodPhase.FAILED and turned:
        event = JobEvent.POD_FAILED
    elif pod.phase is PodPhase.SUCCEEDED and turned and _is_completed(task, siblings):
        event = JobEvent.TASK_COMPLETED
    elif pod.phase in _LIVE and _is_failed(task, siblings):
        event = JobEvent.TASK_FAILED
    elif pod.phase is PodPhase.RUNNING and turned:
        event = JobEvent.POD_RUNNING
    elif pod.phase is PodPhase.PENDING and turned:
        event = JobEvent.POD_PENDING
    return Request(event, None, pod.task, pod.name, pod.exit_code, pod.version)


def new_pod_request(pod: JobPod) -> Request:
    """Return the request that a new pod raises."""
    return Request(JobEvent.POD_PENDING, None, pod.task, pod.name, 0, pod.version)


def lost_pod_request(pod: JobPod, *, by_controller: bool) -> Request:
    """Return the request that a deleted pod raises: an eviction, unless the controller itself deleted it."""
    event = JobEvent.OUT_OF_SYNC if by_controller else JobEvent.POD_EVICTED
    return Request(event, None, pod.task, pod.name, 0, pod.version)


def command_request(action: JobAction) -> Request:
    """Return the request of a user's command."""
    return Request(JobEvent.COMMAND_ISSUED, action)


def _is_completed(task: TaskSpec | None, siblings: list[JobPod]) -> bool:
    done = sum(each.phase is PodPhase.SUCCEEDED for each in siblings)
    return task is not None and done >= task.replicas


def _is_failed(task: TaskSpec | None, siblings: list[JobPod]) -> bool:
    if task is None or task.max_retry == UNLIMITED_RETRIES:
        return False
    return sum(each.restarts for each in siblings if each.phase in _LIVE) >= task.max_retry


# From a request to an action


def chosen_policy(job: VolcanoJobSpec, status: JobStatus, request: Request) -> Policy:
    """Return the action for a request and its delay: the task's policies first, then the job's, each in their order."""
    if request.action is not None:
        return Policy(request.action)
    outdated = (request.version or 0) < status.version
    if request.event in INTERNAL_EVENTS or outdated:
        return Policy(JobAction.SYNC_JOB)
    task = job.task(request.task)
    policies = [*(task.policies if task else ()), *job.policies]
    return next((policy for policy in policies if _matches(policy, request)), Policy(JobAction.SYNC_JOB))


def _matches(policy: Policy, request: Request) -> bool:
    if request.event in policy.events or JobEvent.ANY in policy.events:
        return request.event is not JobEvent.POD_PENDING or policy.timeout_seconds > 0
    return policy.exit_code is not None and (
        request.event is JobEvent.POD_FAILED and request.exit_code == policy.exit_code
    )


# From an action to a step


def handle(
    job: VolcanoJobSpec, status: JobStatus, pods: Mapping[str, JobPod], request: Request, *, may_create: bool
) -> Step:
    """Return the step for a request. `pods` by name; `may_create`: the pod group is past Pending, so pods are made."""
    policy = chosen_policy(job, status, request)
    if policy.timeout_seconds > 0:
        return Step(status, policy.action, delay_seconds=policy.timeout_seconds)
    return execute(job, status, pods, policy.action, request, may_create=may_create)


def execute(
    job: VolcanoJobSpec,
    status: JobStatus,
    pods: Mapping[str, JobPod],
    action: JobAction,
    request: Request,
    *,
    may_create: bool,
) -> Step:
    """Carry out an action, given the phase of the job."""
    return _Execution(job, status, pods, action, request, may_create=may_create).step()


Update = Callable[[JobStatus], JobStatus]


def _unchanged(status: JobStatus) -> JobStatus:
    return status


@dataclass(slots=True)
class _Execution:
    """One action on one job."""

    job: VolcanoJobSpec
    status: JobStatus
    pods: Mapping[str, JobPod]
    action: JobAction
    request: Request
    may_create: bool

    def step(self) -> Step:
        match self.status.phase:
            case JobPhase.PENDING | JobPhase.RUNNING:
                return self._while_active()
            case JobPhase.RESTARTING:
                return self._while_restarting()
            case JobPhase.ABORTING | JobPhase.ABORTED if self.action is JobAction.RESUME_JOB:
                return self._kill(_restarting, soft=True)
            case JobPhase.ABORTING:
                return self._kill(_ending_in(JobPhase.ABORTED), soft=True)
            case JobPhase.TERMINATING:
                return self._kill(_ending_in(JobPhase.TERMINATED), soft=True)
            case JobPhase.COMPLETING:
                return self._kill(_ending_in(JobPhase.COMPLETED), soft=True)
            case _:
                return self._kill(_unchanged, soft=True)

    def _while_active(self) -> Step:
        if self.action is JobAction.RESTART_JOB:
            return self._kill(_restarting, soft=False)
        if self.action in RESTARTS_OF_PARTS:
            return self._kill_part(_restarting)
        ending = {
            JobAction.ABORT_JOB: JobPhase.ABORTING,
            JobAction.TERMINATE_JOB: JobPhase.TERMINATING,
            JobAction.COMPLETE_JOB: JobPhase.COMPLETING,
        }.get(self.action)
        if ending is not None:
            return self._kill(lambda status: replace(status, phase=ending), soft=True)
        return self._sync(self._begun if self.status.phase is JobPhase.PENDING else self._went_on)

    def _while_restarting(self) -> Step:
        if self.action is JobAction.SYNC_JOB:
            return self._sync(self._restarted)
        if self.action in RESTARTS_OF_PARTS:
            return self._kill_part(self._restarted)
        return self._kill(self._restarted, soft=False)

    # How a status goes on

    def _begun(self, status: JobStatus) -> JobStatus:
        at_work = status.count(PodPhase.RUNNING, PodPhase.SUCCEEDED, PodPhase.FAILED)
        return replace(status, phase=JobPhase.RUNNING) if self.job.min_available <= at_work else status

    def _went_on(self, status: JobStatus) -> JobStatus:
        """Running: whether the job has ended, or lost too many pods."""
        job, succeeded = self.job, status.count(PodPhase.SUCCEEDED)
        if job.replicas == 0:
            return status
        if job.min_success is not None and succeeded >= job.min_success:
            return replace(status, phase=JobPhase.COMPLETED)
        if status.count(PodPhase.SUCCEEDED, PodPhase.FAILED) == job.replicas:
            done = self._every_task_succeeded(status) and job.min_success is None and succeeded >= job.min_available
            return replace(status, phase=JobPhase.COMPLETED if done else JobPhase.FAILED)
        if status.count(PodPhase.PENDING) > job.replicas - job.min_available:
            return replace(status, phase=JobPhase.PENDING)
        return status

    def _every_task_succeeded(self, status: JobStatus) -> bool:
        """Return whether each task has its least number of successes; only called if the job needs as many pods as its
        tasks have."""
        if self.job.min_available < self.job.task_minimum:
            return True
        done = {name: counts.get(PodPhase.SUCCEEDED, 0) for name, counts in status.by_task.items()}
        return all(done.get(task.name, 0) >= task.minimum for task in self.job.tasks)

    def _restarted(self, status: JobStatus) -> JobStatus:
        if status.retry_count >= self.job.max_retry:
            return replace(status, phase=JobPhase.FAILED)
        if self.job.replicas - status.terminating >= self.job.min_available:
            return replace(status, phase=JobPhase.PENDING)
        return status

    # What happens to the pods

    def _kill(self, update: Update, *, soft: bool) -> Step:
        """Delete the pods and the pod group. `soft`: pods that have ended stay, as at the last retry."""
        delete = self._to_delete(self.pods.values(), soft=soft)
        counted = _counted(self.status, self.pods.values(), delete)
        status = update(replace(counted, version=counted.version + 1))
        return Step(status, self.action, delete=tuple(sorted(delete)), deletes_pod_group=True)

    def _kill_part(self, update: Update) -> Step:
        """Delete the pods of the request's task, partition or pod, including pods that have ended."""
        if self.action is JobAction.RESTART_PARTITION and not self._has_partition:
            return Step(self.status, self.action)
        part = list(self._part())
        delete = {pod.name for pod in part if not pod.deleting}
        return Step(update(_counted(self.status, part, delete)), self.action, delete=tuple(sorted(delete)))

    @property
    def _has_partition(self) -> bool:
        """Whether the request is about a pod of a partition: without one there is nothing to restart."""
        task = self.job.task(self.request.task)
        return task is not None and task.partition_size > 0

    def _to_delete(self, pods: Iterable[JobPod], *, soft: bool) -> set[str]:
        keeps = soft or self.status.retry_count >= self.job.max_retry - 1
        return {pod.name for pod in pods if not pod.deleting and not (keeps and pod.phase in _ENDED)}

    def _part(self) -> Iterable[JobPod]:
        task, pod = self.job.task(self.request.task), self.pods.get(self.request.pod)
        if self.action is JobAction.RESTART_POD:
            return [pod] if pod else []
        same_task = [each for each in self.pods.values() if each.task == self.request.task]
        if self.action is JobAction.RESTART_TASK or task is None:
            return same_task
        partition = task.partition_of(_index_of(self.request.pod))
        return [each for each in same_task if task.partition_of(each.index) == partition]

    def _sync(self, update: Update) -> Step:
        """Create missing pods, and delete pods that the spec does not have."""
        if not self.may_create:
            return Step(update(self.status), self.action, makes_pod_group=True)
        wanted = {
            self.job.pod_name(task, index): (task, index) for task in self.job.tasks for index in range(task.replicas)
        }
        delete = {name for name, pod in self.pods.items() if name not in wanted and not pod.deleting}
        create = [
            JobPod(name, task.name, index, version=self.status.version)
            for name, (task, index) in wanted.items()
            if name not in self.pods and self._may_start(task)
        ]
        counted = _counted(self.status, self.pods.values(), delete)  # a new pod counts once the cluster reports it
        return Step(update(counted), self.action, tuple(create), tuple(sorted(delete)), makes_pod_group=True)

    def _may_start(self, task: TaskSpec) -> bool:
        """Return whether the tasks on which this task depends have started: one of them if any is enough, otherwise
        all."""
        started = [self._has_started(name) for name in task.depends_on]
        return any(started) if task.any_of and len(started) > 1 else all(started)

    def _has_started(self, name: str) -> bool:
        task = self.job.task(name)
        ready = sum(
            pod.phase is PodPhase.SUCCEEDED or (pod.phase is PodPhase.RUNNING and pod.ready)
            for pod in self.pods.values()
            if pod.task == name
        )
        return task is not None and ready >= task.minimum


def _restarting(status: JobStatus) -> JobStatus:
    return replace(status, phase=JobPhase.RESTARTING, retry_count=status.retry_count + 1)


def _ending_in(phase: JobPhase) -> Update:
    def update(status: JobStatus) -> JobStatus:
        alive = status.terminating + status.count(PodPhase.PENDING, PodPhase.RUNNING)
        return status if alive else replace(status, phase=phase)

    return update


def _counted(status: JobStatus, pods: Iterable[JobPod], deleted: set[str]) -> JobStatus:
    """Return the status with the counts of these pods."""
    by_task: dict[str, Counter[PodPhase]] = {}
    terminating = 0
    for pod in pods:
        if pod.deleting or pod.name in deleted:
            terminating += 1
        else:
            by_task.setdefault(pod.task, Counter())[pod.phase] += 1
    counts = sum(by_task.values(), Counter[PodPhase]())
    return replace(status, counts=counts, by_task=by_task, terminating=terminating)


def _index_of(pod: str) -> int:
    tail = pod.rpartition("-")[2]
    return int(tail) if tail.isdecimal() else 0
