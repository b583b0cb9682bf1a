"""The devices of a node in HAMi's register annotations: JSON, or the older comma-and-colon string.

JSON leaves out every key that is zero, false or empty: an absent `health` means unhealthy, an absent `index` means
0. The position in the array has no meaning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from gpus.annotations.enflame import decode_devices_drs
from gpus.annotations.errors import AnnotationError
from gpus.annotations.json_text import load_json
from scheduling.model.device import HAMI_CORE_MODE, Device, MigPlacement, MigProfile
from scheduling.model.vendor import DeviceVendor, InventoryEncoding

_SEPARATORS = re.compile(r"[,:;]")
_TRUE, _FALSE = (
    frozenset({"1", "t", "T", "true", "TRUE", "True"}),
    frozenset({"0", "f", "F", "false", "FALSE", "False"}),
)
_INT32 = range(-(2**31), 2**31)


def decode_devices_json(text: str, vendor: str) -> tuple[Device, ...]:
    """Read a JSON register annotation. Raises AnnotationError, for the whole node, at the first malformed device."""
    return tuple(_device_from_object(entry, f"device {number}", vendor) for number, entry in enumerate(_objects(text)))


def decode_devices_string(text: str, vendor: str) -> tuple[Device, ...]:
    """Read a string register annotation: nine fields per device, or seven (index 0, mode hami-core).

    Raises AnnotationError, for the whole node, without a colon, or for a device with another number of fields.
    """
    if ":" not in text:
        raise AnnotationError("expected devices that end in a colon")
    devices = []
    for piece in text.split(":"):
        if "," not in piece:
            continue
        fields = piece.split(",")
        if len(fields) not in (7, 9):
            raise AnnotationError(f"a device has {len(fields)} fields instead of 7 or 9: {piece!r}")
        index, mode = (_integer(fields[7], "index"), fields[8]) if len(fields) == 9 else (0, HAMI_CORE_MODE)
        devices.append(
            Device(
                fields[0],
                index,
                vendor,
                fields[4],
                _integer(fields[1], "count"),
                _integer(fields[2], "devmem"),
                _integer(fields[3], "devcore"),
                _integer(fields[5], "numa"),
                mode,
                _boolean(fields[6], "health"),
            )
        )
    return tuple(devices)


_METAX_ATTRIBUTES = {"bdf": "bdf", "qosPolicy": "QosPolicy", "linkZone": "LinkZone"}


def decode_devices_metax(text: str, vendor: str) -> tuple[Device, ...]:
    """Read MetaX' `metax-tech.com/node-gpu-devices`; a device's index is its position. Raises AnnotationError."""
    devices = []
    for number, entry in enumerate(_objects(text)):
        where = f"device {number}"
        uuid = _text(entry, "uuid", where)
        if not uuid:
            raise AnnotationError(f"{where} has no uuid")
        extras = {name: str(entry[key]) for key, name in _METAX_ATTRIBUTES.items() if entry.get(key)}
        devices.append(
            Device(
                uuid,
                number,
                vendor,
                _text(entry, "model", where),
                _number(entry, "totalDevCount", where),
                _number(entry, "totalVRam", where),
                _number(entry, "totalCompute", where),
                _number(entry, "numa", where),
                "",
                _flag(entry, "healthy", where),
                attributes=extras,
            )
        )
    return tuple(devices)


def decode_devices(text: str, vendor: DeviceVendor, node: str) -> tuple[Device, ...]:
    """Read a vendor's register annotation on a node in its own encoding.

    Raises AnnotationError, also for invalid devices: names that are too long or contain control characters or
    separators of pod annotations, and negative numbers.
    """
    match vendor.inventory:
        case InventoryEncoding.DRS_JSON:
            devices = decode_devices_drs(text, vendor.common_word, node, as_hami=vendor.rules.as_hami)
        case InventoryEncoding.STRING:
            devices = decode_devices_string(text, vendor.common_word)
        case InventoryEncoding.METAX_JSON:
            devices = decode_devices_metax(text, vendor.common_word)
        case _:
            devices = decode_devices_json(text, vendor.common_word)
    if vendor.device_cores:
        devices = tuple(replace(device, cores_percent=vendor.device_cores) for device in devices)
    for device in devices:
        texts = ((device.uuid, 128), (device.type, 128), (device.mode, 32))
        if any(len(word) > most or not word.isprintable() for word, most in texts):
            raise AnnotationError(
                f"{device.uuid[:128]!r}, {device.type[:128]!r}, {device.mode[:32]!r}: not a valid device"
            )
        if _SEPARATORS.search(device.uuid):
            raise AnnotationError(
                f"{device.uuid!r} contains a separator (, : ;), which pod annotations cannot represent"
            )
        if min(device.index, device.slots, device.memory_mib, device.cores_percent) < 0:
            raise AnnotationError(f"a number of device {device.uuid} is negative")
    return devices


def decode_pair_scores(text: str) -> dict[str, dict[str, int]]:
    """Read `hami.io/node-nvidia-score`: UUID -> other UUID -> score. Raises AnnotationError."""
    scores: dict[str, dict[str, int]] = {}
    for number, entry in enumerate(_objects(text)):
        if not isinstance(entry.get("uuid"), str):
            raise AnnotationError(f"entry {number} has no uuid")
        pairs = entry.get("score") or {}
        if not isinstance(pairs, dict) or not all(_is_integer(score) for score in pairs.values()):
            raise AnnotationError(f"the scores of {entry['uuid']} are not integers by UUID")
        scores[entry["uuid"]] = pairs
    return scores


def decode_cordoned(text: str) -> frozenset[str]:
    """Read `hami.io/device-cordon`: UUIDs separated by commas."""
    return frozenset(uuid for uuid in (part.strip() for part in text.split(",")) if uuid)


def _objects(text: str) -> list[dict[str, Any]]:
    found = load_json(text)
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise AnnotationError("expected a JSON array of objects, one per device")
    return found


def _device_from_object(entry: dict[str, Any], where: str, vendor: str) -> Device:
    uuid = _text(entry, "id", where)
    if not uuid:
        raise AnnotationError(f"{where} has no id")
    return Device(
        uuid,
        _number(entry, "index", where),
        vendor,
        _text(entry, "type", where),
        _number(entry, "count", where),
        _number(entry, "devmem", where),
        _number(entry, "devcore", where),
        _number(entry, "numa", where),
        _text(entry, "mode", where),
        _flag(entry, "health", where),
        mig_profiles=tuple(_profile(item, where) for item in _array(entry, "migProfiles", where)),
        attributes=_attributes(entry),
    )


def _attributes(entry: Mapping[str, Any]) -> dict[str, str]:
    custom = entry.get("custominfo")
    if not isinstance(custom, dict):
        return {}
    return {str(key): str(value) for key, value in custom.items()}


def _profile(entry: object, where: str) -> MigProfile:
    if not isinstance(entry, dict):
        raise AnnotationError(f"a MIG profile of {where} is not an object")
    places = []
    for place in _array(entry, "placements", where):
        if not isinstance(place, dict):
            raise AnnotationError(f"a MIG placement of {where} is not an object")
        places.append(MigPlacement(_number(place, "start", where), _number(place, "size", where)))
    return MigProfile(
        _text(entry, "name", where),
        _number(entry, "memoryMB", where),
        _number(entry, "core", where),
        _number(entry, "sliceCount", where),
        tuple(places),
    )


def _number(entry: Mapping[str, Any], key: str, where: str) -> int:
    value = entry.get(key, 0)
    if not _is_integer(value):
        raise AnnotationError(f"{key} of {where} is not a 32-bit integer: {value!r}")
    return int(value)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value in _INT32


def _text(entry: Mapping[str, Any], key: str, where: str) -> str:
    value = entry.get(key, "")
    if not isinstance(value, str):
        raise AnnotationError(f"{key} of {where} is not a string: {value!r}")
    return value


def _flag(entry: Mapping[str, Any], key: str, where: str) -> bool:
    value = entry.get(key, False)
    if not isinstance(value, bool):
        raise AnnotationError(f"{key} of {where} is not true or false: {value!r}")
    return value


def _array(entry: Mapping[str, Any], key: str, where: str) -> Sequence[object]:
    value = entry.get(key) or []
    if not isinstance(value, list):
        raise AnnotationError(f"{key} of {where} is not an array: {value!r}")
    return value


def _integer(text: str, field: str) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text, re.ASCII) or int(text) not in _INT32:
        raise AnnotationError(f"{field} is not a 32-bit integer: {text!r}")
    return int(text)


def _boolean(text: str, field: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise AnnotationError(f"{field} is not true or false: {text!r}")
