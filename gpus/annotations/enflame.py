"""Enflame's DRS slices: the cards of a node with their numbers of slices, and the profiles that they may be cut into.

`{"devices": [{"index": "0", "minor": "0", "capacity": 6}], "profiles": {"1g.6gb": "0", "3g.20gb": "1"}}`: the name of a
profile says its slices and its memory in GiB, its value is the identifier that the device plugin knows it by.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from gpus.annotations.errors import AnnotationError
from gpus.annotations.json_text import load_json
from scheduling.model.device import Device, MigProfile

ASSIGNED_CONTAINERS = "assigned-containers"
MINOR = "Minor"
_PROFILE_ID = "ProfileID:"
_PROFILE = re.compile(r"([1-9][0-9]{0,3})g\.([1-9][0-9]{0,5})gb", re.ASCII)
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
_GIB = 1024


def decode_devices_drs(text: str, vendor: str, node: str) -> tuple[Device, ...]:
    """Read `enflame.com/gcu-drs-capacity`. A card's UUID is `<node>-<vendor>-<minor>`. Raises AnnotationError.

    A profile's cores are its share of the card's slices, rounded up. So that all slices can be given out one by one,
    a card counts as many cores and as much memory as its slices can have in all.
    """
    found = _object(text)
    profiles = _profiles(found.get("profiles"))
    entries = found.get("devices")
    if not isinstance(entries, list):
        raise AnnotationError("devices is not an array")
    return tuple(_device(entry, f"device {number}", profiles, vendor, node) for number, entry in enumerate(entries))


def encode_devices_drs(devices: Iterable[Device]) -> str:
    """The value of `enflame.com/gcu-drs-capacity`; all cards of a node have the same profiles."""
    entries = []
    profiles: dict[str, str] = {}
    for device in devices:
        entries.append(
            {
                "index": str(device.index),
                "minor": device.attributes.get(MINOR, str(device.index)),
                "capacity": device.slots,
            }
        )
        profiles |= {profile.name: profile_id(device, profile.name) for profile in device.mig_profiles}
    return json.dumps({"devices": entries, "profiles": profiles}, separators=(",", ":"))


def assigned_slices(text: str) -> dict[str, int]:
    """Read a pod's `assigned-containers`: how many slices each container holds, by name. Raises AnnotationError."""
    found = {}
    for name, entry in _object(text).items():
        if not isinstance(entry, dict):
            raise AnnotationError(f"what container {name} is assigned is not an object")
        found[name] = _number(entry.get("request"), f"request of container {name}")
    return found


def profile_id(device: Device, name: str) -> str:
    """The identifier that the device plugin knows a profile by."""
    return device.attributes.get(_PROFILE_ID + name, "")


def held_profile(device: Device, slots: int, memory_mib: int) -> MigProfile | None:
    """The profile of a slice of the card, by what it takes; None if none takes that."""
    return next(
        (
            profile
            for profile in device.mig_profiles
            if profile.slice_count == slots and profile.memory_mib == memory_mib
        ),
        None,
    )


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
            raise AnnotationError(f"the identifier of profile {name} is not a text: {identifier!r}")
        profiles[name, int(match[1]), int(match[2]) * _GIB] = identifier
    return profiles


def _device(entry: object, where: str, ids: Mapping[tuple[str, int, int], str], vendor: str, node: str) -> Device:
    if not isinstance(entry, dict):
        raise AnnotationError(f"{where} is not an object")
    index, minor = (_number(entry.get(key), f"{key} of {where}") for key in ("index", "minor"))
    slices = _number(entry.get("capacity"), f"capacity of {where}")
    fitting = {profile: identifier for profile, identifier in ids.items() if profile[1] <= slices}
    profiles = tuple(
        MigProfile(name, memory, -(-100 * count // slices), count, ())
        for name, count, memory in sorted(fitting, key=lambda profile: profile[1:])
    )
    return Device(
        f"{node}-{vendor}-{minor}",
        index,
        vendor,
        vendor,
        slices,
        max((slices * profile.memory_mib // profile.slice_count for profile in profiles), default=0),
        slices * -(-100 // slices) if slices else 0,
        mode="",
        mig_profiles=profiles,
        attributes={MINOR: str(minor), **{_PROFILE_ID + name: key for (name, _, _), key in fitting.items()}},
    )


def _number(value: object, what: str) -> int:
    """A number that is written as one or as a text."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise AnnotationError(f"{what} is not a number: {value!r}")
    return int(text)
