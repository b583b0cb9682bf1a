"""Kueue's objectRetentionPolicies: finished workloads are deleted after a while; their events and decisions stay."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.models import Cluster
from queues.models import Workload, WorkloadEvent
from queues.services.workloads import cancel, delete_workloads
from scheduler.models import SchedulingCycle
from scheduling.lifecycle.conditions import eviction_reason
from scheduling.model.duration import duration_seconds
from scheduling.model.vocabulary import DeactivationCause, EvictionReason

_AT_ONCE: Final = 1000
"""Workloads deleted in one transaction; the next run takes the rest."""
_AT_ONCE_ROWS: Final = 10_000


def delete_expired_workloads(cluster: Cluster, now: datetime) -> int:
    """Delete what has been kept long enough; returns how many workloads that were.

    `afterFinished` counts from the end of the workload, `afterDeactivatedByKueue` from its eviction: the job of a
    workload that Kueue's rules deactivated is deleted, never one that a user put on hold.
    """
    policies = (cluster.configuration.get("objectRetentionPolicies") or {}).get("workloads") or {}
    workloads = Workload.objects.filter(cluster=cluster)
    count = 0
    finished = _age(policies, "afterFinished")
    if finished is not None:
        old = workloads.filter(status="Finished", finished_at__lte=now - finished).order_by("finished_at")
        count += len(delete_workloads(cluster, _keys(old), actor="retention", now=now))
    deactivated = _age(policies, "afterDeactivatedByKueue")
    if deactivated is not None:
        old = workloads.filter(
            _deactivated_by_kueue(), status="Pending", active=False, evicted_at__lte=now - deactivated
        )
        count += len(cancel(cluster, _keys(old.order_by("evicted_at")), actor="retention", now=now))
    return count


def drop_old_history(now: datetime) -> None:
    """Events and cycles beyond the retention of the decision log go with it, some thousands in a statement."""
    oldest = now - timedelta(days=settings.DECISION_RETENTION_DAYS)
    for rows in (WorkloadEvent.objects.filter(at__lt=oldest), SchedulingCycle.objects.filter(started_at__lt=oldest)):
        while rows.filter(pk__in=list(rows.values_list("pk", flat=True)[:_AT_ONCE_ROWS])).delete()[0]:
            continue


def _deactivated_by_kueue() -> Q:
    """Evicted for a cause of Kueue's own, as the Evicted condition says."""
    by_any = Q()
    for cause in DeactivationCause:
        reason = eviction_reason(EvictionReason.DEACTIVATED, cause)
        by_any |= Q(conditions__contains=[{"type": "Evicted", "status": "True", "reason": reason}])
    return by_any


def _age(policies: Mapping[str, str], name: str) -> timedelta | None:
    text = policies.get(name)
    return None if text is None else timedelta(seconds=duration_seconds(str(text)))


def _keys(workloads: QuerySet[Workload]) -> list[tuple[str, str]]:
    return list(workloads.values_list("namespace", "name")[:_AT_ONCE])
