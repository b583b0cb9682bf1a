"""Encodes and decodes the devices of a pod's containers in HAMi's pod annotations.

Per device `UUID,Vendor,MiB,cores:`, per container its devices and a `;`, init containers first. Reading accepts
HAMi's own misalignment, which leaves out containers without a device.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpus.annotations.enflame import ASSIGNED_CONTAINERS, assigned_slices
from gpus.annotations.errors import AnnotationError
from gpus.annotations.json_text import load_json
from gpus.annotations.vendor_extras import TIMES as EXTRA_TIMES
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.pod_usage import peak_usage
from scheduling.model.device import DeviceRequest, DeviceSlice, MigInstance, MigPlacement
from scheduling.model.vendor import DeviceVendor

NODE = "hami.io/vgpu-node"
TIME = "hami.io/vgpu-time"
BIND_TIME = "hami.io/bind-time"
BIND_PHASE = "hami.io/bind-phase"
ALLOCATING = "allocating"
"""The phase from which HAMi's device plugin takes a pod as the next on its node."""
MIG_ALLOCATIONS = "hami.io/vgpu-mig-allocations"

TIMES = frozenset({TIME, BIND_TIME, *EXTRA_TIMES})
"""Annotations with times. Two allocations that differ only in these are equal."""

_RESERVED = re.compile(r"[,:;]")
_OLD_MIG_SUFFIX = re.compile(r"\[[^\]]*\]$")
"""`GPU-x[0-1]`: template and place of a MIG instance, in HAMi's format before it had an annotation for that."""
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True, slots=True)
class AllocatedDevice:
    """One entry of a pod device annotation: granted memory in MiB, cores in percent points."""

    uuid: str
    vendor: str
    memory_mib: int
    cores_percent: int


@dataclass(frozen=True, slots=True)
class MigAllocation:
    """One MIG reservation of a pod. The runtime identity is known once the device plugin has created the instance."""

    container_index: int
    device_index: int
    uuid: str
    instance: MigInstance
    mig_uuid: str = ""
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None


@dataclass(frozen=True, slots=True)
class FoundAllocation:
    """The devices that a pod in the cluster holds by its annotations; slots, MiB and cores per device are the pod's
    peak.

    `malformed` is an unreadable annotation. Such a pod counts as `asked` whole devices of its node (None: all of
    them) until that is resolved.
    """

    node: str
    slices: tuple[DeviceSlice, ...] = ()
    malformed: str = ""
    asked: int | None = None


def encode_containers(containers: Iterable[Iterable[AllocatedDevice]]) -> str:
    """Return the value of a to-allocate or allocated annotation. Raises AnnotationError for a separator in a name."""
    return "".join("".join(_encode_device(device) for device in container) + ";" for container in containers)


def decode_containers(text: str) -> tuple[tuple[AllocatedDevice, ...], ...]:
    """Read a to-allocate or allocated annotation, one entry per `;`.

    Raises AnnotationError for a device with fewer than four fields or an invalid amount, so that the caller can
    count an unreadable allocation as taken.
    """
    pieces = text.split(";")
    if pieces and not pieces[-1].strip():
        pieces.pop()
    return tuple(_decode_container(piece) for piece in pieces)


def align_containers(
    entries: Sequence[tuple[AllocatedDevice, ...]], asking: Sequence[bool]
) -> tuple[tuple[AllocatedDevice, ...], ...]:
    """Return the entries per container of the pod, init containers first; `asking` marks the containers that request
    the vendor's devices. If the number of entries with devices equals the number of requesting containers, the entries
    belong to those containers in order, whatever their position (HAMi leaves out empty entries on most nodes);
    otherwise they are matched by position. Raises AnnotationError for devices beyond the last container."""
    filled = [entry for entry in entries if entry]
    if len(filled) == sum(asking):
        remaining = iter(filled)
        return tuple(next(remaining) if asks else () for asks in asking)
    if any(entries[len(asking) :]):
        raise AnnotationError(f"{len(entries)} entries for {len(asking)} containers")
    padded = [*entries, *([()] * len(asking))]
    return tuple(padded[: len(asking)])


def encode_mig_allocations(allocations: Iterable[MigAllocation]) -> str:
    """Return the value of `hami.io/vgpu-mig-allocations`."""
    found = []
    for allocation in allocations:
        place = allocation.instance.placement
        entry: dict[str, Any] = {
            "containerIndex": allocation.container_index,
            "deviceIndex": allocation.device_index,
            "gpuUUID": allocation.uuid,
            "profile": allocation.instance.profile,
            "placement": {"start": place.start, "size": place.size},
        }
        if allocation.mig_uuid:
            entry["migUUID"] = allocation.mig_uuid
            entry["gpuInstanceID"] = allocation.gpu_instance_id
            entry["computeInstanceID"] = allocation.compute_instance_id
        found.append(entry)
    return json.dumps(found, separators=(",", ":"))


def decode_mig_allocations(text: str) -> tuple[MigAllocation, ...]:
    """Read `hami.io/vgpu-mig-allocations`. Raises AnnotationError, also if only some runtime ids are present."""
    found = load_json(text)
    if not isinstance(found, list):
        raise AnnotationError("expected a JSON array of MIG allocations")
    try:
        return tuple(_mig_allocation(entry) for entry in found)
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise AnnotationError(f"not a list of MIG allocations: {error}") from error


def _are_profiles(vendors: Iterable[DeviceVendor]) -> bool:
    return any(vendor.rules.hardware_profiles for vendor in vendors)


def _slots(vendor: DeviceVendor, slices: int) -> int:
    """Return how many slots of its device an allocated entry takes; `slices` are the ones assigned to its container."""
    return max(slices, 1) if vendor.rules.hardware_profiles else 1


def found_allocation(
    pod: Mapping[str, Any], vendors: Sequence[DeviceVendor], *, init_done: bool = False
) -> FoundAllocation | None:
    """Return the devices that a pod in the cluster holds according to its annotations; None for a pod that HAMi did not
    place. `pod` is a `v1.Pod` in manifest form that is neither Succeeded nor Failed. Init containers are combined with
    the others as in HAMi, and left out once all of them have succeeded (`init_done`). Every user who may create pods
    controls these annotations. They are therefore ignored on a pod that requests no device or runs on another node, and
    beyond the number of devices that the pod requests."""
    annotations: Mapping[str, str] = (pod.get("metadata") or {}).get("annotations") or {}
    node = annotations.get(NODE) or ""
    runs_on = (pod.get("spec") or {}).get("nodeName") or node
    request = pod_device_request(pod, vendors)
    if not node or node != runs_on or not request.asks_for_devices:
        return None
    asked = sum(each.count for container in (*request.init_containers, *request.containers) for each in container)
    present = [vendor for vendor in vendors if annotations.get(vendor.annotations.allocated)]
    if not present:
        return FoundAllocation(node, (), "the pod requests devices but has no allocated annotation", asked)
    try:
        return FoundAllocation(node, _held_slices(pod, annotations, node, present, init_done))
    except AnnotationError as error:
        return FoundAllocation(node, (), str(error), asked)


def _held_slices(
    pod: Mapping[str, Any],
    annotations: Mapping[str, str],
    node: str,
    vendors: Sequence[DeviceVendor],
    init_done: bool,
) -> tuple[DeviceSlice, ...]:
    request = pod_device_request(pod, vendors)
    per_container = (*request.init_containers, *request.containers)
    init_count = len(request.init_containers)
    instances = {
        (allocation.container_index, allocation.device_index): allocation.instance
        for allocation in decode_mig_allocations(annotations.get(MIG_ALLOCATIONS) or "[]")
    }
    slices = assigned_slices(annotations.get(ASSIGNED_CONTAINERS) or "{}") if _are_profiles(vendors) else {}
    spec = pod.get("spec") or {}
    names = [str(each.get("name")) for key in ("initContainers", "containers") for each in spec.get(key) or ()]
    held: dict[tuple[str, str], DeviceSlice] = {}
    for vendor in vendors:
        entries = decode_containers(annotations[vendor.annotations.allocated])
        constraints = request.constraints_of(vendor.common_word)
        asking = [any(asked.vendor == vendor.common_word for asked in container) for container in per_container]
        containers = [
            tuple(
                DeviceSlice(
                    _OLD_MIG_SUFFIX.sub("", device.uuid),
                    node,
                    device.memory_mib,
                    device.cores_percent,
                    vendor=vendor.common_word,
                    mig=instances.get((number, position)),
                    slots=_slots(vendor, slices.get(names[number], 1)),
                    qos_policy=constraints.qos_policy,
                    app_class=constraints.app_class,
                )
                for position, device in enumerate(container)
            )
            for number, container in enumerate(align_containers(entries, asking))
        ]
        _check_counts(containers, per_container, vendor.common_word)
        if init_done:
            containers[:init_count] = [()] * init_count
        for part in peak_usage(containers, init_count).values():
            held[(vendor.common_word, part.uuid)] = part
    return tuple(held.values())


def _check_counts(
    containers: Sequence[Sequence[DeviceSlice]], asked: Sequence[Sequence[DeviceRequest]], word: str
) -> None:
    for held, requests in zip(containers, asked, strict=True):
        count = sum(each.count for each in requests if each.vendor == word)
        if len(held) > count:
            raise AnnotationError(f"{len(held)} {word} devices for a container that requests {count}")


def _encode_device(device: AllocatedDevice) -> str:
    for text in (device.uuid, device.vendor):
        if _RESERVED.search(text):
            raise AnnotationError(f"{text!r} contains a separator (, : ;), which this encoding cannot represent")
    return f"{device.uuid},{device.vendor},{device.memory_mib},{device.cores_percent}:"


def _decode_container(text: str) -> tuple[AllocatedDevice, ...]:
    return tuple(_decode_device(piece) for piece in text.split(":") if "," in piece)


def _decode_device(text: str) -> AllocatedDevice:
    fields = [field.strip() for field in text.split(",")]
    if len(fields) < 4:
        raise AnnotationError(f"a device has {len(fields)} fields instead of 4: {text!r}")
    if not fields[0].isprintable():
        raise AnnotationError(f"{fields[0]!r} is not a device UUID")
    for field in fields[2:4]:
        if not _INTEGER.fullmatch(field):
            raise AnnotationError(f"{field!r} in {text!r} is not a whole number")
    return AllocatedDevice(fields[0], fields[1], int(fields[2]), int(fields[3]))


def _mig_allocation(entry: Mapping[str, Any]) -> MigAllocation:
    place = entry["placement"]
    runtime = [entry.get("migUUID"), entry.get("gpuInstanceID"), entry.get("computeInstanceID")]
    known = [value for value in runtime if value is not None and value != ""]
    if len(known) not in (0, 3):
        raise AnnotationError("migUUID, gpuInstanceID and computeInstanceID must be given together")
    if not str(entry["profile"]).isprintable():
        raise AnnotationError(f"{entry['profile']!r} is not a profile")
    instance = MigInstance(str(entry["profile"]), MigPlacement(int(place.get("start", 0)), int(place["size"])))
    identity: tuple[str, int | None, int | None] = (
        (str(runtime[0]), int(str(runtime[1])), int(str(runtime[2]))) if known else ("", None, None)
    )
    return MigAllocation(
        int(entry.get("containerIndex", 0)), int(entry.get("deviceIndex", 0)), entry["gpuUUID"], instance, *identity
    )
