"""Reads node and device rows into nodes of the rules, with foreign slices on their devices."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from gpus.annotations import count_scores
from gpus.models import AllocationSource, DeviceAllocation
from gpus.models import Node as NodeModel
from gpus.services.device_rows import read_device, read_mig_instance
from gpus.vendors import VENDORS
from scheduling.model.device import DeviceSlice
from scheduling.model.node import Node
from scheduling.model.selectors import Taint


def read_nodes(cluster_id: int, ids: Iterable[int] | None = None) -> list[tuple[NodeModel, Node]]:
    """Return the nodes of a cluster, or those named, each with its row (the row's devices are prefetched)."""
    return read_nodes_of([cluster_id], ids)


def read_nodes_of(cluster_ids: Sequence[int], ids: Iterable[int] | None = None) -> list[tuple[NodeModel, Node]]:
    """Return the same for several clusters, with as many queries as for one."""
    rows = NodeModel.objects.filter(cluster_id__in=cluster_ids)
    if ids is not None:
        rows = rows.filter(pk__in=list(ids))
    found: dict[int, list[DeviceAllocation]] = {}
    nodes = list(rows.prefetch_related("devices"))
    held = DeviceAllocation.objects.filter(source=AllocationSource.EXTERNAL, node__in=nodes).select_related("device")
    for allocation in held:
        found.setdefault(allocation.node_id, []).append(allocation)
    return [(row, _node(row, found.get(row.pk, ()))) for row in nodes]


def _node(row: NodeModel, found: Collection[DeviceAllocation]) -> Node:
    devices = tuple(read_device(device) for device in row.devices.all())
    return Node(
        name=row.name,
        labels=row.labels,
        taints=tuple(Taint.from_manifest(taint) for taint in row.taints),
        allocatable=row.allocatable,
        foreign_usage=row.foreign_usage,
        ready=row.ready,
        unschedulable=row.unschedulable or row.cordoned or row.draining,
        devices=devices,
        found=tuple(_slice(row.name, allocation) for allocation in found if allocation.device is not None),
        external_usage=_usage(found),
        count_scores=count_scores(row.annotations, VENDORS),
    )


def _usage(found: Iterable[DeviceAllocation]) -> dict[tuple[str, str], tuple[int, int]]:
    """Sum the usage of foreign pods for ResourceQuotas. HAMi does not count slices that it cannot read."""
    usage: dict[tuple[str, str], tuple[int, int]] = {}
    for allocation in found:
        if allocation.device is not None and not allocation.malformed:
            key = (allocation.namespace, allocation.device.vendor)
            memory_mib, cores = usage.get(key, (0, 0))
            usage[key] = (memory_mib + allocation.memory_mib, cores + allocation.cores_percent)
    return usage


def _slice(node: str, allocation: DeviceAllocation) -> DeviceSlice:
    """Return a foreign slice. An unreadable annotation counts as the whole device until an operator resolves it."""
    device = allocation.device
    assert device is not None  # the caller leaves out slices of devices that the node does not list
    whole = bool(allocation.malformed)
    return DeviceSlice(
        uuid=device.uuid,
        node=node,
        memory_mib=device.memory_mib if whole else allocation.memory_mib,
        cores_percent=device.cores_percent if whole else allocation.cores_percent,
        index=device.index,
        vendor=device.vendor,
        mig=None if whole else read_mig_instance(allocation.mig_instance),
        slots=device.slots if whole else max(allocation.slots, 1),
        qos_policy=allocation.qos_policy,
        app_class=allocation.app_class,
    )
