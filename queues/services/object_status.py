"""Kueue's `status` of the objects that manifests show: who waits, what is held, and whether a queue is active."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from queues.models import ClusterQueue, PodSet, Workload
from queues.services.admission_rows import read_topology_assignment
from scheduling.model.quantity import format_amount, format_amounts
from scheduling.model.topology_encoding import encode

Status = dict[str, Any]
Cell = tuple[str, str]
"""(flavor, resource)"""

STATUS_READERS: Final[dict[str, Callable[[Cluster, Sequence[Any]], list[Status]]]] = {}
"""Kind -> the statuses of rows of it, in their order. The engine, which knows them, adds itself at the start."""

_HELD: Final = """
    SELECT workload.cluster_queue_name, workload.namespace, workload.queue_name,
        pod_set.flavors ->> usage.key, usage.key,
        sum(usage.value::numeric)::bigint,
        coalesce(sum(usage.value::numeric) FILTER (WHERE workload.admitted_at IS NOT NULL), 0)::bigint
    FROM queues_workload AS workload
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND workload.cluster_queue_name = ANY (%s) AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3, 4, 5
"""


class Held:
    """What the workloads of some ClusterQueues hold, by ClusterQueue and by LocalQueue."""

    def __init__(self, cluster: Cluster, cluster_queues: Iterable[str]) -> None:
        self.reserved: dict[str, dict[Cell, int]] = defaultdict(lambda: defaultdict(int))
        self.admitted: dict[str, dict[Cell, int]] = defaultdict(lambda: defaultdict(int))
        with connection.cursor() as cursor:
            cursor.execute(_HELD, [cluster.pk, sorted(set(cluster_queues))])
            for queue, namespace, local_queue, flavor, resource, reserved, admitted in cursor.fetchall():
                for name in (queue, f"{namespace}/{local_queue}"):
                    self.reserved[name][flavor, resource] += reserved
                    self.admitted[name][flavor, resource] += admitted


def flavor_usage(row: ClusterQueue, held: Mapping[Cell, int], *, with_borrowed: bool) -> list[dict[str, Any]]:
    """`flavorsReservation` or `flavorsUsage`: each flavor and resource of a ClusterQueue's groups, also unused ones."""
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


def workload_status(row: Workload) -> Status:
    """Of a row whose pod sets are prefetched: `admission`, conditions, admission checks and requeues."""
    pod_sets = sorted(row.pod_sets.all(), key=lambda found: found.position)
    status: Status = {}
    if row.quota_reserved_at is not None:
        status["admission"] = {
            "clusterQueue": row.cluster_queue_name,
            "podSetAssignments": [_assignment(pod_set) for pod_set in pod_sets],
        }
    if row.conditions:
        status["conditions"] = row.conditions
    if row.admission_check_states:
        status["admissionChecks"] = row.admission_check_states
    if row.requeue_count or row.requeue_at:
        at = {"requeueAt": timestamp(row.requeue_at)} if row.requeue_at else {}
        status["requeueState"] = {"count": row.requeue_count} | at
    reclaimable = [
        {"name": pod_set.name, "count": pod_set.reclaimable_count} for pod_set in pod_sets if pod_set.reclaimable_count
    ]
    if reclaimable:
        status["reclaimablePods"] = reclaimable
    if row.accumulated_execution_seconds:
        status["accumulatedPastExecutionTimeSeconds"] = row.accumulated_execution_seconds
    if row.eviction_counts:
        status["schedulingStats"] = {"evictions": row.eviction_counts}
    if row.unhealthy_nodes:
        status["unhealthyNodes"] = [{"name": name} if isinstance(name, str) else name for name in row.unhealthy_nodes]
    return status


def _assignment(pod_set: PodSet) -> dict[str, Any]:
    count = pod_set.count if pod_set.admitted_count is None else pod_set.admitted_count
    found: dict[str, Any] = {
        "name": pod_set.name,
        "flavors": dict(pod_set.flavors),
        "resourceUsage": format_amounts(pod_set.resource_usage),
        "count": count,
    }
    assigned = read_topology_assignment(pod_set.topology_assignment)
    if assigned is not None:
        found["topologyAssignment"] = encode(assigned)
    return found


def timestamp(at: Any) -> str:
    """A time as Kubernetes writes it."""
    return str(at.strftime("%Y-%m-%dT%H:%M:%SZ"))


def server_metadata(row: Any) -> dict[str, Any]:
    """What an API server adds to the metadata of an object."""
    found: dict[str, Any] = {"uid": str(row.uid), "resourceVersion": str(row.generation), "generation": row.generation}
    found["creationTimestamp"] = timestamp(row.created_at)
    if row.deletion_requested_at is not None:
        found["deletionTimestamp"] = timestamp(row.deletion_requested_at)
    return found
