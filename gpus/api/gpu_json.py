"""Rows of gpus -> our JSON; slices of tenants that the user may not see are only shown as occupied."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db.models import Count, F, QuerySet, Sum

from accounts.services.reach import Reach
from gpus.models import Device, DeviceAllocation
from gpus.services.device_rows import read_device
from gpus.units import DeviceAmounts, device_amounts, mig_places
from scheduling.model.quantity import format_amounts

_NODE_FIELDS: Final = (
    "name", "labels", "taints", "ready", "conditions", "unschedulable", "cordoned", "draining", "created_at",
    "updated_at",
)  # fmt: skip
_SLICE_FIELDS: Final = (
    "id", "cluster_id", "device_id", "device_uuid", "source", "pod_set", "replica", "container", "namespace",
    "pod_name", "memory_mib", "cores_percent", "mig_instance", "created_at", "workload__namespace",
    "workload__name", "node__name",
)  # fmt: skip
_DEVICE_FIELDS: Final = (
    "uuid", "index", "vendor", "type", "mode", "numa", "healthy", "cordoned", "draining", "slots", "memory_mib",
    "cores_percent", "missing_since",
)  # fmt: skip
_AMOUNTS: Final = ("slots", "memory_mib", "cores_percent")


def nodes_json(rows: Iterable[Any], reach: Reach) -> list[dict[str, Any]]:
    """Nodes, with their devices summed up in one query."""
    rows = list(rows)
    totals = _device_totals([row.pk for row in rows])
    return [
        {field: getattr(row, field) for field in _NODE_FIELDS}
        | {
            "cluster": reach.name(row.cluster_id),
            "capacity": format_amounts(row.capacity),
            "allocatable": format_amounts(row.allocatable),
            "foreign_usage": format_amounts(row.foreign_usage),
            "device_totals": totals[row.pk],
        }
        for row in rows
    ]


def devices_json(devices: Iterable[Device], reach: Reach) -> list[dict[str, Any]]:
    """Devices (with their `node`), and the slices of all of them in one query."""
    devices = list(devices)
    slices: dict[int, list[dict[str, Any]]] = defaultdict(list)
    held = DeviceAllocation.objects.filter(device_id__in=[device.pk for device in devices])
    for row in slice_values(held).order_by("id"):
        slices[row["device_id"]].append(_slice_json(row, reach))
    return [
        {field: getattr(device, field) for field in _DEVICE_FIELDS}
        | {f"used_{name}": getattr(device, f"used_{name}") + getattr(device, f"external_{name}") for name in _AMOUNTS}
        | {
            "cluster": reach.name(device.node.cluster_id),
            "node": device.node.name,
            "slices": slices[device.pk],
            "units": _units(device, slices[device.pk]),
        }
        | _mig_places(device)
        for device in devices
    ]


def _mig_places(device: Device) -> dict[str, int]:
    places = mig_places(read_device(device))
    return {"mig_places": places} if places else {}


def _units(device: Device, slices: Iterable[Mapping[str, Any]]) -> DeviceAmounts:
    used = device.used_cores_percent + device.external_cores_percent
    memories = [each["memory_mib"] for each in slices]
    return device_amounts(device.vendor, device.mode, device.custom_info, device.cores_percent, used, memories)


def slice_values(allocations: QuerySet[DeviceAllocation]) -> Any:
    """Return the columns that a slice's JSON needs, as dicts."""
    return allocations.values(*_SLICE_FIELDS)


def _slice_json(row: Mapping[str, Any], reach: Reach) -> dict[str, Any]:
    """Return a slice; without its holder if that is in none of the user's namespaces."""
    namespace = row["workload__namespace"] or row["namespace"]
    name = row["workload__name"] or row["pod_name"]
    namespaces = reach.access(row["cluster_id"]).visible_namespaces()
    visible = namespaces is None or namespace in namespaces
    return {
        "workload": f"{namespace}/{name}" if visible and name else None,
        "namespace": namespace if visible else None,
        "pod_set": row["pod_set"] if visible else "",
        "replica": row["replica"] if visible else 0,
        "container": row["container"] if visible else "",
        "source": row["source"],
        "memory_mib": row["memory_mib"],
        "cores_percent": row["cores_percent"],
        **({"mig": [row["mig_instance"]]} if row["mig_instance"] else {}),
    }


def allocation_json(row: Mapping[str, Any], reach: Reach) -> dict[str, Any]:
    """Return a slice with its device and node."""
    place = {"id": row["id"], "node": row["node__name"], "device": row["device_uuid"], "created_at": row["created_at"]}
    return {**_slice_json(row, reach), **place, "cluster": reach.name(row["cluster_id"])}


def _device_totals(nodes: list[int]) -> dict[int, dict[str, int]]:
    empty = {"devices": 0} | {name: 0 for amount in _AMOUNTS for name in (amount, f"used_{amount}")}
    totals = {node: dict(empty) for node in nodes}
    sums = {f"total_{amount}": Sum(amount) for amount in _AMOUNTS}
    sums |= {f"total_used_{amount}": Sum(F(f"used_{amount}") + F(f"external_{amount}")) for amount in _AMOUNTS}
    grouped: Any = Device.objects.filter(node_id__in=nodes).order_by().values("node_id")
    for row in grouped.annotate(total_devices=Count("id"), **sums):
        node = row.pop("node_id")
        totals[node] = {name.removeprefix("total_"): value for name, value in row.items()}
    return totals
