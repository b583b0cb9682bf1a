"""Writes the annotations with which HAMi's device plugins register devices, and HAMi's request for a sign of life."""

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from gpus.annotations.enflame import MINOR, profile_id
from gpus.annotations.errors import AnnotationError
from scheduling.model.device import Device, MigProfile
from scheduling.model.vendor import DeviceVendor, InventoryEncoding

_METAX_ATTRIBUTES = {"bdf": "bdf", "qosPolicy": "QosPolicy", "linkZone": "LinkZone"}
_SEPARATORS = re.compile(r"[,:;]")


def encode_devices(devices: Iterable[Device], vendor: DeviceVendor) -> str:
    """Write a vendor's register annotation in its own encoding. Raises AnnotationError."""
    if vendor.inventory is InventoryEncoding.DRS_JSON:
        return encode_devices_drs(devices)
    if vendor.inventory is InventoryEncoding.STRING:
        return encode_devices_string(devices)
    if vendor.inventory is InventoryEncoding.METAX_JSON:
        return encode_devices_metax(devices)
    return encode_devices_json(devices)


def encode_devices_json(devices: Iterable[Device]) -> str:
    """Return the value of a JSON register annotation."""
    return json.dumps([_device_object(device) for device in devices], separators=(",", ":"))


def encode_devices_string(devices: Iterable[Device]) -> str:
    """Return the value of a string register annotation, nine fields per device. Raises AnnotationError for a
    separator."""
    parts = []
    for device in devices:
        for text in (device.uuid, device.type, device.mode):
            if _SEPARATORS.search(text):
                raise AnnotationError(f"{text!r} contains a separator (, : ;), which this encoding cannot represent")
        fields = (
            device.uuid,
            device.slots,
            device.memory_mib,
            device.cores_percent,
            device.type,
            device.numa,
            "true" if device.health else "false",
            device.index,
            device.mode,
        )
        parts.append(",".join(str(field) for field in fields) + ":")
    return "".join(parts)


def encode_devices_metax(devices: Iterable[Device]) -> str:
    """Return the value of MetaX' `metax-tech.com/node-gpu-devices`. Like all register annotations it leaves out
    zeros."""
    found = []
    for device in devices:
        extras = {key: device.attributes.get(name) for key, name in _METAX_ATTRIBUTES.items()}
        everything: dict[str, Any] = {
            "uuid": device.uuid,
            "model": device.type,
            "totalDevCount": device.slots,
            "totalCompute": device.cores_percent,
            "totalVRam": device.memory_mib,
            "numa": device.numa,
            "healthy": device.health,
            **{key: int(value) if key == "linkZone" and value else value for key, value in extras.items()},
        }
        found.append({key: value for key, value in everything.items() if value})
    return json.dumps(found, separators=(",", ":"))


def encode_devices_drs(devices: Iterable[Device]) -> str:
    """Return the value of `enflame.com/gcu-drs-capacity`; all devices of a node have the same profiles."""
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


def encode_pair_scores(devices: Iterable[Device]) -> str:
    """Return the value of `hami.io/node-nvidia-score`: link scores of every device to the others."""
    return json.dumps(
        [{"uuid": device.uuid, "score": dict(sorted(device.pair_scores.items()))} for device in devices],
        separators=(",", ":"),
    )


def encode_cordoned(uuids: Iterable[str]) -> str:
    """Write `hami.io/device-cordon`."""
    return ",".join(sorted(uuids))


def handshake_request(now: float) -> str:
    """Return the value that requests a sign of life from a device plugin; its time has no time zone."""
    return datetime.fromtimestamp(now, UTC).strftime("Requesting_%Y-%m-%d %H:%M:%S")


def _device_object(device: Device) -> dict[str, Any]:
    everything = {
        "id": device.uuid,
        "index": device.index,
        "count": device.slots,
        "devmem": device.memory_mib,
        "devcore": device.cores_percent,
        "type": device.type,
        "numa": device.numa,
        "mode": device.mode,
        "migProfiles": [_profile_object(profile) for profile in device.mig_profiles],
        "health": device.health,
    }
    return {key: value for key, value in everything.items() if value}


def _profile_object(profile: MigProfile) -> dict[str, Any]:
    placements = [{"start": place.start, "size": place.size} for place in profile.placements]
    everything = {
        "name": profile.name,
        "memoryMB": profile.memory_mib,
        "core": profile.cores_percent,
        "sliceCount": profile.slice_count,
        "placements": placements,
    }
    return {key: value for key, value in everything.items() if value}
