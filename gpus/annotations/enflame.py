"""Enflame's DRS slices: the devices of a node with their numbers of slices, and the profiles that they may be cut into.

`{"devices": [{"index": "0", "minor": "0", "capacity": 6}], "profiles": {"1g.6gb": "0", "3g.20gb": "1"}}`: the name of a
profile contains its slices and its memory in GiB, and its value is the device plugin's identifier.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpus.annotations.errors import AnnotationError
from gpus.annotations.json_text import load_json
from scheduling.model.device import Device, DeviceSlice, MigProfile

ASSIGNED_CONTAINERS = "assigned-containers"
MINOR = "Minor"
_PROFILE_ID = "ProfileID:"
_PROFILE = re.compile(r"([1-9][0-9]{0,3})g\.([1-9][0-9]{0,5})gb", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_GIB = 1024


def decode_devices_drs(text: str, vendor: str, node: str, *, as_hami: bool = False) -> tuple[Device, ...]:
    """Read `enflame.com/gcu-drs-capacity`. A device's UUID is `<node>-enflame-drs-<index>`. Raises AnnotationError.

    A device has the memory of the largest profile. A profile's cores are its share of the slices of the largest,
    rounded up. So that all slices can be assigned one by one, a device counts as many cores as all its slices can
    have; in HAMi (`as_hami`) it has 100.
    """
    found = _object(text)
    profiles = _profiles(found.get("profiles"))
    entries = found.get("devices")
    if not isinstance(entries, list):
        raise AnnotationError("devices is not an array")
    devices = (_device(entry, f"device {number}", profiles, vendor, node) for number, entry in enumerate(entries))
    return tuple(replace(device, cores_percent=100) if as_hami else device for device in devices)


def assigned_slices(text: str) -> dict[str, int]:
    """Read a pod's `assigned-containers`: how many slices each container holds, by name. Raises AnnotationError."""
    found = {}
    for name, entry in _object(text).items():
        if not isinstance(entry, dict):
            raise AnnotationError(f"the assignment of container {name} is not an object")
        found[name] = _number(entry.get("request"), f"request of container {name}")
    return found


def profile_id(device: Device, name: str) -> str:
    """Return the device plugin's identifier of a profile."""
    return device.attributes.get(_PROFILE_ID + name, "")


def held_profile(device: Device, part: DeviceSlice) -> MigProfile | None:
    """Return the profile of a slice of the device, by its memory and cores; None if none matches."""
    held = (part.memory_mib, part.cores_percent)
    return next((each for each in device.mig_profiles if (each.memory_mib, each.cores_percent) == held), None)


def _object(text: str) -> dict[str, Any]:
    found = load_json(text)
    if not isinstance(found, dict):
        raise AnnotationError("expected a JSON object")
    return found


def _profiles(found: object) -> dict[tuple[str, int, int], str]:
    """(name, slices, MiB) -> identifier."""
    if not isinstance(found, dict):
        raise AnnotationError("profiles is not an object")
    profiles = {}
    for name, identifier in found.items():
        match = _PROFILE.fullmatch(name)
        if match is None:
            raise AnnotationError(f"{name!r} is not a profile such as 1g.6gb")
        if not isinstance(identifier, str):
            raise AnnotationError(f"the identifier of profile {name} is not a string: {identifier!r}")
        profiles[name, int(match[1]), int(match[2]) * _GIB] = identifier
    return profiles


def _device(entry: object, where: str, ids: Mapping[tuple[str, int, int], str], vendor: str, node: str) -> Device:
    if not isinstance(entry, dict):
        raise AnnotationError(f"{where} is not an object")
    index, minor = (_number(entry.get(key), f"{key} of {where}") for key in ("index", "minor"))
    slices = _number(entry.get("capacity"), f"capacity of {where}")
    largest = max((count for _, count, _ in ids), default=0)
    profiles = tuple(
        MigProfile(name, memory, -(-100 * count // largest), count, ())
        for name, count, memory in sorted(ids, key=lambda profile: profile[1:])
    )
    return Device(
        f"{node}-enflame-drs-{index}",
        index,
        vendor,
        vendor,
        slices,
        max((profile.memory_mib for profile in profiles), default=0),
        slices * -(-100 // largest) if largest else 100,
        mode="",
        mig_profiles=profiles,
        attributes={MINOR: str(minor), **{_PROFILE_ID + name: key for (name, _, _), key in ids.items()}},
    )


def _number(value: object, what: str) -> int:
    """Return a number, written as a number or a string."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise AnnotationError(f"{what} is not a number: {value!r}")
    return int(text)
