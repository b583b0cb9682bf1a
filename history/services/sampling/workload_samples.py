"""Samples which workloads are pending, why, and which hold quota."""

from collections.abc import Iterable
from typing import Final

from django.db import connection

from history.models import Count, Scope
from history.services.sampling.gathered import Gathered, Places, SubjectKey

_WORKLOADS: Final = """
    SELECT namespace, queue_name, cluster_queue_name, status, reason, active, count(*)
    FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished' AND parent_name = '' GROUP BY 1, 2, 3, 4, 5, 6
"""


def gather_workloads(cluster_id: int, places: Places, found: Gathered) -> None:
    """Add the counts of workloads by scope, zeros for empty queues, and the weighted shares of queues and cohorts."""
    with connection.cursor() as cursor:
        cursor.execute(_WORKLOADS, [cluster_id])
        add_workloads(cursor.fetchall(), places, found)


def add_workloads(rows: Iterable[tuple[str, str, str, str, str, bool, int]], places: Places, found: Gathered) -> None:
    """Add what `gather_workloads` adds, from rows of namespace, LocalQueue, ClusterQueue, status, reason, active and
    count."""
    for scope, name in _everybody(places):
        found.workloads[SubjectKey(scope, name)]
    for name, queue in places.cluster_queues.items():
        found.workloads[SubjectKey(Scope.CLUSTER_QUEUE, name)].share = _finite(queue["weighted_share"])
    for name, cohort in places.cohorts.items():
        found.workloads[SubjectKey(Scope.COHORT, name)].share = _finite(cohort["weighted_share"])
    for namespace, local_queue, cluster_queue, status, reason, active, count in rows:
        for scope, name in places.scopes(namespace, local_queue, cluster_queue):
            _add(found, scope, name, status, active, count)
            if status in {"Pending", "Evicted"} and active:
                found.counts[SubjectKey(scope, name, Count.PENDING, detail=reason)] += count


def _everybody(places: Places) -> set[tuple[Scope, str]]:
    return {
        (Scope.CLUSTER, ""),
        *((Scope.CLUSTER_QUEUE, name) for name in places.cluster_queues),
        *((Scope.COHORT, name) for name in places.cohorts),
        *((Scope.NAMESPACE, namespace) for namespace, _ in places.local_queues),
        *((Scope.LOCAL_QUEUE, f"{namespace}/{name}") for namespace, name in places.local_queues),
    }


def _add(found: Gathered, scope: Scope, name: str, status: str, active: bool, count: int) -> None:
    row = found.workloads[SubjectKey(scope, name)]
    if status in {"QuotaReserved", "Admitted"}:
        row.reserving += count
        row.admitted += count if status == "Admitted" else 0
    elif active:
        row.pending += count
    else:
        row.held += count


def _finite(share: float | str) -> float | None:
    return None if isinstance(share, str) else float(share)
