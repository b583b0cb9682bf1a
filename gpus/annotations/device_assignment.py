"""The annotations by which HAMi's device plugins give a pod the devices that were assigned to it.

`clusters/push/binder.py` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpus.annotations.allocation import (
    MIG_ALLOCATIONS,
    NODE,
    TIME,
    AllocatedDevice,
    MigAllocation,
    encode_containers,
    encode_mig_allocations,
)
from gpus.annotations.vendor_extras import Decision, vendor_extras, webhook_extras
from scheduling.model.device import Device, DeviceSlice
from scheduling.model.placement import PodPlacement
from scheduling.model.vendor import DeviceVendor

_RESERVED = re.compile(r"[,:;]")


def pod_annotations(
    pod: PodPlacement,
    vendors: Iterable[DeviceVendor],
    decided_at: float,
    *,
    manifest: Mapping[str, Any] | None = None,
    devices: Mapping[str, Device] | None = None,
) -> dict[str, str]:
    """Return the annotations with which the vendors' device plugins give a pod exactly these slices.

    Both keys of a vendor get the same value; every container has an entry, even an empty one. `decided_at` is in
    seconds since the epoch, `manifest` is the pod's own, and `devices` are those of the node by UUID, because some
    plugins need more than HAMi's does. Empty for a pod without devices, which HAMi does not handle.
    """
    if not pod.slices:
        return {}
    found = {NODE: pod.node, TIME: str(int(decided_at))}
    for decision in _decisions(pod, vendors, decided_at, manifest or {}, devices or {}):
        keys, entries = decision.vendor.annotations, [entry for _, entry in decision.entries]
        text = encode_containers([_allocated(decision, part) for part in entry] for entry in entries)
        found |= {key: text for key in (keys.to_allocate, keys.allocated) if key}
        found |= vendor_extras(decision)
        instances = [
            MigAllocation(number, position, part.uuid, part.mig)
            for number, entry in enumerate(entries)
            for position, part in enumerate(entry)
            if part.mig is not None
        ]
        if instances:
            found[MIG_ALLOCATIONS] = encode_mig_allocations(instances)
    return found


def pinned_devices(pod: PodPlacement, vendors: Iterable[DeviceVendor]) -> dict[str, str]:
    """Return the annotations that restrict HAMi's scheduler to these devices: their UUIDs, under the vendor's key for
    users.

    A vendor whose devices HAMi does not select by UUID gets none.
    """
    found: dict[str, str] = {}
    for vendor in vendors:
        uuids = sorted({part.uuid for part in pod.slices if part.vendor == vendor.common_word})
        keys = (vendor.annotations.use_uuid, vendor.annotations.other_use_uuid)
        found |= {key: ",".join(uuids) for key in keys if key and uuids}
    return found


def webhook_annotations(
    pod: PodPlacement, vendors: Iterable[DeviceVendor], manifest: Mapping[str, Any]
) -> dict[str, str]:
    """Return the annotations that HAMi's webhook, which our pods bypass, would have added for the device plugins."""
    found: dict[str, str] = {}
    for decision in _decisions(pod, vendors, 0, manifest, {}):
        found |= webhook_extras(decision)
    return found


def _decisions(
    pod: PodPlacement,
    vendors: Iterable[DeviceVendor],
    decided_at: float,
    manifest: Mapping[str, Any],
    devices: Mapping[str, Device],
) -> Iterable[Decision]:
    for vendor in vendors:
        entries = _entries(pod, vendor, devices)
        if any(entry for _, entry in entries):
            yield Decision(vendor, pod.node, entries, decided_at, manifest, devices)


def _entries(
    pod: PodPlacement, vendor: DeviceVendor, devices: Mapping[str, Device]
) -> list[tuple[int, Sequence[DeviceSlice]]]:
    """Return the slices of the vendor per container, with the container's number.

    HAMi leaves out containers without slices, unless the node has devices whose type is the vendor's word. Its
    plugin then confuses containers; we always write all entries.
    """
    word = vendor.common_word
    entries = [
        (number, [part for part in container if part.vendor == word]) for number, container in enumerate(pod.containers)
    ]
    if vendor.rules.as_hami and not any(vendor.hami_type(device.type) == word for device in devices.values()):
        return [(number, entry) for number, entry in entries if entry]
    return list(entries)


def _allocated(decision: Decision, part: DeviceSlice) -> AllocatedDevice:
    """Return one entry, with the vendor's word or, for some vendors, the device's model."""
    device = decision.device(part)
    model = device.type if decision.vendor.model_in_allocations and device is not None else ""
    word = model if model and not _RESERVED.search(model) else decision.vendor.common_word
    return AllocatedDevice(part.uuid, word, part.memory_mib, part.cores_percent)
