"""All cards of a node: every vendor's register annotation, or capacity, with link scores and cordons put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpus.annotations.errors import AnnotationError
from gpus.annotations.inventory import decode_cordoned, decode_devices, decode_pair_scores
from gpus.annotations.lock import plugin_answers
from scheduler.core.device import Device
from scheduler.core.device_vendor import NVIDIA, DeviceVendor, InventoryEncoding


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The cards of a node, the vendors whose plugin stopped answering, and what could not be read, by annotation."""

    devices: tuple[Device, ...]
    unhealthy_vendors: frozenset[str]
    problems: Mapping[str, str]


def node_devices(
    node: str,
    annotations: Mapping[str, str],
    capacity: Mapping[str, int],
    allocatable: Mapping[str, int],
    vendors: Iterable[DeviceVendor],
    now: float,
) -> NodeDevices:
    """Read a node's cards from its annotations and its capacity (whole units, cpu aside, by resource name).

    A vendor's annotation that can't be read gives no card of that vendor and a problem. `now` (seconds since the
    epoch) is for the handshake.
    """
    devices: list[Device] = []
    unhealthy: set[str] = set()
    problems: dict[str, str] = {}
    for vendor in sorted(vendors, key=lambda vendor: vendor.word):
        found = _vendor_devices(node, annotations, capacity, vendor, problems)
        if not found:
            continue
        devices.extend(found)
        handshake = annotations.get(vendor.annotations.handshake) if vendor.annotations.handshake else None
        if not plugin_answers(handshake, allocatable.get(vendor.resources.count, 0), now):
            unhealthy.add(vendor.word)
    cordoned = decode_cordoned(annotations.get(NVIDIA.annotations.cordon) or "")
    return NodeDevices(
        tuple(replace(device, cordoned=True) if device.uuid in cordoned else device for device in devices),
        frozenset(unhealthy),
        problems,
    )


def _vendor_devices(
    node: str,
    annotations: Mapping[str, str],
    capacity: Mapping[str, int],
    vendor: DeviceVendor,
    problems: dict[str, str],
) -> tuple[Device, ...]:
    if vendor.inventory is InventoryEncoding.CAPACITY:
        return devices_from_capacity(node, capacity, vendor)
    text = annotations.get(vendor.annotations.register)
    if not text:
        return ()
    try:
        devices = decode_devices(text, vendor)
    except AnnotationError as error:
        problems[vendor.annotations.register] = str(error)
        return ()
    scores = annotations.get(vendor.annotations.pair_scores) if vendor.annotations.pair_scores else None
    if not scores:
        return devices
    try:
        pairs = decode_pair_scores(scores)
    except AnnotationError as error:
        problems[vendor.annotations.pair_scores] = str(error)
        return devices
    return tuple(replace(device, pair_scores=pairs.get(device.uuid, {})) for device in devices)


def devices_from_capacity(node: str, capacity: Mapping[str, int], vendor: DeviceVendor) -> tuple[Device, ...]:
    """The cards that a node's capacity implies, for vendors that publish no list.

    Their number is the capacity of the count resource or, where the vendor counts cores, cores per card; memory is
    shared evenly.
    """
    shape = vendor.capacity
    if shape is None:
        return ()
    cores = capacity.get(vendor.resources.cores, 0) if shape.cards_from_cores else 0
    cards = cores // shape.cores_per_card if shape.cards_from_cores else capacity.get(vendor.resources.count, 0)
    if cards <= 0:
        return ()
    memory = shape.memory_mib or capacity.get(vendor.resources.memory, 0) * vendor.resources.memory_unit_mib // cards
    return tuple(
        Device(
            f"{node}-{shape.infix}-{number}",
            number,
            vendor.word,
            vendor.word,
            shape.slots,
            memory,
            shape.cores_per_card,
            mode="",
        )
        for number in range(cards)
    )
