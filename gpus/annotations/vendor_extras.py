"""What some vendors' own device plugins read from a pod beside HAMi's annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpus.annotations.enflame import ASSIGNED_CONTAINERS, MINOR, held_profile, profile_id
from scheduling.model.device import SOFT_SPLIT, SPLIT, Device, DeviceSlice
from scheduling.model.vendor import DeviceVendor

_PREDICATE_TIME = "predicate-time"
_MTHREADS_TIME = "mthreads.com/predicate-time"
_METAX_TIME = "metax-tech.com/predicate-time"
_ENFLAME_TIME = "enflame.com/gcu-assigned-time"
_NEURON_TIME = "NEURON_ALLOC_TIME"
TIMES = (_PREDICATE_TIME, _MTHREADS_TIME, _METAX_TIME, _ENFLAME_TIME, _NEURON_TIME)
"""The annotations here that say when it was decided."""

EXTRAS = (
    *TIMES, ASSIGNED_CONTAINERS, "CAMBRICON_DSMLU_ASSIGNED", "CAMBRICON_DSMLU_ASSIGHED", "CAMBRICON_DSMLU_PROFILE",
    "mthreads.com/gpu-index", "mthreads.com/predicate-node", "mthreads.com/request-gpu-num",
    "metax-tech.com/gpu-devices-allocated", "enflame.com/gcu-assigned", "enflame.com/gcu-assigned-index",
    "enflame.com/gcu-assigned-minor", "enflame.com/gcu-request-size", "BAIDU_COM_DEVICE_IDX", "AWS_NEURON_IDS",
    "NEURON_ALLOCATED", "NEURON_RESOURCE_TYPE", "aws.amazon.com/predicate-node",
)  # fmt: skip
"""Every key that is written here, but for those that name the vendor's model."""

_NANOSECONDS = 10**9


@dataclass(frozen=True, slots=True)
class Decision:
    """Which slices of a vendor's cards each container of a pod gets, on which node, and since when.

    `names` are the containers' names in the same order, as far as they are known; `cards` are the node's cards by UUID,
    as far as they are known; `decided_at` is in seconds since the epoch.
    """

    vendor: DeviceVendor
    node: str
    containers: Sequence[Sequence[DeviceSlice]]
    decided_at: float
    names: Sequence[str] = ()
    devices: Mapping[str, Device] | None = None

    @property
    def slices(self) -> list[DeviceSlice]:
        """The slices of all containers."""
        return [part for container in self.containers for part in container]

    @property
    def nanoseconds(self) -> str:
        """When it was decided, in nanoseconds since the epoch."""
        return str(int(self.decided_at * _NANOSECONDS))

    def device(self, part: DeviceSlice) -> Device | None:
        """The card of a slice."""
        return (self.devices or {}).get(part.uuid)

    def named_containers(self) -> Iterator[tuple[str, Sequence[DeviceSlice]]]:
        """The containers that hold slices, with their names."""
        for number, container in enumerate(self.containers):
            if container:
                yield self.names[number] if number < len(self.names) else str(number), container


def vendor_extras(decision: Decision) -> dict[str, str]:
    """The vendor's further annotations for a pod."""
    word = decision.vendor.common_word
    write = _BY_WORD.get(word) or (_ascend if word.startswith("Ascend") else None)
    return write(decision) if write is not None else {}


def _ascend(decision: Decision) -> dict[str, str]:
    """Per card the template that it is cut to (none: the whole card), or memory and cores in the soft split."""
    model = decision.vendor.model
    templates = {} if model is None else {cut.memory_mib: cut.name for cut in model.templates}
    whole = 0 if model is None else model.memory_mib
    devices = []
    for part in decision.slices:
        entry: dict[str, str | int] = {"UUID": part.uuid}
        device = decision.device(part)
        soft = part.cores_percent > 0 if device is None else device.attributes.get(SPLIT) == SOFT_SPLIT
        if soft or (part.memory_mib != whole and part.memory_mib not in templates):
            entry |= {"memory": part.memory_mib, "core": part.cores_percent}
        elif part.memory_mib in templates:
            entry["temp"] = templates[part.memory_mib]
        devices.append({key: value for key, value in entry.items() if value})
    return {
        _PREDICATE_TIME: str(int(decision.decided_at)),
        f"huawei.com/{decision.vendor.common_word}": json.dumps(devices, separators=(",", ":")),
    }


def _cambricon(decision: Decision) -> dict[str, str]:
    """The profile `card_cores_units` of the first card. Plugins in the field look for either spelling of the key."""
    first = decision.slices[0]
    units = first.memory_mib // decision.vendor.resources.memory_unit_mib
    return {
        "CAMBRICON_DSMLU_ASSIGNED": "false",
        "CAMBRICON_DSMLU_ASSIGHED": "false",
        "CAMBRICON_DSMLU_PROFILE": f"{first.index}_{first.cores_percent}_{units}",
    }


def _moore_threads(decision: Decision) -> dict[str, str]:
    """The cards' indexes, the node, and when; and how many where a container has several."""
    found = {
        "mthreads.com/gpu-index": _indexes(decision),
        "mthreads.com/predicate-node": decision.node,
        _MTHREADS_TIME: decision.nanoseconds,
    }
    most = max(len(container) for container in decision.containers)
    if most > 1:
        found["mthreads.com/request-gpu-num"] = str(most)
    return found


def _metax_sgpu(decision: Decision) -> dict[str, str]:
    """Per container its cards, with compute and memory; the policy that they are shared under, and when."""
    held = [
        [{"uuid": part.uuid, "compute": part.cores_percent, "vRam": part.memory_mib} for part in container]
        for container in decision.containers
    ]
    found = {
        "metax-tech.com/gpu-devices-allocated": json.dumps(held, separators=(",", ":")),
        _METAX_TIME: decision.nanoseconds,
    }
    policy = decision.slices[0].qos_policy
    if policy:
        found[decision.vendor.annotations.qos_policy] = policy
    return found


def _enflame_drs(decision: Decision) -> dict[str, str]:
    """The one card of the pod, and per container the profile that the plugin makes an instance of."""
    first = decision.slices[0]
    device = decision.device(first)
    assigned = {}
    for name, container in decision.named_containers():
        for part in container:
            entry: dict[str, bool | int | str] = {"allocated": False, "request": part.slots}
            profile = None if device is None else held_profile(device, part.slots, part.memory_mib)
            if device is not None and profile is not None:
                entry |= {"profileID": profile_id(device, profile.name), "profileName": profile.name}
            assigned[name] = entry
    return {
        ASSIGNED_CONTAINERS: json.dumps(assigned, separators=(",", ":")),
        "enflame.com/gcu-assigned": "false",
        "enflame.com/gcu-assigned-index": str(first.index),
        "enflame.com/gcu-assigned-minor": str(first.index) if device is None else device.attributes[MINOR],
        _ENFLAME_TIME: decision.nanoseconds,
        "enflame.com/gcu-request-size": str(sum(part.slots for part in decision.slices)),
    }


def _kunlun(decision: Decision) -> dict[str, str]:
    """The cards' indexes."""
    return {"BAIDU_COM_DEVICE_IDX": _indexes(decision)}


def _neuron(decision: Decision) -> dict[str, str]:
    """The devices' indexes, or where single cores are held the numbers of cores; the node, and when."""
    per_device = decision.vendor.resources.cores_per_count
    found = {
        "AWS_NEURON_IDS": _indexes(decision),
        _NEURON_TIME: decision.nanoseconds,
        "NEURON_ALLOCATED": "false",
        "aws.amazon.com/predicate-node": decision.node,
    }
    if any(part.cores_percent.bit_count() < per_device for part in decision.slices):
        cores = (
            part.index * per_device + bit
            for part in decision.slices
            for bit in range(per_device)
            if part.cores_percent & 1 << bit
        )
        found["AWS_NEURON_IDS"] = ",".join(map(str, cores))
        found["NEURON_RESOURCE_TYPE"] = decision.vendor.resources.cores
    return found


def _indexes(decision: Decision) -> str:
    return ",".join(str(part.index) for part in decision.slices)


_BY_WORD: dict[str, Callable[[Decision], dict[str, str]]] = {
    "MLU": _cambricon,
    "Mthreads": _moore_threads,
    "Metax-SGPU": _metax_sgpu,
    "Enflame": _enflame_drs,
    "kunlun": _kunlun,
    "AWSNeuron": _neuron,
}
