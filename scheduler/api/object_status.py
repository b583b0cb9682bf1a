"""Kueue's `status` of ClusterQueues, LocalQueues and Cohorts, as their manifests show it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from accounts.services.object_status import Status, timestamp
from queues.models import ClusterQueue, Cohort, LocalQueue
from queues.services.admission_rows import CHARGED_USAGE
from scheduler.api.queue_status import Numbers, local_queue_reason, read_numbers
from scheduler.store.configuration import read_configuration
from scheduling.model.quantity import format_amount
from scheduling.model.vocabulary import ConditionStatus

Cell = tuple[str, str]
"""(flavor, resource)"""

_WAITING: Final = """
    SELECT namespace, queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL AND active),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished' AND namespace = ANY (%s)
        AND NOT has_variants
    GROUP BY 1, 2
"""
_INFINITE_SHARE: Final = 2**63 - 1
"""The share of a borrower of weight 0, as Kueue writes it: the largest int64."""
_NOT_SEEN: Final = (False, "Pending", "The scheduler has not evaluated it yet")


def cluster_queue_statuses(cluster: Cluster, rows: Sequence[ClusterQueue]) -> list[Status]:
    """Return the usage, the pending workloads and the conditions of ClusterQueues."""
    numbers = read_numbers(cluster)
    held = held_in([cluster.pk], (row.name for row in rows))[cluster.pk]
    fair = read_configuration(cluster.configuration).fair_sharing is not None
    return [_cluster_queue(row, numbers, held, fair) for row in rows]


def _cluster_queue(row: ClusterQueue, numbers: Numbers, held: Held, fair: bool) -> Status:
    entry = numbers.cluster_queues.get(row.name)
    active = _NOT_SEEN if entry is None else (entry["active"], entry["reason"], entry["message"])
    status: Status = {
        "conditions": [
            _active(row, *active),
            *({**each, "observedGeneration": row.generation} for each in row.conditions),
        ],
        "flavorsReservation": flavor_usage(row, held.reserved[row.name], with_borrowed=True),
        "flavorsUsage": flavor_usage(row, held.admitted[row.name], with_borrowed=True),
        "pendingWorkloads": entry["pending"] + entry["inadmissible"] if entry else 0,
        "reservingWorkloads": entry["reserving"] if entry else 0,
        "admittedWorkloads": entry["admitted"] if entry else 0,
    }
    if fair and entry:
        status["fairSharing"] = {"weightedShare": _whole_share(entry["weighted_share"])}
    return status


def cohort_statuses(cluster: Cluster, rows: Sequence[Cohort]) -> list[Status]:
    """Return the weighted share of each cohort, if fair sharing is enabled."""
    if read_configuration(cluster.configuration).fair_sharing is None:
        return [{} for _ in rows]
    cohorts = read_numbers(cluster).cohorts
    return [
        {"fairSharing": {"weightedShare": _whole_share(cohorts[row.name]["weighted_share"])}}
        if row.name in cohorts
        else {}
        for row in rows
    ]


def _whole_share(share: float | str) -> int:
    """Return the share in the form of Kueue's API: rounded up."""
    return _INFINITE_SHARE if share == "Infinity" else math.ceil(float(share))


def local_queue_statuses(cluster: Cluster, rows: Sequence[LocalQueue]) -> list[Status]:
    """Return the status of LocalQueues, from the workloads that were submitted to each."""
    numbers = read_numbers(cluster)
    names = {row.cluster_queue_name for row in rows}
    held = held_in([cluster.pk], names)[cluster.pk]
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
    if consumed := row.admission_fair_sharing.get("consumedResources"):
        status["fairSharing"] = {"weightedShare": 0, "admissionFairSharingStatus": _past_usage(row, consumed)}
    return status | {"pendingWorkloads": pending, "reservingWorkloads": reserving, "admittedWorkloads": admitted}


def _past_usage(row: LocalQueue, consumed: Mapping[str, float]) -> Status:
    """Return the usage that orders LocalQueues (admission fair sharing), as quantities."""
    since = datetime.fromtimestamp(row.admission_fair_sharing["lastUpdate"], UTC)
    amounts = {resource: round(used * (1000 if resource == "cpu" else 1)) for resource, used in consumed.items()}
    return {
        "consumedResources": {resource: format_amount(resource, amount) for resource, amount in amounts.items()},
        "lastUpdate": timestamp(since),
    }


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


_HELD: Final = """
    SELECT workload.cluster_id, workload.cluster_queue_name, workload.namespace, workload.queue_name,
        pod_set.flavors ->> usage.key, usage.key,
        sum(CHARGED_USAGE)::bigint,
        coalesce(sum(CHARGED_USAGE) FILTER (WHERE workload.admitted_at IS NOT NULL), 0)::bigint
    FROM queues_workload AS workload
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.cluster_id = ANY (%s) AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND workload.cluster_queue_name = ANY (%s) AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3, 4, 5, 6
""".replace("CHARGED_USAGE", CHARGED_USAGE)


def _no_amounts() -> defaultdict[str, defaultdict[Cell, int]]:
    return defaultdict(lambda: defaultdict(int))


@dataclass(frozen=True, slots=True)
class Held:
    """The usage of the workloads of some ClusterQueues of a cluster, by ClusterQueue and by LocalQueue
    (`namespace/name`): all that is reserved, and the part of it that is admitted."""

    reserved: Mapping[str, dict[Cell, int]] = field(default_factory=_no_amounts)
    admitted: Mapping[str, dict[Cell, int]] = field(default_factory=_no_amounts)


def held_in(clusters: Iterable[int], cluster_queues: Iterable[str]) -> Mapping[int, Held]:
    """Return the usage in the ClusterQueues of these names, by the primary key of the cluster."""
    found: dict[int, Held] = defaultdict(Held)
    with connection.cursor() as cursor:
        cursor.execute(_HELD, [list(clusters), sorted(set(cluster_queues))])
        for cluster, queue, namespace, local_queue, flavor, resource, reserved, admitted in cursor.fetchall():
            for name in (queue, f"{namespace}/{local_queue}"):
                found[cluster].reserved[name][flavor, resource] += reserved
                found[cluster].admitted[name][flavor, resource] += admitted
    return found


def flavor_usage(row: ClusterQueue, held: Mapping[Cell, int], *, with_borrowed: bool) -> list[dict[str, Any]]:
    """Write `flavorsReservation` or `flavorsUsage`: each flavor and resource of a ClusterQueue's groups, including
    unused ones."""
    flavors: dict[str, dict[str, int]] = {}
    for group in row.resource_groups.all():
        for quota in group.quotas.all():
            flavors.setdefault(quota.flavor, {})[quota.resource] = quota.nominal_quota
    return [
        {
            "name": flavor,
            "resources": [
                _resource(resource, held.get((flavor, resource), 0), nominal if with_borrowed else None)
                for resource, nominal in sorted(nominals.items())
            ],
        }
        for flavor, nominals in flavors.items()
    ]


def _resource(resource: str, used: int, nominal: int | None) -> dict[str, str]:
    found = {"name": resource, "total": format_amount(resource, used)}
    if nominal is not None:
        found["borrowed"] = format_amount(resource, max(0, used - nominal))
    return found
