"""Runs one Volcano Job: receives its events, and handles one request after another until none is left (pure).

The caller's `JobPods` create and delete the pods. A cluster's pods change later, and then the caller reports the
change; a caller whose pods change at once reports it from inside of the call.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from clusters.jobs.volcano.job_life import (
    SYNC,
    JobPod,
    JobStatus,
    PodPhase,
    Request,
    Step,
    command_request,
    execute,
    handle,
    lost_pod_request,
    new_pod_request,
    pod_request,
)
from clusters.jobs.volcano.job_spec import JobAction, JobEvent, VolcanoJobSpec

MAX_STEPS: Final = 10_000
"""Requests in a row; a job whose policies restart it forever has `maxRetry` before that."""


class JobPods(Protocol):
    """The pods of a job in a cluster."""

    def create(self, pod: JobPod) -> None: ...

    def delete(self, name: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Delayed:
    """An action that is due after a time, and the request that raised it."""

    action: JobAction
    request: Request
    due_seconds: float


@dataclass(slots=True)
class JobController:
    """The state of one job: its spec, its status and its pods by name.

    * may_create: whether the pod group is past Pending, so that pods are made.
    * has_pod_group: whether the pod group exists; killing the whole job deletes it, and the next sync creates it again.
    * delayed: actions that wait for their time, by pod.
    """

    job: VolcanoJobSpec
    pods_port: JobPods
    status: JobStatus = field(default_factory=JobStatus)
    pods: dict[str, JobPod] = field(default_factory=dict)
    may_create: bool = False
    has_pod_group: bool = False
    delayed: dict[str, Delayed] = field(default_factory=dict)
    now_seconds: float = 0.0
    on_pod_group: Callable[[bool], None] = lambda _: None
    _requests: deque[Request] = field(default_factory=deque)
    _deleted_here: set[str] = field(default_factory=set)

    # What happens to the job

    def spec_changed(self, job: VolcanoJobSpec) -> None:
        self.job = job
        self._requests.append(SYNC)

    def created(self) -> None:
        """Sync the job, which is new or whose pods may now be created."""
        self._requests.append(SYNC)

    def commanded(self, action: JobAction) -> None:
        self._requests.append(command_request(action))

    def pod_group_is_unknown(self) -> None:
        """Handle a broken gang: some of its pods run, but fewer than it needs."""
        self._requests.append(Request(JobEvent.UNKNOWN))

    def pod_added(self, pod: JobPod) -> None:
        self.pods[pod.name] = pod
        self._take(new_pod_request(pod))

    def pod_changed(self, pod: JobPod) -> None:
        before = self.pods.get(pod.name)
        if before is None:
            self.pod_added(pod)
        else:
            self.pods[pod.name] = pod
            self._take(pod_request(self.job, before, pod, self.pods.values()))

    def pod_deleted(self, name: str) -> None:
        pod = self.pods.pop(name, None)
        if pod is not None:
            by_controller = name in self._deleted_here
            self._deleted_here.discard(name)
            self._take(lost_pod_request(pod, by_controller=by_controller))

    def _take(self, request: Request) -> None:
        self._cancel_outdated(request)
        self._requests.append(request)

    def _cancel_outdated(self, request: Request) -> None:
        """Cancel the delayed action for a pod that left Pending, or runs again after it failed."""
        waiting = self.delayed.get(request.pod)
        if waiting is None or request.event is JobEvent.POD_PENDING:
            return
        pod = self.pods.get(request.pod)
        left_pending = waiting.request.event is JobEvent.POD_PENDING and (
            pod is None or pod.phase is not PodPhase.PENDING
        )
        runs_again = request.event is JobEvent.POD_RUNNING
        if left_pending or runs_again:
            del self.delayed[request.pod]

    # What is done about it

    def settle(self) -> list[Step]:
        """Handle requests until none is left. Returns the executed steps in order."""
        steps: list[Step] = []
        while self._requests and len(steps) < MAX_STEPS:
            request = self._requests.popleft()
            step = handle(self.job, self.status, self.pods, request, may_create=self._may_create)
            steps.append(step)
            if step.delay_seconds:
                self.delayed[request.pod] = Delayed(step.action, request, self.now_seconds + step.delay_seconds)
            else:
                self._carry_out(step)
        return steps

    def run_due(self, now_seconds: float) -> list[Step]:
        """Carry out the delayed actions that are due, and settle."""
        self.now_seconds = now_seconds
        due = [(pod, waiting) for pod, waiting in self.delayed.items() if waiting.due_seconds <= now_seconds]
        steps: list[Step] = []
        for pod, waiting in due:
            if self.delayed.pop(pod, None) is None:
                continue  # an earlier one of the same scope has cancelled it
            step = execute(
                self.job, self.status, self.pods, waiting.action, waiting.request, may_create=self._may_create
            )
            steps.append(step)
            self._carry_out(step)
        return [*steps, *self.settle()]

    @property
    def _may_create(self) -> bool:
        return self.may_create and self.has_pod_group

    def _carry_out(self, step: Step) -> None:
        before, self.status = self.status, step.status
        if step.action is not JobAction.SYNC_JOB:
            self._cancel_same_scope(step.action)
        self._delete(step.delete)
        for pod in step.create:
            self.pods_port.create(pod)
        if step.deletes_pod_group and self.has_pod_group:
            self.has_pod_group = False
            self.on_pod_group(False)
        if step.makes_pod_group and not self.has_pod_group:
            self.has_pod_group = True
            self.on_pod_group(True)
            if self.may_create:
                self._requests.append(SYNC)
        if step.status.phase != before.phase:
            self._requests.append(SYNC)

    def _delete(self, names: Sequence[str]) -> None:
        for name in names:
            self._deleted_here.add(name)
            self.pods_port.delete(name)

    def _cancel_same_scope(self, action: JobAction) -> None:
        """Cancel the delayed actions of the same kind: one restart of the job answers for all."""
        for pod in [pod for pod, waiting in self.delayed.items() if waiting.action is action]:
            del self.delayed[pod]
