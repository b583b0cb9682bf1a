"""Changes of nodes and devices as values: added, cordoned, drained, lost, back in service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice

from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.vocabulary import EvictionReason
from scheduling.model.workload import Workload
from scheduling.studio.world_changes import evict_and_requeue
from scheduling.world import World


@dataclass(frozen=True, slots=True)
class AddNodes:
    """Adds `count` nodes like the node `like`, with its devices, healthy and empty. Raises KeyError if the World lacks
    that node."""

    like: str
    count: int

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        pattern = world.objects.nodes[self.like]
        suffixes = (f"added-{number}" for number in count(1))
        free = (suffix for suffix in suffixes if f"{self.like}-{suffix}" not in world.objects.nodes)
        for suffix in islice(free, self.count):
            world.set_node(_empty_copy(pattern, suffix))


@dataclass(frozen=True, slots=True)
class CordonNode:
    """The node, or one of its devices, accepts no further pods; its running pods stay. Raises KeyError like
    `AddNodes`."""

    name: str
    device: str = ""

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        node = world.objects.nodes[self.name]
        if self.device:
            world.set_node(_with_device(node, self.device, lambda device: replace(device, cordoned=True)))
        else:
            world.set_node(replace(node, unschedulable=True))


@dataclass(frozen=True, slots=True)
class DrainNode:
    """An operator drains the node, or one of its devices: it is cordoned, and the workloads placed on it are evicted
    and wait again. Their pods stop immediately. Pods of other schedulers stay. Raises KeyError like `AddNodes`."""

    name: str
    device: str = ""

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        held = world.objects.workloads_placed_on(self.name, self.device)
        CordonNode(self.name, self.device).apply(world, now)
        place = f"{self.name}/{self.device}" if self.device else self.name
        for key in held:
            evict_and_requeue(world, key, EvictionReason.DRAINED, f"Moved away from {place}", now)


@dataclass(frozen=True, slots=True)
class LoseNode:
    """The node, or one of its devices, fails: the workloads on it are evicted, and wait again. Workloads with a
    topology first try to replace the node, as in a cycle. Raises KeyError like `AddNodes`."""

    name: str
    device: str = ""

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        node = world.objects.nodes[self.name]
        held = world.objects.workloads_on(self.name, self.device)
        if self.device:
            world.set_node(_with_device(node, self.device, lambda device: replace(device, health=False)))
        else:
            world.delete_node(self.name)
        lost = f"Device {self.device} of node {self.name} failed" if self.device else f"Nodes failed: {self.name}"
        for key in held:
            self._fail(world, key, lost, now)

    def _fail(self, world: World, key: str, message: str, now: float) -> None:
        workload = world.workload(key)
        assert workload is not None  # it holds a part of the node
        if not self.device and _has_topology(workload):
            world.set_workload(replace(workload, unhealthy_nodes=(*workload.unhealthy_nodes, self.name)), now)
            return
        evict_and_requeue(world, key, EvictionReason.NODE_FAILURES, message, now)


@dataclass(frozen=True, slots=True)
class ReturnNode:
    """The node, and all its devices, are in service again. Raises KeyError like `AddNodes`."""

    name: str

    def apply(self, world: World, now: float) -> None:
        """Apply the change."""
        world.set_node(in_service(world.objects.nodes[self.name]))


NodeChange = AddNodes | CordonNode | DrainNode | LoseNode | ReturnNode


def in_service(node: Node) -> Node:
    """Return the node as ready and schedulable, with all its devices healthy and not cordoned."""
    devices = tuple(replace(device, health=True, cordoned=False) for device in node.devices)
    return replace(node, ready=True, unschedulable=False, devices=devices, unhealthy_vendors=frozenset())


def _empty_copy(pattern: Node, suffix: str) -> Node:
    """Return a node in service without pods, whose name, host name and UUIDs end with the suffix."""
    uuids = {device.uuid: f"{device.uuid}-{suffix}" for device in pattern.devices}
    name = f"{pattern.name}-{suffix}"
    labels = {key: name if key == HOSTNAME_LABEL else value for key, value in pattern.labels.items()}
    whole = in_service(pattern)
    return replace(
        whole,
        name=name,
        labels=labels,
        foreign_usage={},
        found=(),
        external_usage={},
        devices=tuple(_renamed(device, uuids) for device in whole.devices),
    )


def _renamed(device: Device, uuids: Mapping[str, str]) -> Device:
    scores = {uuids.get(uuid, uuid): score for uuid, score in device.pair_scores.items()}
    return replace(device, uuid=uuids[device.uuid], pair_scores=scores)


def _with_device(node: Node, uuid: str, change: Callable[[Device], Device]) -> Node:
    """Return the node with one device changed; raises KeyError if it has no such device."""
    if all(device.uuid != uuid for device in node.devices):
        raise KeyError(uuid)
    devices = tuple(change(device) if device.uuid == uuid else device for device in node.devices)
    return replace(node, devices=devices)


def _has_topology(workload: Workload) -> bool:
    assignments = workload.admission.pod_set_assignments if workload.admission is not None else ()
    return any(assignment.topology_assignment is not None for assignment in assignments)
