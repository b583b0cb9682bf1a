"""Small builders for fleets of one vendor's devices: `devices(...)`, `place(...)`, and who holds what already."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from gpus.vendors import VENDORS
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import Device, DeviceRequest, DeviceSlice
from scheduling.model.node import Node
from scheduling.model.placement import (
    DeviceConstraints,
    Placement,
    PlacementRefusal,
    PodDeviceRequest,
    PodSetToPlace,
)
from scheduling.model.vendor import DeviceVendor

BY_WORD = {vendor.common_word: vendor for vendor in VENDORS}


def devices_of_vendor(vendor: DeviceVendor, count: int = 8, **fields: Any) -> list[Device]:
    """Devices of 1,000 MiB, one slot and 100 cores, numbered from 0."""
    made: Mapping[str, Any] = {"slots": 1, "memory_mib": 1000, "cores_percent": 100, "mode": "", **fields}
    return [
        Device(uuid=f"d{n}", index=n, vendor=vendor.common_word, type=vendor.common_word, **made) for n in range(count)
    ]


def node(name: str, devices: Iterable[Device], held: Iterable[DeviceSlice] = (), **fields: Any) -> Node:
    """A node with these devices, whose UUIDs get its name in front, and with slices of them that others hold."""
    named = tuple(_named(name, device) for device in devices)
    found = tuple(_held(name, part) for part in held)
    return Node(name, devices=named, found=found, **fields)


def whole(device: Device) -> DeviceSlice:
    """The whole of a device, in somebody's hands."""
    return DeviceSlice(
        device.uuid, "", device.memory_mib, device.cores_percent, device.index, device.vendor, slots=device.slots
    )


def ask(vendor: DeviceVendor, *requests: DeviceRequest, **constraints: Any) -> PodDeviceRequest:
    """A pod with one container per request."""
    return PodDeviceRequest(
        containers=tuple((request,) for request in requests),
        constraints=((vendor.common_word, DeviceConstraints(**constraints)),),
    )


def place(
    nodes: Sequence[Node], vendor: DeviceVendor, pod: PodDeviceRequest, **settings: Any
) -> Placement | PlacementRefusal:
    """Where one pod goes."""
    fleet = Fleet([vendor], **settings)
    for each in nodes:
        fleet.set_node(each)
    return fleet.place([PodSetToPlace("main", 1, devices=pod)])


def indexes(outcome: Placement | PlacementRefusal) -> list[int]:
    """The indexes of the devices that the pod got, sorted."""
    assert isinstance(outcome, Placement), outcome
    return sorted(part.index for part in outcome.pods[0].slices)


def where(outcome: Placement | PlacementRefusal) -> str:
    """The node that the pod got."""
    assert isinstance(outcome, Placement), outcome
    return outcome.pods[0].node


def why(outcome: Placement | PlacementRefusal, name: str = "n1") -> str:
    """The reason of a node."""
    assert isinstance(outcome, PlacementRefusal), outcome
    return outcome.reasons[name]


def _named(name: str, device: Device) -> Device:
    return Device(**{field: getattr(device, field) for field in Device.__slots__} | {"uuid": f"{name}-{device.uuid}"})


def _held(name: str, part: DeviceSlice) -> DeviceSlice:
    fields = {field: getattr(part, field) for field in DeviceSlice.__slots__}
    return DeviceSlice(**fields | {"uuid": f"{name}-{part.uuid}", "node": name})
