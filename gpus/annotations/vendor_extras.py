"""Pod annotations that some vendors' device plugins read in addition to HAMi's."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpus.annotations.enflame import ASSIGNED_CONTAINERS, MINOR, held_profile, profile_id
from scheduling.devices.requests.requests import ONLINE, QOS_POLICIES
from scheduling.model.device import HAMI_CORE_MODE, Device, DeviceSlice
from scheduling.model.vendor import DeviceVendor

_PREDICATE_TIME = "predicate-time"
_MTHREADS_TIME = "mthreads.com/predicate-time"
_METAX_TIME = "metax-tech.com/predicate-time"
_ENFLAME_TIME = "enflame.com/gcu-assigned-time"
_NEURON_TIME = "NEURON_ALLOC_TIME"
TIMES = (_PREDICATE_TIME, _MTHREADS_TIME, _METAX_TIME, _ENFLAME_TIME, _NEURON_TIME)
"""The annotations here that contain the time of the decision."""

EXTRAS = (
    *TIMES, ASSIGNED_CONTAINERS, "CAMBRICON_DSMLU_ASSIGNED", "CAMBRICON_DSMLU_ASSIGHED", "CAMBRICON_DSMLU_PROFILE",
    "mthreads.com/gpu-index", "mthreads.com/predicate-node", "mthreads.com/request-gpu-num",
    "metax-tech.com/gpu-devices-allocated", "enflame.com/gcu-assigned", "enflame.com/gcu-assigned-id",
    "enflame.com/gcu-assigned-index", "enflame.com/gcu-assigned-minor", "enflame.com/gcu-request-size",
    "BAIDU_COM_DEVICE_IDX", "AWS_NEURON_IDS", "NEURON_ALLOCATED", "NEURON_RESOURCE_TYPE",
    "aws.amazon.com/predicate-node",
)  # fmt: skip
"""The keys written here, except the ones that contain the vendor's model and the ones for older plugins."""

_NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True)
class Decision:
    """The slices of a vendor's devices for each container of a pod, with the node and the time of the decision.

    `entries` are container numbers, init containers first, with their slices. `manifest` is the pod; `devices` are
    the node's known devices by UUID; `decided_at` is in seconds since the epoch.
    """

    vendor: DeviceVendor
    node: str
    entries: Sequence[tuple[int, Sequence[DeviceSlice]]]
    decided_at: float
    manifest: Mapping[str, Any] = field(default_factory=dict)
    devices: Mapping[str, Device] = field(default_factory=dict)

    @property
    def slices(self) -> list[DeviceSlice]:
        """The slices of all containers."""
        return [part for _, entry in self.entries for part in entry]

    @property
    def last_slices(self) -> Sequence[DeviceSlice]:
        """The slices of the last container that has any."""
        return next(entry for _, entry in reversed(self.entries) if entry)

    @property
    def nanoseconds(self) -> str:
        """The time of the decision in nanoseconds since the epoch."""
        return str(int(self.decided_at * _NANOSECONDS))

    @property
    def annotations(self) -> Mapping[str, str]:
        """The pod's own annotations."""
        found: Mapping[str, str] = (self.manifest.get("metadata") or {}).get("annotations") or {}
        return found

    def device(self, part: DeviceSlice) -> Device | None:
        """Return the device of a slice."""
        return self.devices.get(part.uuid)

    def container(self, number: int) -> Mapping[str, Any]:
        """Return a container of the pod; empty if it is unknown."""
        spec = self.manifest.get("spec") or {}
        containers = [each for key in ("initContainers", "containers") for each in spec.get(key) or ()]
        found: Mapping[str, Any] = containers[number] if number < len(containers) else {}
        return found

    def held(self) -> Iterator[tuple[int, Sequence[DeviceSlice]]]:
        """Return the containers with slices."""
        return ((number, entry) for number, entry in self.entries if entry)


def vendor_extras(decision: Decision) -> dict[str, str]:
    """Return the vendor's further annotations for a pod."""
    word = decision.vendor.common_word
    write = _BY_WORD.get(word) or (_ascend if word.startswith("Ascend") else None)
    return write(decision) if write is not None else {}


def webhook_extras(decision: Decision) -> dict[str, str]:
    """Return the annotations that HAMi's webhook adds for the vendor's plugin."""
    write = _BY_WEBHOOK.get(decision.vendor.common_word)
    return write(decision) if write is not None else {}


def _ascend(decision: Decision) -> dict[str, str]:
    """Per device its memory and cores, and for a hardware split the template (none: the whole device)."""
    vendor = decision.vendor
    soft = decision.annotations.get(vendor.annotations.mode) == HAMI_CORE_MODE
    templates = {} if vendor.model is None or soft else {cut.memory_mib: cut.name for cut in vendor.model.templates}
    entries = [
        {
            "UUID": part.uuid,
            "temp": templates.get(part.memory_mib),
            "memory": part.memory_mib,
            "core": part.cores_percent,
        }
        for part in decision.slices
    ]
    return {
        _PREDICATE_TIME: str(int(decision.decided_at)),
        f"huawei.com/{vendor.common_word}": _json([_present(entry) for entry in entries]),
    }


def _cambricon(decision: Decision) -> dict[str, str]:
    """Return the profile `device_cores_units` of the first device."""
    first = decision.slices[0]
    units = first.memory_mib // decision.vendor.resources.memory_unit_mib
    return {
        "CAMBRICON_DSMLU_ASSIGNED": "false",
        "CAMBRICON_DSMLU_PROFILE": f"{first.index}_{first.cores_percent}_{units}",
    }


def _moore_threads(decision: Decision) -> dict[str, str]:
    """Return the devices' indexes, the node, and the time."""
    return {
        "mthreads.com/gpu-index": _indexes(decision.last_slices),
        "mthreads.com/predicate-node": decision.node,
        _MTHREADS_TIME: decision.nanoseconds,
    }


def _several_moore_threads(decision: Decision) -> dict[str, str]:
    """Return the number of devices, if a container has several."""
    counts = [len(entry) for _, entry in decision.entries if len(entry) > 1]
    return {"mthreads.com/request-gpu-num": str(counts[-1])} if counts else {}


def _metax_sgpu(decision: Decision) -> dict[str, str]:
    """Per container its devices with compute and memory, and the time."""
    held = [
        [_present({"uuid": part.uuid, "compute": part.cores_percent, "vRam": part.memory_mib}) for part in entry]
        for _, entry in decision.entries
    ]
    return {"metax-tech.com/gpu-devices-allocated": _json(held), _METAX_TIME: decision.nanoseconds}


def _metax_policy(decision: Decision) -> dict[str, str]:
    """Return the QoS policy of the devices, except for online pods."""
    keys = decision.vendor.annotations
    if decision.annotations.get(keys.app_class) == ONLINE or keys.qos_policy in decision.annotations:
        return {}
    return {keys.qos_policy: QOS_POLICIES[0]}


def _enflame_drs(decision: Decision) -> dict[str, str]:
    """Return the device of the first container, and per container the profile for which the plugin creates an
    instance."""
    assigned = {}
    requests = []
    for number, entry in decision.held():
        part, device = entry[0], decision.device(entry[0])
        profile = None if device is None else held_profile(device, part)
        slices = part.slots if profile is None else profile.slice_count
        found: dict[str, bool | int | str] = {"allocated": False, "request": slices}
        if device is not None and profile is not None:
            found |= {"profileID": profile_id(device, profile.name), "profileName": profile.name}
        assigned[str(decision.container(number).get("name") or number)] = found
        requests.append(slices)
    first = decision.slices[0]
    device = decision.device(first)
    index = str(first.index)
    return {
        ASSIGNED_CONTAINERS: _json(dict(sorted(assigned.items()))),
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-id": index,
        "enflame.com/gcu-assigned-index": index,
        "enflame.com/gcu-assigned-minor": index if device is None else device.attributes[MINOR],
        _ENFLAME_TIME: decision.nanoseconds,
        "enflame.com/gcu-request-size": str(requests[0]),
    }


def _kunlun(decision: Decision) -> dict[str, str]:
    return {"BAIDU_COM_DEVICE_IDX": _indexes(decision.last_slices)}


def _neuron(decision: Decision) -> dict[str, str]:
    """Return the indexes of the devices, or the numbers of the cores for containers that request cores; the node, and
    the time."""
    resources = decision.vendor.resources
    found = {
        _NEURON_TIME: decision.nanoseconds,
        "NEURON_ALLOCATED": "false",
        "aws.amazon.com/predicate-node": decision.node,
    }
    numbers: list[int] = []
    for number, entry in decision.held():
        limits = (decision.container(number).get("resources") or {}).get("limits") or {}
        if resources.count in limits:
            numbers += [part.index for part in entry]
            continue
        found["NEURON_RESOURCE_TYPE"] = resources.cores
        numbers += [
            part.index * resources.cores_per_count + bit
            for part in entry
            for bit in range(resources.cores_per_count)
            if part.cores_percent & 1 << bit
        ]
    return {**found, "AWS_NEURON_IDS": ",".join(map(str, numbers))}


def _indexes(slices: Sequence[DeviceSlice]) -> str:
    return ",".join(str(part.index) for part in slices)


def _present(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entry without zeros and empty values, as Go's encoders write it."""
    return {key: value for key, value in entry.items() if value}


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


_BY_WORD: dict[str, Callable[[Decision], dict[str, str]]] = {
    "MLU": _cambricon,
    "Mthreads": _moore_threads,
    "Metax-SGPU": _metax_sgpu,
    "Enflame": _enflame_drs,
    "kunlun": _kunlun,
    "AWSNeuron": _neuron,
}
_BY_WEBHOOK: dict[str, Callable[[Decision], dict[str, str]]] = {
    "Mthreads": _several_moore_threads,
    "Metax-SGPU": _metax_policy,
}
