"""The least that a Volcano Job needs to start: its PodGroup's members and resources (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from clusters.jobs.volcano.job_spec import TaskSpec, VolcanoJobSpec
from scheduling.model.quantity import sum_of_quantities

_LIMITED: Final = ("cpu", "memory", "ephemeral-storage")
"""Resources whose limits a ResourceQuota counts."""


def least_pods(job: VolcanoJobSpec, priorities: Mapping[str, int]) -> dict[str, int]:
    """Return how many pods of each task the job needs to start.

    Tasks of a higher PriorityClass (`priorities`: name to value) come first. A job that needs fewer pods than its tasks
    together takes them in that order; a job that needs more takes each task's minimum first, and then adds pods in that
    order.
    """
    ordered = sorted(job.tasks, key=lambda task: -priorities.get(_class_of(task), 0))
    counts = dict.fromkeys((task.name for task in ordered), 0)
    if job.min_available >= job.task_minimum:
        counts = {task.name: min(task.minimum, task.replicas) for task in ordered}
    left = job.min_available - sum(counts.values())
    for task in ordered:
        more = max(0, min(task.replicas - counts[task.name], left))
        counts[task.name] += more
        left -= more
    return counts


def _class_of(task: TaskSpec) -> str:
    return str((task.template.get("spec") or {}).get("priorityClassName") or "")


def least_resources(job: VolcanoJobSpec, priorities: Mapping[str, int]) -> dict[str, str]:
    """Return `minResources` of the PodGroup as quantities, with the entries that a ResourceQuota counts."""
    counts = least_pods(job, priorities)
    requests: dict[str, list[str]] = {}
    limits: dict[str, list[str]] = {}
    for task in job.tasks:
        for container in (task.template.get("spec") or {}).get("containers") or ():
            resources = container.get("resources") or {}
            for total, amounts in ((requests, resources.get("requests")), (limits, resources.get("limits"))):
                for name, text in (amounts or {}).items():
                    total.setdefault(name, []).extend([str(text)] * counts[task.name])
    pods = str(sum(counts.values()))
    counted = {f"requests.{name}": texts for name, texts in requests.items()}
    capped = {f"limits.{name}": texts for name, texts in limits.items() if name in _LIMITED}
    sums = {name: sum_of_quantities(texts) for name, texts in {**requests, **counted, **capped}.items() if texts}
    return {"pods": pods, "count/pods": pods, **sums}
