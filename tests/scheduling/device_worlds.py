"""Small clusters with devices: nodes of GPUs, with and without racks above them, and pod sets that ask for some."""

from __future__ import annotations

from typing import Any

from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import Topology
from scheduling.model.workload import PodSet
from tests.scheduling.world_helpers import Builder, pod_set

GPU = "nvidia.com/gpu"
MEMORY = "nvidia.com/gpumem"
PLENTY = {GPU: 100, MEMORY: 10_000_000}
RACK = "rack"


def gpu_node(name: str, device_count: int = 1, memory_mib: int = 16384, **labels: str) -> Node:
    """A node of 16 GiB devices that ten containers may share each."""
    devices = tuple(
        Device(f"{name}-gpu{index}", index, "NVIDIA", "NVIDIA-Tesla V100", 10, memory_mib, 100)
        for index in range(device_count)
    )
    return Node(name, labels, allocatable={"cpu": 64000, "memory": 2**40, "pods": 110}, devices=devices)


def gpus(count: int = 1, memory_mib: int = 8192, pods: int = 1, name: str = "main", **fields: Any) -> PodSet:
    """A pod set whose pods ask for devices and as much memory of each."""
    resources = {"limits": {GPU: str(count), MEMORY: str(memory_mib)}}
    spec = {"containers": [{"name": "c", "resources": resources}]}
    return pod_set({}, count=pods, name=name, spec=spec, **fields)


def rack_node(name: str, rack: str, device_count: int = 1, memory_mib: int = 16_000, **changes: Any) -> Node:
    """A node that lists slots of its devices, ten each, but neither their memory nor their cores, as with HAMi."""
    devices = tuple(Device(f"{name}-{i}", i, "NVIDIA", "V100", 10, memory_mib, 100) for i in range(device_count))
    allocatable = {"cpu": 64_000, "memory": 2**40, "pods": 110, GPU: 10 * device_count}
    return Node(name, {RACK: rack, HOSTNAME_LABEL: name}, allocatable=allocatable, devices=devices, **changes)


def gpu_racks(*nodes: Node, **fields: Any) -> Builder:
    """One ClusterQueue with plenty of quota over the nodes."""
    builder = Builder().flavor("tas", topology_name="racks")
    builder.world.set_topology(Topology("racks", (RACK, HOSTNAME_LABEL)))
    builder.queue("q", {"tas": fields.pop("quotas", PLENTY)}, **fields)
    for node in nodes:
        builder.world.set_node(node)
    return builder
