"""Priorities: the classes that give a workload its priority, and the order that follows from it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkloadPriorityClass:
    """Kueue's WorkloadPriorityClass: a priority for queueing and preemption that pods do not see."""

    name: str
    value: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """Kubernetes' PriorityClass, used when a job names no WorkloadPriorityClass."""

    name: str
    value: int
    global_default: bool = False
    description: str = ""
