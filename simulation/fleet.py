"""Nodes with GPUs as HAMi's device plugin registers them, and the files that describe a cluster."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import orjson
import yaml

from simulation.api.objects import JsonObject
from simulation.controllers.device_plugin import NVIDIA_COUNT, NVIDIA_REGISTER
from simulation.mixed_fleet import mixed_fleet

RACK: Final = "topology.example.org/rack"
"""The label of a node with its rack."""


@dataclass(frozen=True, slots=True)
class GpuNodes:
    """Some equal nodes. memory_mib and slots are per device; cpu and memory as Kubernetes quantities."""

    prefix: str
    count: int
    product: str
    model: str
    devices: int
    memory_mib: int
    cpu: str
    memory: str
    slots: int = 10
    zone: str = "gpu-zone-a"
    per_rack: int = 0
    """How many of the nodes stand in each rack; 0: the nodes have no labels of racks."""

    def manifests(self) -> Iterator[JsonObject]:
        """Yield the Node objects: labels, capacity and the register annotation."""
        for number in range(1, self.count + 1):
            rack = {RACK: f"rack-{(number - 1) // self.per_rack + 1}"} if self.per_rack else {}
            yield self._manifest(f"{self.prefix}-{number:02}", rack)

    def _manifest(self, name: str, more_labels: Mapping[str, str]) -> JsonObject:
        devices = [self._device(name, index) for index in range(self.devices)]
        capacity = {
            "cpu": self.cpu,
            "memory": self.memory,
            "pods": "110",
            NVIDIA_COUNT: str(self.devices * self.slots),
        }
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name,
                    "kubernetes.io/os": "linux",
                    "nvidia.com/gpu.product": self.product,
                    "nvidia.com/gpu.count": str(self.devices),
                    "zone": self.zone,
                    "gpu": "on",
                    **more_labels,
                },
                "annotations": {NVIDIA_REGISTER: orjson.dumps(devices).decode()},
            },
            "spec": {},
            "status": {"capacity": capacity, "allocatable": dict(capacity)},
        }

    def _device(self, node: str, index: int) -> JsonObject:
        """Return one entry of the register annotation; zero values are left out, as HAMi leaves them out."""
        digest = hashlib.sha256(f"{node}/{index}".encode()).hexdigest()
        uuid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
        device: JsonObject = {
            "id": f"GPU-{uuid}",
            "index": index,
            "count": self.slots,
            "devmem": self.memory_mib,
            "devcore": 100,
            "type": self.model,
            "numa": 0 if index < (self.devices + 1) // 2 else 1,
            "mode": "hami-core",
            "health": True,
        }
        return {key: value for key, value in device.items() if value}


EXAMPLE_FLEET = (
    GpuNodes("gpu-node", 4, "Tesla-V100-32GB", "NVIDIA-Tesla V100-SXM2-32GB", 8, 32_768, "96", "768Gi"),
    GpuNodes("gpu-a100", 2, "NVIDIA-A100-80GB", "NVIDIA-NVIDIA A100-SXM4-80GB", 8, 81_920, "128", "1Ti"),
)
"""The cluster of the examples: four nodes of eight V100 with 32 GB, two of eight A100 with 80 GB."""


RACKS = GpuNodes(
    "h100-node", 6, "NVIDIA-H100-80GB-HBM3", "NVIDIA-NVIDIA H100 80GB HBM3", 8, 81_920, "192", "2Ti", per_rack=2
)
"""Three racks of two nodes of eight H100, for gangs whose pods must be close to each other."""

WEST_FLEET = GpuNodes("west-node", 2, "NVIDIA-L40S", "NVIDIA-NVIDIA L40S", 4, 46_068, "64", "512Gi", zone="west-a")
"""A second, smaller cluster: two nodes of four L40S."""

SEVERAL: Final = "several"
MIXED: Final = "mixed"
WEST: Final = "west"
FLEETS: Final = ("example", SEVERAL, MIXED)
_SEVERAL = ("nvidia-mig-a100", "ascend910b3")


def example_fleet() -> list[JsonObject]:
    return [manifest for nodes in EXAMPLE_FLEET for manifest in nodes.manifests()]


def fleet(name: str) -> list[JsonObject]:
    """Return the nodes of a fleet by its name: those of the examples, with SEVERAL also racks, a node of GPUs in MIG
    mode and one of NPUs, with MIXED also racks and one node of every vendor; or WEST, the fleet of another cluster."""
    if name == WEST:
        return list(WEST_FLEET.manifests())
    others = [node for node in mixed_fleet() if name == MIXED or node["metadata"]["name"] in _SEVERAL]
    return [*example_fleet(), *((*RACKS.manifests(), *others) if name in (SEVERAL, MIXED) else ())]


def read_manifests(path: Path) -> list[JsonObject]:
    """Read the objects of a YAML file with one or more documents; a List counts as its items. Raises ValueError, naming
    the document, if one is not an object with a kind; also OSError and yaml.YAMLError."""
    found: list[JsonObject] = []
    with path.open(encoding="utf-8") as stream:
        for number, document in enumerate(yaml.safe_load_all(stream), start=1):
            if document is None:
                continue
            if not isinstance(document, dict) or "kind" not in document:
                raise ValueError(f"{path}: document {number} is not a Kubernetes object with a kind")
            found.extend(document.get("items") or () if document["kind"].endswith("List") else (document,))
    return found
