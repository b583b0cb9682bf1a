"""Writes a workload's life in the format of the recordings: a snapshot before the steps and after each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduling.lifecycle.reconcile import StepEvent
from scheduling.lifecycle.retention import Retention
from scheduling.model.admission_check import AdmissionCheckState
from scheduling.model.configuration import Configuration
from scheduling.model.quantity import format_amount
from scheduling.simulator.life import Life, build_life
from scheduling.simulator.simulator import EPOCH

Snapshot = dict[str, Any]


def play_life(scenario: Mapping[str, Any], configuration: Configuration, retention: Retention) -> list[Snapshot]:
    """Play the scenario's steps; return the observable state before the first and after each."""
    life = build_life(scenario, configuration, retention)
    found = [snapshot(life)]
    for step in scenario["steps"]:
        life.play(step)
        found.append(snapshot(life))
    return found


def snapshot(life: Life) -> Snapshot:
    """Return the observable state of the workload; absent parts are not set."""
    found: Snapshot = {
        "at": life.now - EPOCH,
        "events": [_event(event) for event in life.events],
        "queue": "active" if life.in_heap else "",
        "usage": _usage(life),
    }
    if life.deleted:
        return {**found, "deleted": True, "jobDeleted": life.job_deleted}
    workload = life.workload
    conditions = sorted(workload.conditions.values(), key=lambda condition: condition.type)
    found |= {
        "active": life.active,
        "admission": workload.admission.cluster_queue if workload.admission else None,
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "since": condition.last_transition_time - EPOCH,
            }
            for condition in conditions
        ],
        "requeueState": _requeue_state(life),
        "admissionChecks": [_check(check) for check in workload.admission_checks],
        "evictions": [
            {"reason": reason, "underlyingCause": cause, "count": count}
            for (reason, cause), count in sorted(life.evictions.items())
        ],
        "accumulatedPastExecutionTimeSeconds": life.accumulated_seconds,
        "requeueAfter": _rest(life, life.next_look()),
        "deleting": life.deleting,
        "jobRequeueAfter": _rest(life, life.job_next_look()),
        "jobDeleted": life.job_deleted,
        "jobEvents": [_event(event) for event in life.job_events],
    }
    return {name: value for name, value in found.items() if value is not None}


def _rest(life: Life, at: float | None) -> float | None:
    return None if at is None else at - life.now


def _event(event: StepEvent) -> Snapshot:
    return {"type": "Warning" if event.warning else "Normal", "reason": event.reason, "message": event.message}


def _check(check: AdmissionCheckState) -> Snapshot:
    return {
        "name": check.name,
        "state": check.state,
        "message": check.message,
        "since": check.last_transition_time - EPOCH,
        "requeueAfterSeconds": check.requeue_after_seconds,
        "retryCount": check.retry_count,
        "podSetUpdates": len(check.pod_set_updates),
    }


def _requeue_state(life: Life) -> Snapshot | None:
    state = life.workload.requeue_state
    if state is None:
        return None
    return {"count": state.count} | ({} if state.requeue_at is None else {"requeueAt": state.requeue_at - EPOCH})


def _usage(life: Life) -> dict[str, str]:
    """`ClusterQueue/flavor/resource` -> reserved amount."""
    return {
        f"{name}/{row.flavor}/{row.resource}": format_amount(row.resource, row.used)
        for name in life.world.cluster_queue_names()
        for row in life.world.cluster_queue_status(name).usage
        if row.used
    }
