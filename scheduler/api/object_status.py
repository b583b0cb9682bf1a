"""Kueue's `status` of ClusterQueues, LocalQueues and Cohorts, as their manifests show it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from queues.models import ClusterQueue, Cohort, LocalQueue
from queues.services.object_status import Held, Status, flavor_usage, timestamp
from scheduler.api.queue_status import Numbers, local_queue_reason, read_numbers
from scheduler.store.configuration import read_configuration
from scheduling.model.vocabulary import ConditionStatus

_WAITING: Final = """
    SELECT namespace, queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL AND active),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished' AND namespace = ANY (%s) GROUP BY 1, 2
"""
_NOT_SEEN: Final = (False, "Pending", "The scheduler has not looked at it yet")


def cluster_queue_statuses(cluster: Cluster, rows: Sequence[ClusterQueue]) -> list[Status]:
    """What they hold, who waits, and whether they are active."""
    numbers = read_numbers(cluster)
    held = Held(cluster, (row.name for row in rows))
    fair = read_configuration(cluster.configuration).fair_sharing is not None
    return [_cluster_queue(row, numbers, held, fair) for row in rows]


def _cluster_queue(row: ClusterQueue, numbers: Numbers, held: Held, fair: bool) -> Status:
    entry = numbers.cluster_queues.get(row.name)
    active = _NOT_SEEN if entry is None else (entry["active"], entry["reason"], entry["message"])
    status: Status = {
        "conditions": [_active(row, *active)],
        "flavorsReservation": flavor_usage(row, held.reserved[row.name], with_borrowed=True),
        "flavorsUsage": flavor_usage(row, held.admitted[row.name], with_borrowed=True),
        "pendingWorkloads": entry["pending"] + entry["inadmissible"] if entry else 0,
        "reservingWorkloads": entry["reserving"] if entry else 0,
        "admittedWorkloads": entry["admitted"] if entry else 0,
    }
    if fair and entry:
        status["fairSharing"] = {"weightedShare": entry["weighted_share"]}
    return status


def cohort_statuses(cluster: Cluster, rows: Sequence[Cohort]) -> list[Status]:
    """The weighted share, where fair sharing is on."""
    if read_configuration(cluster.configuration).fair_sharing is None:
        return [{} for _ in rows]
    cohorts = read_numbers(cluster).cohorts
    return [
        {"fairSharing": {"weightedShare": cohorts[row.name]["weighted_share"]}} if row.name in cohorts else {}
        for row in rows
    ]


def local_queue_statuses(cluster: Cluster, rows: Sequence[LocalQueue]) -> list[Status]:
    """As of ClusterQueues, for what came through each LocalQueue."""
    numbers = read_numbers(cluster)
    names = {row.cluster_queue_name for row in rows}
    held = Held(cluster, names)
    queues = ClusterQueue.objects.filter(cluster=cluster, name__in=names).prefetch_related("resource_groups__quotas")
    leads_to = {queue.name: queue for queue in queues}
    counts = _counts(cluster, sorted({row.namespace for row in rows}))
    return [_local_queue(row, numbers, held, leads_to.get(row.cluster_queue_name), counts) for row in rows]


def _local_queue(
    row: LocalQueue, numbers: Numbers, held: Held, queue: ClusterQueue | None, counts: dict[str, tuple[int, int, int]]
) -> Status:
    pending, reserving, admitted = counts.get(row.key, (0, 0, 0))
    status: Status = {"conditions": [_active(row, *local_queue_reason(row, numbers))]}
    if queue is not None:
        status["flavorsReservation"] = flavor_usage(queue, held.reserved[row.key], with_borrowed=False)
        status["flavorsUsage"] = flavor_usage(queue, held.admitted[row.key], with_borrowed=False)
    return status | {"pendingWorkloads": pending, "reservingWorkloads": reserving, "admittedWorkloads": admitted}


def _counts(cluster: Cluster, namespaces: list[str]) -> dict[str, tuple[int, int, int]]:
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [cluster.pk, namespaces])
        return {
            f"{namespace}/{queue}": (pending, reserving, admitted)
            for namespace, queue, pending, reserving, admitted in cursor.fetchall()
        }


def _active(row: Any, active: bool, reason: str, message: str) -> Status:
    return {
        "type": "Active",
        "status": str(ConditionStatus.TRUE if active else ConditionStatus.FALSE),
        "reason": str(reason),
        "message": message,
        "observedGeneration": row.generation,
        "lastTransitionTime": timestamp(row.updated_at),
    }
