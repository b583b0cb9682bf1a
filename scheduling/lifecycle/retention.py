"""When a finished workload, or the job of a deactivated one, is deleted (Kueue's objectRetentionPolicies)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from scheduling.lifecycle.conditions import eviction_reason
from scheduling.model.times import duration_seconds
from scheduling.model.vocabulary import ConditionStatus, ConditionType, DeactivationCause, EvictionReason
from scheduling.model.workload import Workload

DELETED: Final = "Deleted"
FINISHED_MESSAGE: Final = "Deleted finished workload due to elapsed retention"
DEACTIVATED_MESSAGE: Final = "Deleted job: deactivation retention period expired"

DEACTIVATIONS: Final = frozenset(eviction_reason(EvictionReason.DEACTIVATED, cause) for cause in DeactivationCause)
"""Reasons of Evicted for workloads that Kueue's rules, not a user, deactivated."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The retention of ended objects; None forever."""

    after_finished_seconds: float | None = None
    after_deactivated_seconds: float | None = None


def read_retention(manifest: Mapping[str, Any]) -> Retention:
    """Read how long a cluster keeps finished workloads, and jobs of workloads that Kueue's rules deactivated, from
    Kueue's Configuration."""
    policies = (manifest.get("objectRetentionPolicies") or {}).get("workloads") or {}
    return Retention(_age(policies, "afterFinished"), _age(policies, "afterDeactivatedByKueue"))


def _age(policies: Mapping[str, Any], key: str) -> float | None:
    value = policies.get(key)
    return None if value is None else duration_seconds(str(value))


def workload_expires_at(workload: Workload, retention: Retention) -> float | None:
    """Return when a finished workload is deleted; None if it is kept forever."""
    finished = workload.condition(ConditionType.FINISHED)
    if finished is None or finished.status is not ConditionStatus.TRUE or retention.after_finished_seconds is None:
        return None
    return finished.last_transition_time + retention.after_finished_seconds


def job_expires_at(workload: Workload, retention: Retention, *, active: bool) -> float | None:
    """Return when the job of a workload that Kueue's rules deactivated is deleted; None if it is kept forever."""
    evicted = workload.condition(ConditionType.EVICTED)
    if evicted is None or active or retention.after_deactivated_seconds is None:
        return None
    if evicted.status is not ConditionStatus.TRUE or evicted.reason not in DEACTIVATIONS:
        return None
    return evicted.last_transition_time + retention.after_deactivated_seconds
