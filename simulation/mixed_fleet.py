"""Nodes with devices of every vendor that HAMi knows, registered as each vendor's own plugin does it.

It writes the formats by itself, so that a mistake in how we read them shows here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from simulation.api.objects import JsonObject

_CPU, _MEMORY = "96", "768Gi"
ACCELERATOR = "accelerator"
"""The label that names a node's kind of devices."""

_MIG_A100 = [
    {"name": name, "memoryMB": memory, "core": cores, "sliceCount": slices, "placements": places}
    for name, memory, cores, slices, places in (
        ("1g.5gb", 4864, 15, 1, [{"start": start, "size": 1} for start in range(7)]),
        ("2g.10gb", 9856, 29, 2, [{"start": start, "size": 2} for start in (0, 2, 4)]),
        ("3g.20gb", 19_968, 43, 3, [{"start": start, "size": 4} for start in (0, 4)]),
        ("7g.40gb", 40_192, 100, 7, [{"start": 0, "size": 8}]),
    )
]


@dataclass(frozen=True, slots=True)
class VendorNode:
    """One node: the annotations, the extended resources and the labels that describe its devices."""

    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, int] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)

    def manifest(self) -> JsonObject:
        counts = {resource: str(count) for resource, count in self.resources.items()}
        capacity = {"cpu": _CPU, "memory": _MEMORY, "pods": "110", **counts}
        labels = {
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/os": "linux",
            ACCELERATOR: self.name,
            **self.labels,
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "annotations": dict(self.annotations)},
            "spec": {},
            "status": {"capacity": capacity, "allocatable": dict(capacity)},
        }


def mixed_fleet() -> list[JsonObject]:
    """Return one node per vendor, in addition to those of the examples' fleet."""
    return [node.manifest() for node in _nodes()]


def _nodes() -> Iterator[VendorNode]:
    mig = _json("mig", 4, "NVIDIA-NVIDIA A100-SXM4-40GB", 7, 40_960, 100, mode="mig", migProfiles=_MIG_A100)
    yield VendorNode("nvidia-mig-a100", {"hami.io/node-nvidia-register": mig}, {"nvidia.com/gpu": 28})
    amd = _json("amd", 8, "AMD-Instinct-MI300X", 8, 196_608, 304)
    yield VendorNode("amd-mi300x", {"hami.io/node-amd-register": amd}, {"amd.com/gpu": 8})
    for word, custom in (("Ascend910B3", 4), ("Ascend910C", 8)):
        chips = _json(word, 8, word, 4, 65_536, 20, custom=lambda index, of=custom: {"NetworkID": index // of})
        yield VendorNode(word.lower(), {f"hami.io/node-register-{word}": chips}, {f"huawei.com/{word}": 32})
    hygon = _fields("DCU", 8, "DCU-K100_AI", 4, 65_520)
    yield VendorNode("hygon-k100", {"hami.io/node-dcu-register": hygon}, {"hygon.com/dcunum": 32})
    iluvatar = _fields("ILU", 8, "BI-V150", 10, 32_768)
    yield VendorNode("iluvatar-bi-v150", {"hami.io/node-BI-V150-register": iluvatar}, {"iluvatar.ai/BI-V150-vgpu": 80})
    mlu = "cambricon.com/mlu.smlu"
    yield VendorNode("cambricon-mlu370", {}, {"cambricon.com/vmlu": 800, f"{mlu}.vcore": 800, f"{mlu}.vmemory": 1536})
    musa = "mthreads.com/sgpu"
    yield VendorNode("mthreads-s4000", {}, {"mthreads.com/vgpu": 80, f"{musa}-core": 128, f"{musa}-memory": 768})
    yield VendorNode("metax-c500", {"metax-tech.com/node-gpu-devices": _metax(8)}, {"metax-tech.com/sgpu": 128})
    yield VendorNode("enflame-s60", {"enflame.com/gcu-drs-capacity": _drs(8)}, {"enflame.com/drs-gcu": 48})
    yield VendorNode("kunlun-p800", {}, {"kunlunxin.com/xpu": 8})
    trainium = {"node.kubernetes.io/instance-type": "trn1.32xlarge"}
    yield VendorNode("aws-trn1", {}, {"aws.amazon.com/neuron": 16, "aws.amazon.com/neuroncore": 32}, trainium)
    dies = _json(
        "VA", 8, "Vastai", 1, 32_768, 0, custom=lambda index: {"DeviceStrategy": "die", "AIC": f"aic-{index // 2}"}
    )
    yield VendorNode("vastai-va16", {"hami.io/node-va-register": dies}, {"vastaitech.com/va": 8})
    biren = _json("BR", 8, "Biren-106B", 1, 65_536, 0)
    yield VendorNode("biren-br106", {"hami.io/node-biren-register": biren}, {"birentech.com/gpu": 8})


def _json(
    prefix: str, count: int, model: str, slots: int, memory_mib: int, cores: int, custom: Any = None, **more: Any
) -> str:
    """HAMi's JSON register; zero values are left out."""
    devices = [
        {
            "id": f"{prefix}-{index:02}",
            "index": index,
            "count": slots,
            "devmem": memory_mib,
            "devcore": cores,
            "type": model,
            "numa": index // (count // 2),
            "health": True,
            "custominfo": custom(index) if custom is not None else None,
            **more,
        }
        for index in range(count)
    ]
    return orjson.dumps([{key: value for key, value in each.items() if value} for each in devices]).decode()


def _fields(prefix: str, count: int, model: str, slots: int, memory_mib: int) -> str:
    """HAMi's older register: nine fields per device."""
    devices = (
        (f"{prefix}-{index:02}", slots, memory_mib, 100, model, index // (count // 2), "true", index, "hami-core")
        for index in range(count)
    )
    return "".join(",".join(map(str, each)) + ":" for each in devices)


def _metax(count: int) -> str:
    devices = [
        {
            "uuid": f"MX-{index:02}",
            "bdf": f"0000:{index:02x}:00.0",
            "model": "MXC500",
            "totalDevCount": 16,
            "totalCompute": 100,
            "totalVRam": 65_536,
            "healthy": True,
            "linkZone": 1 + index // 4,
        }
        for index in range(count)
    ]
    return orjson.dumps(devices).decode()


def _drs(count: int) -> str:
    devices = [{"index": str(index), "minor": str(index), "capacity": 6} for index in range(count)]
    profiles = {"1g.6gb": "0", "2g.12gb": "3", "3g.20gb": "1", "6g.40gb": "2"}
    return orjson.dumps({"devices": devices, "profiles": profiles}).decode()
