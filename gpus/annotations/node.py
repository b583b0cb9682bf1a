"""All devices of a node, from every vendor's register annotation or from capacity, with link scores and cordons."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from gpus.annotations.errors import AnnotationError
from gpus.annotations.inventory import decode_cordoned, decode_devices, decode_pair_scores
from gpus.annotations.json_text import load_json
from gpus.annotations.lock import plugin_answers
from scheduling.model.device import HARD_SPLIT, SOFT_SPLIT, SPLIT, Device
from scheduling.model.node import CountScores
from scheduling.model.vendor import NVIDIA, DeviceVendor, InventoryEncoding

NO_LABELS: Final[Mapping[str, str]] = {}
_LARGEST: Final = 2**31
_MAX_BITS: Final = 16
"""More cores than any device has whose cores are a bit mask."""
_COUNT: Final = re.compile(r"[0-9]{1,9}", re.ASCII)


@dataclass(frozen=True, slots=True)
class NodeDevices:
    """The devices of a node, the vendors whose plugin stopped answering, and problems by annotation."""

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
    labels: Mapping[str, str] = NO_LABELS,
) -> NodeDevices:
    """Read a node's devices from its annotations, labels and capacity (whole units, by resource name).

    An unreadable annotation of a vendor gives no device of that vendor, and a problem. `now` (seconds since the
    epoch) is for the handshake. If the kubelet offers none of a vendor's resource any more, the plugin counts as
    dead whatever the handshake says, because no pod with such devices would start there (HAMi checks this for
    NVIDIA).
    """
    devices: list[Device] = []
    unhealthy: set[str] = set()
    problems: dict[str, str] = {}
    for vendor in sorted(vendors, key=lambda vendor: vendor.common_word):
        found = _vendor_devices(node, annotations, capacity, labels, vendor, problems)
        if not found:
            continue
        devices.extend(found)
        handshake = annotations.get(vendor.annotations.handshake) if vendor.annotations.handshake else None
        offered = allocatable.get(vendor.resources.count)
        if offered == 0 or not plugin_answers(handshake, offered or 0, now):
            unhealthy.add(vendor.common_word)
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
    labels: Mapping[str, str],
    vendor: DeviceVendor,
    problems: dict[str, str],
) -> tuple[Device, ...]:
    if vendor.inventory is InventoryEncoding.CAPACITY:
        return devices_from_capacity(node, capacity, vendor, labels)
    text = annotations.get(vendor.annotations.register)
    if not text:
        return ()
    try:
        devices = decode_devices(text, vendor, node)
    except AnnotationError as error:
        problems[vendor.annotations.register] = str(error)
        return ()
    if vendor.rules.split_modes:
        devices = tuple(_split(device, annotations.get(vendor.annotations.split), vendor) for device in devices)
    scores = annotations.get(vendor.annotations.pair_scores) if vendor.annotations.pair_scores else None
    if not scores:
        return devices
    try:
        pairs = decode_pair_scores(scores)
    except AnnotationError as error:
        problems[vendor.annotations.pair_scores] = str(error)
        return devices
    return tuple(replace(device, pair_scores=pairs.get(device.uuid, {})) for device in devices)


def count_scores(annotations: Mapping[str, str], vendors: Iterable[DeviceVendor]) -> dict[str, CountScores]:
    """Return a node's own score tables for taking a number of its devices, by vendor word. Unreadable ones are left
    out."""
    found = {}
    for vendor in vendors:
        keys = vendor.annotations
        texts = [annotations.get(key, "") if key else "" for key in (keys.count_losses, keys.count_scores)]
        if any(texts):
            found[vendor.common_word] = CountScores(*(_count_table(text) if text else None for text in texts))
    return found


def _count_table(text: str) -> dict[int, int]:
    """Read `{"1": 100, "2": 200}`: number of devices -> score."""
    try:
        found = load_json(text)
    except AnnotationError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        int(count): amount
        for count, amount in found.items()
        if _COUNT.fullmatch(count) and isinstance(amount, int) and abs(amount) < _LARGEST
    }


def _split(device: Device, override: str | None, vendor: DeviceVendor) -> Device:
    """Return the device with its split mode: the node's, else the one in the vendor's settings.

    Softly split devices are shared in percent of their cores, whatever their number; HAMi's scores still use that
    number.
    """
    soft = vendor.rules.soft_split if override not in ("true", "false") else override == "true"
    attributes = {**device.attributes, SPLIT: SOFT_SPLIT if soft else HARD_SPLIT}
    by_chip = vendor.model is not None and device.cores_percent == vendor.model.cores
    percent = soft and by_chip and not vendor.rules.as_hami
    return replace(device, attributes=attributes, cores_percent=100 if percent else device.cores_percent)


def devices_from_capacity(
    node: str, capacity: Mapping[str, int], vendor: DeviceVendor, labels: Mapping[str, str] = NO_LABELS
) -> tuple[Device, ...]:
    """Derive the devices that a node's capacity implies, for vendors that publish no list.

    Their number is the capacity of the count resource. If the vendor counts cores, it is the cores divided by cores per
    device, rounded up. Memory is divided evenly.
    """
    shape, names, word = vendor.capacity, vendor.resources, vendor.common_word
    if shape is None:
        return ()
    cores, per_device = capacity.get(names.cores, 0), shape.cores_per_device
    count = -(-cores // per_device) if shape.devices_from_cores else capacity.get(names.count, 0)
    if count <= 0:
        return ()
    family = labels.get(shape.family_label) if shape.family_label else None
    memory = shape.memory_mib or capacity.get(names.memory, 0) * names.memory_unit_mib // count
    if shape.devices_from_cores and not shape.memory_mib:
        memory = capacity.get(names.memory, 0) * names.memory_unit_mib * per_device // cores
    if shape.cores_are_bits:
        per_device = min(cores // count or per_device, _MAX_BITS)
    return tuple(
        Device(
            f"{node}-{shape.infix}-{number}",
            number,
            word,
            word,
            per_device if shape.cores_are_bits else shape.slots,
            memory,
            (1 << per_device) - 1 if shape.cores_are_bits else per_device,
            numa=int(shape.two_numa_nodes and number >= count // 2),
            mode="",
            attributes={vendor.rules.family_attribute: family} if family else {},
        )
        for number in range(count)
    )
