"""The number of devices that waiting workloads request, counted like held slices."""

from collections.abc import Mapping
from typing import Any, Final

import orjson
from django.db import connection

from accounts.models import Cluster
from gpus.manifests.vendor_settings import configured_vendors
from gpus.vendors import VENDORS
from scheduling.model.vendor import VendorResources

_WAITING: Final = """
    SELECT pod_set.requests, sum(pod_set.count)::bigint
    FROM queues_podset AS pod_set JOIN queues_workload AS workload ON workload.id = pod_set.workload_id
    WHERE workload.cluster_id = %s AND workload.status IN ('Pending', 'Evicted') AND workload.active
        AND workload.parent_name = ''
    GROUP BY 1
"""
_WHOLE: Final = 100
"""Percent of a device."""


def devices_waited_for(cluster: Cluster, mean_memory_mib: float) -> float:
    """Return the number of devices that waiting workloads request; workloads on hold and variants do not count.

    `mean_memory_mib` is the mean memory of a device of the cluster. A slice counts as the larger of its shares of
    memory and cores, like a held one; a slice that names neither is a whole device. Memory in MiB is compared with the
    mean device, because the slice's device is not known yet.
    """
    settings = cluster.device_plugin_configuration.get("settings") or {}
    resources = [vendor.resources for vendor in configured_vendors(settings, VENDORS)]
    with connection.cursor() as cursor:
        cursor.execute(_WAITING, [cluster.pk])
        rows: list[tuple[Any, int]] = cursor.fetchall()
    return sum(
        float(pods) * devices_of_pod(orjson.loads(requests), resources, mean_memory_mib) for requests, pods in rows
    )


def devices_of_pod(requests: Mapping[str, int], resources: list[VendorResources], mean_memory_mib: float) -> float:
    """Return the number of devices that a pod requests, counted like held slices; `requests` are in base units."""
    return sum(
        float(requests[names.count]) * _share(requests, names, mean_memory_mib)
        for names in resources
        if requests.get(names.count)
    )


def _share(requests: Mapping[str, int], names: VendorResources, mean_memory_mib: float) -> float:
    """Return the part of a device that each of the pod's slices requests; 1 without memory and cores."""
    shares = [
        requests.get(names.memory, 0) * names.memory_unit_mib / max(mean_memory_mib, 1),
        requests.get(names.memory_percentage, 0) / _WHOLE,
        requests.get(names.cores, 0) / _WHOLE,
    ]
    return min(1.0, max(shares)) or 1.0
