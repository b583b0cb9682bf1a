"""The spec of a Volcano Job as values, with the defaults of Volcano's admission (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

DEFAULT_MAX_RETRY: Final = 3
"""Restarts of a job and of a task, if the spec states none."""
UNLIMITED_RETRIES: Final = -1
DEFAULT_QUEUE: Final = "default"


class JobEvent(StrEnum):
    """An event of a job, a task or a pod; policies name events."""

    ANY = "*"
    POD_FAILED = "PodFailed"
    POD_EVICTED = "PodEvicted"
    POD_PENDING = "PodPending"
    TASK_COMPLETED = "TaskCompleted"
    TASK_FAILED = "TaskFailed"
    UNKNOWN = "Unknown"
    POD_RUNNING = "PodRunning"
    OUT_OF_SYNC = "OutOfSync"
    COMMAND_ISSUED = "CommandIssued"


INTERNAL_EVENTS: Final = frozenset({JobEvent.POD_RUNNING, JobEvent.OUT_OF_SYNC, JobEvent.COMMAND_ISSUED})
"""Events that no policy matches, not even one for `*`."""
POLICY_EVENTS: Final = frozenset(JobEvent) - INTERNAL_EVENTS


class JobAction(StrEnum):
    """An action of the controller on a job."""

    ABORT_JOB = "AbortJob"
    RESTART_JOB = "RestartJob"
    RESTART_TASK = "RestartTask"
    RESTART_POD = "RestartPod"
    RESTART_PARTITION = "RestartPartition"
    TERMINATE_JOB = "TerminateJob"
    COMPLETE_JOB = "CompleteJob"
    RESUME_JOB = "ResumeJob"
    SYNC_JOB = "SyncJob"


RESTARTS_OF_PARTS: Final = frozenset({JobAction.RESTART_TASK, JobAction.RESTART_POD, JobAction.RESTART_PARTITION})
POLICY_ACTIONS: Final = frozenset(JobAction) - {JobAction.SYNC_JOB}


@dataclass(frozen=True, slots=True)
class Policy:
    """A rule of a job or of a task: on one of these events, or on a failure with this exit code, do the action.

    `timeout_seconds`: how long the action is delayed; 0: it is done at once.
    """

    action: JobAction
    events: frozenset[JobEvent] = frozenset()
    exit_code: int | None = None
    timeout_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """A task: equal pods of a job.

    * minimum: `minAvailable`, the pods that must run, by default all of them.
    * max_retry: restarts of its containers, summed up, that fail the task; -1: any number.
    * depends_on, any_of: the tasks that must have started before its pods are made; one of them where `any_of`.
    * partition_size: the pods of a partition, in the order of their indexes; 0: no partitions.
    """

    name: str
    replicas: int
    minimum: int
    max_retry: int = DEFAULT_MAX_RETRY
    policies: tuple[Policy, ...] = ()
    depends_on: tuple[str, ...] = ()
    any_of: bool = False
    partition_size: int = 0
    template: Mapping[str, Any] = field(default_factory=dict)

    def partition_of(self, index: int) -> int | None:
        """Return the partition of the pod with this index; None without partitions."""
        return index // self.partition_size if self.partition_size else None


@dataclass(frozen=True, slots=True)
class VolcanoJobSpec:
    """A Volcano Job with its defaults filled in."""

    name: str
    namespace: str
    uid: str
    tasks: tuple[TaskSpec, ...]
    min_available: int
    max_retry: int = DEFAULT_MAX_RETRY
    min_success: int | None = None
    policies: tuple[Policy, ...] = ()
    plugins: Mapping[str, Sequence[str]] = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    priority_class: str = ""
    scheduler_name: str = "volcano"
    ttl_seconds: int | None = None

    @property
    def replicas(self) -> int:
        return sum(task.replicas for task in self.tasks)

    @property
    def task_minimum(self) -> int:
        """The sum of the tasks' own `minAvailable`."""
        return sum(task.minimum for task in self.tasks)

    def task(self, name: str) -> TaskSpec | None:
        return next((task for task in self.tasks if task.name == name), None)

    def pod_name(self, task: TaskSpec, index: int) -> str:
        return f"{self.name}-{task.name}-{index}"


def read_spec(job: Mapping[str, Any]) -> VolcanoJobSpec:
    """Return the spec of a manifest. Raises KeyError, TypeError or ValueError for one that is not of this kind."""
    spec, metadata = job["spec"], job["metadata"]
    tasks = tuple(_read_task(task, number) for number, task in enumerate(spec.get("tasks") or ()))
    minimum = sum(task.minimum for task in tasks)
    min_success = spec.get("minSuccess")
    ttl = spec.get("ttlSecondsAfterFinished")
    return VolcanoJobSpec(
        name=metadata.get("name") or metadata["generateName"],
        namespace=metadata.get("namespace", ""),
        uid=metadata.get("uid", ""),
        tasks=tasks,
        min_available=int(spec.get("minAvailable") or minimum),
        max_retry=int(spec.get("maxRetry") or DEFAULT_MAX_RETRY),
        min_success=None if min_success is None else int(min_success),
        policies=_read_policies(spec),
        plugins={name: tuple(arguments or ()) for name, arguments in (spec.get("plugins") or {}).items()},
        queue=spec.get("queue") or DEFAULT_QUEUE,
        priority_class=spec.get("priorityClassName") or "",
        scheduler_name=spec.get("schedulerName") or "volcano",
        ttl_seconds=None if ttl is None else int(ttl),
    )


def task_name(task: Mapping[str, Any], number: int) -> str:
    """Return the name of a task; a task without a name is named after its position."""
    return str(task.get("name") or f"{DEFAULT_QUEUE}{number}")


def _read_task(task: Mapping[str, Any], number: int) -> TaskSpec:
    replicas = int(task.get("replicas") or 0)
    partitions = task.get("partitionPolicy") or {}
    size = int(partitions.get("partitionSize") or 0)
    minimum = task.get("minAvailable")
    if minimum is None:
        minimum = int(partitions.get("minPartitions") or 0) * size or replicas
    depends_on = task.get("dependsOn") or {}
    return TaskSpec(
        name=task_name(task, number),
        replicas=replicas,
        minimum=int(minimum),
        max_retry=int(task.get("maxRetry") or DEFAULT_MAX_RETRY),
        policies=_read_policies(task),
        depends_on=tuple(depends_on.get("name") or ()),
        any_of=depends_on.get("iteration") == "any",
        partition_size=size,
        template=task.get("template") or {},
    )


def _read_policies(holder: Mapping[str, Any]) -> tuple[Policy, ...]:
    return tuple(_read_policy(policy) for policy in holder.get("policies") or ())


def _read_policy(policy: Mapping[str, Any]) -> Policy:
    events = [*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else [])]
    exit_code = policy.get("exitCode")
    return Policy(
        action=JobAction(policy.get("action") or JobAction.SYNC_JOB),
        events=frozenset(map(JobEvent, events)),
        exit_code=None if exit_code is None else int(exit_code),
        timeout_seconds=read_duration(policy.get("timeout") or "0s"),
    )


_UNIT_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_STEP: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|s|m|h)")


def read_duration(text: str) -> float:
    """Return the seconds of a duration in Go's syntax, such as `1h30m`. Raises ValueError."""
    if text != "0" and not re.fullmatch(f"({_STEP.pattern})+", text):
        raise ValueError(f'invalid duration "{text}": write it as 30s, 10m or 1h30m')
    return sum(float(value) * _UNIT_SECONDS[unit] for value, unit in _STEP.findall(text))
