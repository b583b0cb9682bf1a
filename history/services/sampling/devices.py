"""Samples the held part of the devices by tenant, and the measured use."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from foundation.time_series import Resolution
from history.models import Scope
from history.services.sampling.demand import devices_waited_for
from history.services.sampling.gathered import Devices, Gathered, Places, SubjectKey

IDLE_BELOW_PERCENT: Final = 1.0
"""A container that its device's monitor sees below this runs nothing there."""
_FRESH: Final = timedelta(seconds=4 * Resolution.RAW)
"""The age from which a reading does not describe the present."""

_HELD: Final = """
    SELECT namespace, local_queue, cluster_queue, submitted_by, flavor, sum(share),
        sum(share) FILTER (WHERE utilization_percent < %(idle_below)s), sum(share) FILTER (WHERE NOT measured),
        sum(memory_mib), sum(memory_used_mib), sum(cores_percent), sum(utilization_percent)
    FROM (
        SELECT slice.namespace, coalesce(workload.queue_name, '') AS local_queue,
            coalesce(workload.cluster_queue_name, '') AS cluster_queue,
            coalesce(workload.submitted_by, '') AS submitted_by,
            coalesce(kueueweb_device_flavor(pod_set.flavors), '') AS flavor, slice.memory_mib, slice.cores_percent,
            greatest(slice.memory_mib::float8 / greatest(device.memory_mib, 1),
                slice.cores_percent::float8 / greatest(device.cores_percent, 1)) AS share,
            reading.memory_used_mib, reading.utilization_percent, reading.utilization_percent IS NOT NULL AS measured
        FROM gpus_deviceallocation AS slice
            JOIN gpus_device AS device ON device.id = slice.device_id
            LEFT JOIN queues_workload AS workload ON workload.id = slice.workload_id
            LEFT JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id AND pod_set.name = slice.pod_set
            LEFT JOIN LATERAL (
                SELECT pod.name FROM queues_pod AS pod
                WHERE pod.workload_id = slice.workload_id AND pod.pod_set = slice.pod_set
                    AND pod.replica = slice.replica AND pod.phase IN ('Pending', 'Running')
                ORDER BY pod.id DESC LIMIT 1
            ) AS pod ON true
            LEFT JOIN LATERAL (
                SELECT sample.memory_used_mib, sample.utilization_percent FROM gpus_containersample AS sample
                WHERE sample.device_id = slice.device_id AND sample.namespace = slice.namespace
                    AND sample.pod_name = coalesce(pod.name, nullif(slice.pod_name, ''))
                    AND sample.container = slice.container AND sample.resolution = %(raw)s AND sample.at >= %(fresh)s
                ORDER BY sample.at DESC LIMIT 1
            ) AS reading ON true
        WHERE slice.cluster_id = %(cluster_id)s
    ) AS held
    GROUP BY 1, 2, 3, 4, 5
"""
_CAPACITY: Final = """
    SELECT count(*), coalesce(sum(memory_mib), 0), coalesce(sum(cores_percent), 0),
        coalesce(sum(greatest(free_memory, free_cores, 0)) FILTER (
            WHERE used_slots > 0 AND (free_slots <= 0 OR least(free_memory, free_cores) <= 0)), 0)
    FROM (
        SELECT device.memory_mib, device.cores_percent, device.used_slots + device.external_slots AS used_slots,
            device.slots - device.used_slots - device.external_slots AS free_slots,
            1 - (device.used_memory_mib + device.external_memory_mib)::float8 / greatest(device.memory_mib, 1)
                AS free_memory,
            1 - (device.used_cores_percent + device.external_cores_percent)::float8
                / greatest(device.cores_percent, 1) AS free_cores
        FROM gpus_device AS device JOIN gpus_node AS node ON node.id = device.node_id
        WHERE node.cluster_id = %(cluster_id)s
    ) AS each_device
"""


def gather_devices(cluster: Cluster, now: datetime, places: Places, found: Gathered) -> None:
    """Add all slices, ours and others, by scope and flavor; for the cluster, also its devices and their demand."""
    asked: dict[str, Any] = {
        "cluster_id": cluster.pk,
        "raw": int(Resolution.RAW),
        "fresh": now - _FRESH,
        "idle_below": IDLE_BELOW_PERCENT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CAPACITY, asked)
        devices, memory_mib, cores_percent, stranded = cursor.fetchone()
        if not devices:
            return
        whole = found.devices[SubjectKey(Scope.CLUSTER)]
        whole.devices, whole.devices_stranded = float(devices), float(stranded)
        whole.memory_mib, whole.cores_percent = float(memory_mib), float(cores_percent)
        cursor.execute(_HELD, asked)
        for namespace, local_queue, cluster_queue, user, flavor, *amounts in cursor.fetchall():
            add_devices(places, (namespace, local_queue, cluster_queue, user), flavor, amounts, found)
    held = sum(row.devices_held for key, row in found.devices.items() if key.scope is Scope.CLUSTER)
    whole.devices_demanded = held + devices_waited_for(cluster, whole.memory_mib / devices)


def add_devices(
    places: Places, where: tuple[str, str, str, str], flavor: str, amounts: Sequence[Any], found: Gathered
) -> None:
    """Add slices of devices to all scopes of their holder: `where` is its namespace, LocalQueue, ClusterQueue and user.

    `amounts` are whole devices held, idle and unmeasured, MiB held and used, percent of cores held and used.
    """
    for scope, name in _scopes(places, *where):
        _add(found.devices[SubjectKey(scope, name, flavor=flavor)], amounts)


def _scopes(
    places: Places, namespace: str, local_queue: str, cluster_queue: str, user: str
) -> Iterator[tuple[Scope, str]]:
    yield from places.scopes(namespace, local_queue, cluster_queue)
    if namespace:
        yield Scope.USER, f"{namespace}/{user}"


def _add(to: Devices, amounts: Sequence[Any]) -> None:
    share, idle, unmeasured, memory, memory_used, cores, cores_used = amounts
    to.devices_held += float(share)
    to.devices_idle += float(idle or 0)
    to.devices_unmeasured += float(unmeasured or 0)
    to.memory_held_mib += float(memory)
    to.cores_held_percent += float(cores)
    if memory_used is not None:
        to.memory_used_mib = (to.memory_used_mib or 0.0) + float(memory_used)
    if cores_used is not None:
        to.cores_used_percent = (to.cores_used_percent or 0.0) + float(cores_used)
