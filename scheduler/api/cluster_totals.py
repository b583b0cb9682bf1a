"""Totals of clusters, and their backlogs: as many queries for several clusters as for one."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection
from django.db.models import Count, Sum

from accounts.services.reach import Reach
from queues.models import FlavorQuota, Workload
from queues.services.visibility import visibilities_of
from scheduler.api.queue_status import numbers_of

_DEVICES: Final = """
    SELECT node.cluster_id, count(DISTINCT node.id), count(device.id),
        count(device.id) FILTER (WHERE device.used_slots + device.external_slots > 0),
        coalesce(sum(device.slots), 0)::bigint, coalesce(sum(device.used_slots + device.external_slots), 0)::bigint,
        coalesce(sum(device.memory_mib), 0)::bigint,
        coalesce(sum(device.used_memory_mib + device.external_memory_mib), 0)::bigint,
        coalesce(sum(device.cores_percent), 0)::bigint,
        coalesce(sum(device.used_cores_percent + device.external_cores_percent), 0)::bigint
    FROM gpus_node AS node LEFT JOIN gpus_device AS device ON device.node_id = node.id
    WHERE node.cluster_id = ANY (%s) GROUP BY 1
"""
_DEVICE_TOTALS: Final = (
    "nodes", "devices", "devices_in_use", "slots", "used_slots", "memory_mib", "used_memory_mib", "cores_percent",
    "used_cores_percent",
)  # fmt: skip
_UNPUSHED: Final = """
    SELECT cluster_id, count(*), count(*) FILTER (WHERE push_error <> ''),
        extract(epoch FROM now() - min(updated_at))::float8
    FROM queues_workload WHERE cluster_id = ANY (%s) AND push_sequence > pushed_sequence GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class WorkloadTotals:
    """The unfinished workloads of a cluster that the user may see."""

    totals: Counter[str]
    """pending, held (back by their users), reserving, and of these admitted."""
    by_reason: Counter[str] = field(default_factory=Counter)
    """Pending workloads by reason."""

    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons, the most frequent first."""
        return sorted(self.by_reason.items(), key=lambda item: (-item[1], item[0]))


def workload_totals(reach: Reach) -> dict[int, WorkloadTotals]:
    """Count workloads by cluster."""
    none = dict.fromkeys(("pending", "held", "reserving", "admitted"), 0)
    found = {cluster.pk: WorkloadTotals(Counter(none)) for cluster in reach.clusters}
    rows = Workload.objects.filter(reach.rows_in_namespaces(), parent_name="").exclude(status="Finished").order_by()
    groups = rows.values_list("cluster_id", "status", "reason", "active").annotate(count=Count("pk"))
    for pk, status, reason, active, count in groups:
        totals = found[pk].totals
        if status in {"QuotaReserved", "Admitted"}:
            totals["reserving"] += count
            totals["admitted"] += count if status == "Admitted" else 0
        else:
            totals["pending" if active else "held"] += count
        if active and status in {"Pending", "Evicted"}:
            found[pk].by_reason[reason] += count
    return found


def device_totals(cluster_ids: Sequence[int]) -> dict[int, dict[str, int]]:
    """Count devices by cluster. Every user with a role in the cluster may see these counts."""
    found = {pk: dict.fromkeys(_DEVICE_TOTALS, 0) for pk in cluster_ids}
    with connection.cursor() as cursor:
        cursor.execute(_DEVICES, [list(cluster_ids)])
        for pk, *values in cursor.fetchall():
            found[pk] = dict(zip(_DEVICE_TOTALS, values, strict=True))
    return found


@dataclass(frozen=True, slots=True)
class PushState:
    """The number of decisions that have not been pushed to the cluster, and the age of the oldest."""

    unpushed: int = 0
    refused: int = 0
    lag_seconds: float = 0.0


def push_states(cluster_ids: Sequence[int]) -> dict[int, PushState]:
    """Return the states of the push by cluster; clusters without unpushed decisions are left out."""
    with connection.cursor() as cursor:
        cursor.execute(_UNPUSHED, [list(cluster_ids)])
        return {pk: PushState(*values) for pk, *values in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class Scarcest:
    """The resource and flavor with the largest used part of its quota. Amounts are in base units."""

    flavor: str
    resource: str
    nominal: int
    used: int


def scarcest_of(reach: Reach) -> dict[int, Scarcest]:
    """Return the scarcest quota by cluster, among the quotas that the user may see; clusters without quotas are left
    out. Of two equally scarce quotas, the first by name is returned. Amounts without a quota cannot be scarce."""
    numbers = numbers_of(reach.clusters)
    visible = visibilities_of(reach)
    whole = [cluster.pk for cluster in reach.clusters if reach.access(cluster.pk).sees_everything]
    shared: dict[int, dict[tuple[str, str], int]] = defaultdict(dict)
    cohorts = FlavorQuota.objects.filter(resource_group__cohort__cluster__in=whole).order_by()
    sums = cohorts.values_list("resource_group__cohort__cluster_id", "flavor", "resource")
    for pk, flavor, resource, nominal in sums.annotate(total=Sum("nominal_quota")):
        shared[pk][flavor, resource] = int(nominal)
    found: dict[int, Scarcest] = {}
    for pk, known in numbers.items():
        queues = [entry for name, entry in known.cluster_queues.items() if visible[pk].sees_queue(name)]
        scarcest = _scarcest(queues, shared[pk])
        if scarcest is not None:
            found[pk] = scarcest
    return found


def _scarcest(queues: Sequence[Mapping[str, Any]], shared: Mapping[tuple[str, str], int]) -> Scarcest | None:
    nominal, used = Counter(shared), Counter[tuple[str, str]]()
    for cell in (cell for queue in queues for cell in queue["usage"]):
        key = (cell["flavor"], cell["resource"])
        nominal[key] += cell["nominal"]
        used[key] += cell["used"]
    quotas = sorted(key for key, amount in nominal.items() if amount > 0)
    if not quotas:
        return None
    flavor, resource = max(quotas, key=lambda key: used[key] / nominal[key])
    return Scarcest(flavor, resource, nominal[flavor, resource], used[flavor, resource])
