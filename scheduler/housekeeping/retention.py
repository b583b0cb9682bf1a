"""Kueue's objectRetentionPolicies: finished workloads are deleted after a while; their events and decisions stay."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db.models import Q, QuerySet

from accounts.models import Cluster
from queues.models import Reservation, Workload, WorkloadEvent
from queues.services.flows.job_flows import jobs_of_open_flows
from queues.services.workloads import cancel, delete_workloads
from scheduler.models import SchedulingCycle, ShadowCount, ShadowDifference
from scheduling.lifecycle.retention import DEACTIVATIONS, FINISHED_MESSAGE, read_retention
from scheduling.reservations.reservation import PERIOD_SECONDS, Recurrence

LONGEST_WINDOW: Final = timedelta(seconds=max(PERIOD_SECONDS.values()))
"""The longest window of a recurring reservation: the last one may start just before its `until`."""
_AT_ONCE: Final = 1000
"""Workloads deleted in one transaction; the next run deletes the rest."""
_AT_ONCE_ROWS: Final = 10_000


def delete_expired_workloads(cluster: Cluster, now: datetime) -> int:
    """Delete workloads whose retention has ended; returns their number.

    `afterFinished` counts from the end of the workload; those of a flow stay until all have finished.
    `afterDeactivatedByKueue` counts from its eviction, and deletes the job of a workload that Kueue's rules
    deactivated, never one that a user put on hold.
    """
    retention = read_retention(cluster.configuration)
    workloads = Workload.objects.filter(cluster=cluster)
    count = 0
    if retention.after_finished_seconds is not None:
        since = now - timedelta(seconds=retention.after_finished_seconds)
        old = workloads.filter(status="Finished", finished_at__lte=since).order_by("finished_at")
        old = old.exclude(job__in=jobs_of_open_flows(cluster))
        count += len(delete_workloads(cluster, _keys(old), actor="retention", message=FINISHED_MESSAGE, now=now))
    if retention.after_deactivated_seconds is not None:
        since = now - timedelta(seconds=retention.after_deactivated_seconds)
        old = workloads.filter(
            _deactivated_by_kueue(), status="Pending", active=False, evicted_at__lte=since, parent_name=""
        )
        count += len(cancel(cluster, _keys(old.order_by("evicted_at")), actor="retention", now=now))
    return count


def drop_old_history(now: datetime) -> None:
    """Delete events and cycles older than the decision log's retention, and reservations that ended before, some
    thousands per statement. The audit keeps the reservations."""
    oldest = now - timedelta(days=settings.DECISION_RETENTION_DAYS)
    for rows in (
        WorkloadEvent.objects.filter(at__lt=oldest),
        SchedulingCycle.objects.filter(started_at__lt=oldest),
        ShadowDifference.objects.filter(at__lt=oldest),
        ShadowCount.objects.filter(at__lt=oldest),
        Reservation.objects.filter(recurrence=Recurrence.NONE.value, ends_at__lt=oldest),
        Reservation.objects.filter(until__lt=oldest - LONGEST_WINDOW),
    ):
        while rows.filter(pk__in=list(rows.values_list("pk", flat=True)[:_AT_ONCE_ROWS])).delete()[0]:
            continue


def _deactivated_by_kueue() -> Q:
    """Evicted for one of Kueue's own causes, by the Evicted condition."""
    by_any = Q()
    for reason in sorted(DEACTIVATIONS):
        by_any |= Q(conditions__contains=[{"type": "Evicted", "status": "True", "reason": reason}])
    return by_any


def _keys(workloads: QuerySet[Workload]) -> list[tuple[str, str]]:
    return list(workloads.values_list("namespace", "name")[:_AT_ONCE])
