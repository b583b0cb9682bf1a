"""What some vendors' own device plugins read from a pod beside HAMi's annotations."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from scheduler.core.device import DeviceSlice
from scheduler.core.device_vendor import DeviceVendor

Containers = Sequence[Sequence[DeviceSlice]]
"""Per container the slices of one vendor."""

_NANOSECONDS = 10**9


def vendor_extras(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """The vendor's further annotations for a pod on a node; `decided_at` is in seconds since the epoch."""
    write = _BY_WORD.get(vendor.word) or (_ascend if vendor.word.startswith("Ascend") else None)
    return write(vendor, node, containers, decided_at) if write is not None else {}


def _ascend(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """Per card the template that it is cut to (none: the whole card), or memory and cores in the soft split."""
    templates = {} if vendor.model is None else {cut.memory_mib: cut.name for cut in vendor.model.templates}
    whole = 0 if vendor.model is None else vendor.model.memory_mib
    cards = []
    for part in _all(containers):
        entry: dict[str, str | int] = {"UUID": part.uuid}
        if part.memory_mib in templates and not part.cores_percent:
            entry["temp"] = templates[part.memory_mib]
        elif part.memory_mib != whole or part.cores_percent:
            entry |= {"memory": part.memory_mib, "core": part.cores_percent}
        cards.append({key: value for key, value in entry.items() if value})
    return {
        "predicate-time": str(int(decided_at)),
        f"huawei.com/{vendor.word}": json.dumps(cards, separators=(",", ":")),
    }


def _cambricon(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """The profile `card_cores_units` of the first card."""
    first = _all(containers)[0]
    units = first.memory_mib // vendor.resources.memory_unit_mib
    return {
        "CAMBRICON_DSMLU_ASSIGNED": "false",
        "CAMBRICON_DSMLU_PROFILE": f"{first.index}_{first.cores_percent}_{units}",
    }


def _moore_threads(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """The cards' indexes, the node, and when."""
    return {
        "mthreads.com/gpu-index": _indexes(containers),
        "mthreads.com/predicate-node": node,
        "mthreads.com/predicate-time": str(int(decided_at * _NANOSECONDS)),
    }


def _metax_sgpu(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """Per container its cards, with compute and memory."""
    held = [
        [{"uuid": part.uuid, "compute": part.cores_percent, "vRam": part.memory_mib} for part in container]
        for container in containers
    ]
    return {"metax-tech.com/gpu-devices-allocated": json.dumps(held, separators=(",", ":"))}


def _kunlun(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """The cards' indexes."""
    return {"BAIDU_COM_DEVICE_IDX": _indexes(containers)}


def _neuron(vendor: DeviceVendor, node: str, containers: Containers, decided_at: float) -> dict[str, str]:
    """The devices' indexes, the node, and when."""
    return {
        "AWS_NEURON_IDS": _indexes(containers),
        "NEURON_ALLOC_TIME": str(int(decided_at * _NANOSECONDS)),
        "NEURON_ALLOCATED": "false",
        "aws.amazon.com/predicate-node": node,
    }


def _indexes(containers: Containers) -> str:
    return ",".join(str(part.index) for part in _all(containers))


def _all(containers: Containers) -> list[DeviceSlice]:
    return [part for container in containers for part in container]


_BY_WORD: dict[str, Callable[[DeviceVendor, str, Containers, float], dict[str, str]]] = {
    "MLU": _cambricon,
    "Mthreads": _moore_threads,
    "Metax-SGPU": _metax_sgpu,
    "kunlun": _kunlun,
    "AWSNeuron": _neuron,
}
