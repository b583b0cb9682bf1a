"""Stores nodes and their devices as the cluster reports them.

Only differences are written, because each write of a node or device changes the configuration that decisions are
based on. Unchanged rows are locked without their keys: a batch of decisions inserts slices that refer to them while
it holds the configuration, for which a write here waits, so locking the keys too would deadlock.
"""

import json
import logging
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Final

from django.utils import timezone

from foundation.postgresql.instances import fetched_rows
from foundation.transactions import hardware_transaction
from gpus.annotations import NodeDevices, decode_cordoned, node_devices
from gpus.models import AllocationSource, Device, DeviceAllocation, Node
from gpus.services.counters import recount
from gpus.services.foreign_allocations import link_external
from gpus.services.node_status import ObservedNode
from gpus.vendors import VENDORS
from scheduling.model.device import Device as ObservedDevice
from scheduling.model.device import MigProfile
from scheduling.model.vendor import NVIDIA, DeviceVendor

_log = logging.getLogger(__name__)
_CORDON: Final = NVIDIA.annotations.cordon


def sync_node(
    cluster_id: int,
    observed: ObservedNode,
    vendors: Iterable[DeviceVendor] = VENDORS,
    now: datetime | None = None,
) -> bool:
    """Store a node and its devices as observed. Returns whether anything changed.

    Devices that the node no longer lists are removed, unless they have slices or are cordoned (they must still be
    cordoned when they return); those stay with `missing_since`. Devices of a vendor whose annotation is unreadable,
    or whose plugin stopped answering, become unhealthy.
    """
    now = now or timezone.now()
    devices = node_devices(
        observed.name,
        observed.annotations,
        observed.capacity,
        observed.allocatable,
        vendors,
        now.timestamp(),
        observed.labels,
    )
    for annotation, problem in devices.problems.items():
        _log.warning("Node %s: annotation %s: %s", observed.name, annotation, problem)
    with hardware_transaction(cluster_id):
        row = Node.objects.select_for_update(no_key=True).filter(cluster_id=cluster_id, name=observed.name).first()
        before = dict(row.annotations) if row else {}
        row, changed = _store_node(cluster_id, row, observed, now)
        named = decode_cordoned(before.get(_CORDON) or ""), decode_cordoned(observed.annotations.get(_CORDON) or "")
        devices_changed = _sync_devices(row, devices, named[0] ^ named[1], now)
        return devices_changed or changed


def forget_node(cluster_id: int, name: str, now: datetime | None = None, *, keeps_applied: bool = False) -> bool:
    """Remove a node that left the cluster. While slices that we assigned are held there it stays, not ready, its
    devices missing; with `keeps_applied`, so does a node that was applied as a manifest, even a moment ago."""
    with hardware_transaction(cluster_id):
        row = Node.objects.select_for_update().filter(cluster_id=cluster_id, name=name).first()
        if row is None:
            return False
        found = DeviceAllocation.objects.filter(node=row, source=AllocationSource.EXTERNAL)
        touched = set(found.filter(device__isnull=False).values_list("device_id", flat=True))
        found.delete()
        if DeviceAllocation.objects.filter(node=row).exists() or (keeps_applied and row.api_version):
            recount(touched)
            missing = row.devices.filter(missing_since__isnull=True).update(missing_since=now or timezone.now())
            was_ready = Node.objects.filter(pk=row.pk, ready=True).update(ready=False)
            return bool(missing or was_ready)
        row.delete()
        return True


_STORED_USAGE: Final = (
    "SELECT id, name, foreign_usage::text, unplaced_usage::text FROM gpus_node WHERE cluster_id = %s ORDER BY id"
)
Usage = Mapping[str, Mapping[str, int]]
"""Node -> resource -> amount in base units, and `pods`."""


def sync_foreign_usage(cluster_id: int, usage: Usage, unplaced: Usage) -> bool:
    """Set the amounts that pods without a place of ours request of each node, and the part of them that pods of our
    workloads request; omitted nodes have none."""
    if not _with_other_usage(cluster_id, usage, unplaced):
        return False  # as nearly always: then no batch and no edit waits for the cluster's row
    with hardware_transaction(cluster_id):
        list(Node.objects.select_for_update(no_key=True).filter(cluster_id=cluster_id).order_by("pk").values_list("pk"))
        differing = _with_other_usage(cluster_id, usage, unplaced)
        for key, wanted in differing.items():
            Node.objects.filter(pk=key).update(foreign_usage=wanted[0], unplaced_usage=wanted[1])
    return bool(differing)


def _with_other_usage(
    cluster_id: int, usage: Usage, unplaced: Usage
) -> dict[int, tuple[dict[str, int], dict[str, int]]]:
    """Return the usage of each node whose row has another one, by the key of the row, in order."""
    found: dict[int, tuple[dict[str, int], dict[str, int]]] = {}
    for key, name, *stored in fetched_rows(_STORED_USAGE, [cluster_id]):
        wanted = (dict(usage.get(name, {})), dict(unplaced.get(name, {})))
        if tuple(map(json.loads, stored)) != wanted:  # orjson reads a sum beyond 64 bits as another number
            found[key] = wanted
    return found


def _store_node(cluster_id: int, row: Node | None, observed: ObservedNode, now: datetime) -> tuple[Node, bool]:
    wanted: dict[str, Any] = {
        "uid": observed.uid,
        "labels": dict(observed.labels),
        "annotations": observed.lasting_annotations,
        "taints": [dict(taint) for taint in observed.taints],
        "allocatable": dict(observed.allocatable),
        "capacity": dict(observed.capacity),
        "ready": observed.ready,
        "conditions": [dict(condition) for condition in observed.conditions],
        "unschedulable": observed.unschedulable,
    }
    if row is None:
        created_at = observed.created_at or now
        return Node.objects.create(cluster_id=cluster_id, name=observed.name, created_at=created_at, **wanted), True
    differing = {name: value for name, value in wanted.items() if getattr(row, name) != value}
    if differing:
        Node.objects.filter(pk=row.pk).update(updated_at=now, **differing)
    return row, bool(differing)


def _sync_devices(row: Node, devices: NodeDevices, recordoned: frozenset[str], now: datetime) -> bool:
    """Store the devices of a node. `recordoned` are devices whose cordon in the node's annotation changed; the
    cordons of others are left alone, because an operator may have set them."""
    present = {device.uuid: device for device in row.devices.select_for_update(no_key=True).order_by("pk")}
    observed = {device.uuid: device for device in devices.devices}
    changed = False
    for uuid, device in present.items():
        if uuid in observed:
            wanted = _columns(observed[uuid], devices, None if uuid in recordoned else device.cordoned)
            changed |= _update(device, {**wanted, "missing_since": None}, now)
        elif devices.problems and device.vendor not in {found.vendor for found in devices.devices}:
            changed |= _update(device, {"healthy": False}, now)
        else:
            changed |= _retire(device, now)
    new = [
        Device(node=row, uuid=uuid, **_columns(device, devices, None))
        for uuid, device in observed.items()
        if uuid not in present
    ]
    if new:
        Device.objects.bulk_create(new)
        recount(link_external(row))
    return changed or bool(new)


def _update(device: Device, wanted: Mapping[str, Any], now: datetime) -> bool:
    differing = {name: value for name, value in wanted.items() if getattr(device, name) != value}
    if differing:
        Device.objects.filter(pk=device.pk).update(updated_at=now, **differing)
    return bool(differing)


def _retire(device: Device, now: datetime) -> bool:
    if device.cordoned or device.draining or device.allocations.exists():
        return device.missing_since is None and _update(device, {"missing_since": now}, now)
    device.delete()
    return True


def _columns(device: ObservedDevice, devices: NodeDevices, cordoned: bool | None) -> dict[str, Any]:
    return {
        "index": device.index,
        "vendor": device.vendor,
        "type": device.type,
        "slots": device.slots,
        "memory_mib": device.memory_mib,
        "cores_percent": device.cores_percent,
        "numa": device.numa,
        "mode": device.mode,
        "healthy": device.health and device.vendor not in devices.unhealthy_vendors,
        "cordoned": device.cordoned if cordoned is None else cordoned,
        "mig_profiles": [_mig_profile(profile) for profile in device.mig_profiles],
        "custom_info": dict(device.attributes),
        "pair_scores": dict(device.pair_scores),
    }


def _mig_profile(profile: MigProfile) -> dict[str, Any]:
    return {
        "name": profile.name,
        "memory_mib": profile.memory_mib,
        "cores_percent": profile.cores_percent,
        "slice_count": profile.slice_count,
        "placements": [{"start": place.start, "size": place.size} for place in profile.placements],
    }
