"""Maintains the counters of devices (`used_*`, `external_*`) as the sums of the stored slices."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

from django.db import connection
from psycopg import sql

_COUNTED: Final = sql.SQL(
    """
    WITH wanted AS (
        SELECT device.id FROM gpus_device AS device JOIN gpus_node AS node ON node.id = device.node_id
        WHERE {condition}
    ), of_container AS (
        SELECT slice.device_id, slice.workload_id, slice.pod_set, slice.replica,
            slice.container_index < coalesce(jsonb_array_length(nullif(
                coalesce(pod_set.template #> '{{spec,initContainers}}', 'null'), 'null')), 0) AS is_init,
            sum(slice.slots) AS slots, max(slice.slots) AS max_slots, sum(slice.memory_mib) AS memory_mib,
            sum(slice.cores_percent) AS cores_percent
        FROM gpus_deviceallocation AS slice JOIN wanted ON wanted.id = slice.device_id
        LEFT JOIN queues_podset AS pod_set
            ON pod_set.workload_id = slice.workload_id AND pod_set.name = slice.pod_set
        WHERE slice.source = 'decided'
        GROUP BY slice.device_id, slice.workload_id, slice.pod_set, slice.replica, slice.container_index, is_init
    ), of_pod AS (
        SELECT device_id,
            greatest(max(max_slots) FILTER (WHERE is_init), sum(slots) FILTER (WHERE NOT is_init)) AS slots,
            greatest(max(memory_mib) FILTER (WHERE is_init), sum(memory_mib) FILTER (WHERE NOT is_init)) AS memory_mib,
            greatest(max(cores_percent) FILTER (WHERE is_init), sum(cores_percent) FILTER (WHERE NOT is_init))
                AS cores_percent
        FROM of_container GROUP BY device_id, workload_id, pod_set, replica
    ), decided AS (
        SELECT device_id, sum(slots) AS slots, sum(memory_mib) AS memory_mib, sum(cores_percent) AS cores_percent
        FROM of_pod GROUP BY device_id
    ), external AS (
        SELECT slice.device_id, sum(slice.slots) AS slots, sum(slice.memory_mib) AS memory_mib,
            sum(slice.cores_percent) AS cores_percent
        FROM gpus_deviceallocation AS slice JOIN wanted ON wanted.id = slice.device_id
        WHERE slice.source = 'external' GROUP BY slice.device_id
    ), counted AS (
        SELECT wanted.id, coalesce(decided.slots, 0) AS used_slots, coalesce(decided.memory_mib, 0) AS used_memory_mib,
            coalesce(decided.cores_percent, 0) AS used_cores_percent, coalesce(external.slots, 0) AS external_slots,
            coalesce(external.memory_mib, 0) AS external_memory_mib,
            coalesce(external.cores_percent, 0) AS external_cores_percent
        FROM wanted LEFT JOIN decided ON decided.device_id = wanted.id
        LEFT JOIN external ON external.device_id = wanted.id
    )
    """
)
"""The sums of the slices of devices. As in HAMi, a pod counts with the larger of its largest init container and the
sum of its other containers."""
_UPDATE: Final = sql.SQL(
    """
    UPDATE gpus_device AS device SET used_slots = counted.used_slots, used_memory_mib = counted.used_memory_mib,
        used_cores_percent = counted.used_cores_percent, external_slots = counted.external_slots,
        external_memory_mib = counted.external_memory_mib, external_cores_percent = counted.external_cores_percent,
        updated_at = now()
    FROM counted WHERE device.id = counted.id AND {differs}
    """
)
_DIFFERS: Final = sql.SQL(
    """
    (device.used_slots, device.used_memory_mib, device.used_cores_percent, device.external_slots,
        device.external_memory_mib, device.external_cores_percent)
    IS DISTINCT FROM (counted.used_slots, counted.used_memory_mib, counted.used_cores_percent, counted.external_slots,
        counted.external_memory_mib, counted.external_cores_percent)
    """
)
_MISCOUNTED: Final = sql.SQL(
    """
    SELECT device.id, node.name, device.uuid,
        device.used_slots, device.used_memory_mib, device.external_slots, device.external_memory_mib,
        counted.used_slots, counted.used_memory_mib, counted.external_slots, counted.external_memory_mib
    FROM counted JOIN gpus_device AS device ON device.id = counted.id JOIN gpus_node AS node ON node.id = device.node_id
    WHERE {differs} ORDER BY device.id
    """
)
_BY_KEY: Final = sql.SQL("device.id = ANY(%s)")
_OF_CLUSTER: Final = sql.SQL("node.cluster_id = %s")


@dataclass(frozen=True, slots=True)
class Miscount:
    """A device whose counters differ from the sums of its slices."""

    device_id: int
    node: str
    uuid: str
    message: str


def recount(device_ids: Collection[int]) -> None:
    """Set the counters of these devices to the sums of their slices. The transaction must hold the cluster's row."""
    if not device_ids:
        return
    keys = sorted(device_ids)
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM gpus_device WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE", [keys])
        cursor.execute(_COUNTED.format(condition=_BY_KEY) + _UPDATE.format(differs=_DIFFERS), [keys])


def miscounts(cluster_id: int) -> list[Miscount]:
    """Return the devices of a cluster whose counters are wrong."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTED.format(condition=_OF_CLUSTER) + _MISCOUNTED.format(differs=_DIFFERS), [cluster_id])
        return [_miscount(*row) for row in cursor.fetchall()]


def _miscount(device_id: int, node: str, uuid: str, *amounts: Any) -> Miscount:
    shown, counted = amounts[:4], amounts[4:]
    names = ("used slots", "used MiB", "external slots", "external MiB")
    parts = [
        f"{name} {has} instead of {sums}" for name, has, sums in zip(names, shown, counted, strict=True) if has != sums
    ]
    return Miscount(device_id, node, uuid, "; ".join(parts) or "used or external cores are not those of its slices")
