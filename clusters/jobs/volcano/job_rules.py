"""Mistakes in a Volcano Job, as Volcano's admission finds them (pure)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from clusters.jobs.volcano.job_pods import PLUGINS
from clusters.jobs.volcano.job_spec import POLICY_ACTIONS, POLICY_EVENTS, TaskSpec, VolcanoJobSpec, read_duration

ANY: Final = "*"


@dataclass(frozen=True, slots=True)
class JobMistake:
    """A mistake in a Volcano Job: its path, the value, the rule and the remedy."""

    path: str
    value: Any
    rule: str
    remedy: str


def policy_mistakes(job: Mapping[str, Any]) -> Iterator[JobMistake]:
    """Yield the mistakes in the policies of a job and of its tasks; a job without any can be read by `read_spec`."""
    spec = job["spec"]
    yield from _of_policies(spec, "spec")
    for number, task in enumerate(spec.get("tasks") or ()):
        yield from _of_policies(task, f"spec.tasks[{number}]")


def _of_policies(holder: Mapping[str, Any], path: str) -> Iterator[JobMistake]:
    seen: set[Any] = set()
    for number, policy in enumerate(holder.get("policies") or ()):
        yield from _of_policy(policy, f"{path}.policies[{number}]")
        for cause in (*_events(policy), policy.get("exitCode")):
            if cause is not None and cause in seen:
                yield JobMistake(f"{path}.policies[{number}]", cause, "Duplicate value", "Name it in one policy.")
            seen.add(cause)


def _events(policy: Mapping[str, Any]) -> list[str]:
    return [*(policy.get("events") or ()), *([policy["event"]] if policy.get("event") else [])]


def _of_policy(policy: Mapping[str, Any], path: str) -> Iterator[JobMistake]:
    events, code = _events(policy), policy.get("exitCode")
    if bool(events) == (code is not None):
        yield JobMistake(path, None, "must have either events or an exitCode", "Write one of the two.")
    if code == 0:
        yield JobMistake(f"{path}.exitCode", 0, "0 is not an error code", "Write the code of a failure.")
    if ANY in events and len(events) > 1:
        yield JobMistake(f"{path}.events", events, f'"{ANY}" is every event', "Leave the others out.")
    for event in events:
        if event not in POLICY_EVENTS:
            yield _unsupported(f"{path}.event", event, POLICY_EVENTS)
    if policy.get("action") not in POLICY_ACTIONS:
        yield _unsupported(f"{path}.action", policy.get("action"), POLICY_ACTIONS)
    try:
        read_duration(policy.get("timeout") or "0s")
    except ValueError as mistake:
        yield JobMistake(f"{path}.timeout", policy["timeout"], str(mistake), "")


def _unsupported(path: str, value: Any, supported: frozenset[Any]) -> JobMistake:
    return JobMistake(path, value, "Unsupported value", f"Supported are {', '.join(sorted(supported))}.")


def spec_mistakes(job: VolcanoJobSpec) -> Iterator[JobMistake]:
    """Yield the mistakes in a job that could be read."""
    if not job.tasks:
        yield JobMistake("spec.tasks", None, "Required value", "Add at least one task.")
    names = [task.name for task in job.tasks]
    for number, task in enumerate(job.tasks):
        if task.name in names[:number]:
            yield JobMistake(f"spec.tasks[{number}].name", task.name, "Duplicate value", "Use another name.")
        yield from _of_task(task, f"spec.tasks[{number}]", names)
    if job.min_available > job.replicas:
        rule = f"must be at most the replicas of all tasks ({job.replicas})"
        yield JobMistake("spec.minAvailable", job.min_available, rule, "Lower it.")
    if _is_cyclic(job):
        yield JobMistake("spec.tasks", None, "dependsOn forms a cycle", "Let one of these tasks start first.")
    for name in sorted(job.plugins.keys() - set(PLUGINS)):
        remedy = f"Supported are {', '.join(PLUGINS)}."
        yield JobMistake(f"spec.plugins[{name}]", name, "Unsupported value", remedy)


def _of_task(task: TaskSpec, path: str, names: list[str]) -> Iterator[JobMistake]:
    if task.replicas < 0:
        yield JobMistake(f"{path}.replicas", task.replicas, "must be at least 0", "Raise it.")
    if task.minimum > task.replicas:
        rule = f"must be at most replicas ({task.replicas})"
        yield JobMistake(f"{path}.minAvailable", task.minimum, rule, "Lower it.")
    for name in task.depends_on:
        if name not in names:
            yield JobMistake(f"{path}.dependsOn.name", name, "Not found: no task of this name", "Correct it.")


def _is_cyclic(job: VolcanoJobSpec) -> bool:
    left = {task.name: {name for name in task.depends_on if job.task(name)} for task in job.tasks}
    while free := [name for name, needs in left.items() if not needs & left.keys()]:
        for name in free:
            del left[name]
    return bool(left)
