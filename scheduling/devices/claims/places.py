"""Counts per node how many devices of a kind can be taken at once, and what taking one kind costs the others.

A kind is a device class with the selectors of a request. Each kind that some claim asks for is a resource of the
nodes, so that placing, preemption and fragmentation treat its devices as any other resource. Kinds may overlap: a
device of one kind then also charges the other, with the most of its devices that it can keep away. For kinds within
each other, and for separate ones, this is exact; for kinds that overlap in part it is careful.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from scheduling.devices.claims.cel import CelError
from scheduling.devices.claims.matching import selects, variables
from scheduling.devices.claims.objects import DeviceId, DeviceObjects, PublishedDevice
from scheduling.model.node import Node

Place = tuple[str, str, str]
"""What devices keep each other out of: a counter set, or the device itself: (driver, pool, name)."""


class DeviceKind(NamedTuple):
    """The devices that a request asks for."""

    device_class: str
    selectors: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Its name among the resources of nodes, as messages show it."""
        name = f"devices of class {self.device_class}"
        return f"{name} where {' and '.join(self.selectors)}" if self.selectors else name


class DevicePlaces:
    """The devices of the cluster by kind and node."""

    def __init__(self, objects: DeviceObjects, kinds: Collection[DeviceKind]) -> None:
        self._objects = objects
        self._joint = {
            (pool.driver, pool.name)
            for pool in objects.pools
            if any(len(_counter_sets(device)) > 1 for device in pool.devices)
        }
        """Pools with devices of several counter sets: all their sets are one place."""
        self._counters: dict[Place, dict[tuple[str, str], int]] = defaultdict(dict)
        for pool in objects.pools:
            for (counter_set, counter), value in pool.counters.items():
                self._counters[self._set_place(pool.driver, pool.name, counter_set)][counter_set, counter] = value
        self._of_kind: dict[DeviceKind, dict[str, dict[Place, list[PublishedDevice]]]] = {}
        self.elsewhere: set[DeviceKind] = set()
        """Kinds with devices that are not bound to one node."""
        found = [(device, variables(device)) for pool in objects.pools if pool.complete for device in pool.devices]
        for kind in sorted(kinds):
            self._of_kind[kind] = self._devices_of(kind, found)
        self._displaced = {kind: self._displaced_by(kind) for kind in self._of_kind}

    def _devices_of(
        self, kind: DeviceKind, found: Iterable[tuple[PublishedDevice, Mapping[str, object]]]
    ) -> dict[str, dict[Place, list[PublishedDevice]]]:
        by_node: dict[str, dict[Place, list[PublishedDevice]]] = defaultdict(lambda: defaultdict(list))
        device_class = self._objects.classes.get(kind.device_class)
        selectors = (*device_class.selectors, *kind.selectors) if device_class is not None else ()
        for device, names in found if device_class is not None else ():
            if device.tainted or not _holds(selectors, names):
                continue
            if not device.node:
                self.elsewhere.add(kind)
                continue
            by_node[device.node][self._place(device)].append(device)
        return by_node

    def _place(self, device: PublishedDevice) -> Place:
        sets = _counter_sets(device)
        return self._set_place(device.id.driver, device.id.pool, sets[0]) if sets else device.id

    def _set_place(self, driver: str, pool: str, counter_set: str) -> Place:
        return driver, pool, "counters" if (driver, pool) in self._joint else f"counters {counter_set}"

    def on_node(self, node: Node) -> Node:
        """The node with these devices among its resources."""
        if not self._of_kind:
            return node
        return replace(
            node,
            allocatable={**node.allocatable, **self.allocatable(node.name)},
            foreign_usage={**node.foreign_usage, **self.taken(node.name)},
        )

    def allocatable(self, node: str) -> dict[str, int]:
        """How many devices of each kind the node has, by resource."""
        return {
            kind.resource: sum(self._most(place, devices) for place, devices in by_node.get(node, {}).items())
            for kind, by_node in self._of_kind.items()
        }

    def taken(self, node: str) -> dict[str, int]:
        """How many of these devices cannot be had, because claims of others hold them or what they share."""
        held = self._objects.taken
        if not held:
            return {}
        found: dict[str, int] = {}
        for kind, by_node in self._of_kind.items():
            places = by_node.get(node, {}).items()
            lost = sum(self._most(place, devices) - self._most(place, devices, held) for place, devices in places)
            if lost:
                found[kind.resource] = lost
        return found

    def charge(self, kind: DeviceKind, count: int) -> dict[str, int]:
        """What a request for so many devices of a kind takes from the node, by resource."""
        return {other.resource: count * number for other, number in self._displaced.get(kind, {kind: 1}).items()}

    def _displaced_by(self, kind: DeviceKind) -> dict[DeviceKind, int]:
        own = {place for places in self._of_kind[kind].values() for place in places}
        found = {kind: 1}
        for other, by_node in self._of_kind.items():
            if other != kind:
                shared = [
                    self._most(place, devices)
                    for places in by_node.values()
                    for place, devices in places.items()
                    if place in own
                ]
                if shared:
                    found[other] = max(1, *shared)
        return found

    def _most(self, place: Place, devices: list[PublishedDevice], taken: Collection[DeviceId] = ()) -> int:
        """How many of the devices of a place can be taken at once, if the largest are taken first: whoever allocates
        may choose those."""
        if place not in self._counters:
            return sum(device.id not in taken for device in devices)
        left = dict(self._counters[place])
        for device in self._in_place(place, taken):
            _take(left, device)
        number = 0
        for device in sorted(devices, key=lambda each: (-max(each.consumes.values(), default=0), each.id)):
            if device.id not in taken and all(left.get(key, 0) >= value for key, value in device.consumes.items()):
                _take(left, device)
                number += 1
        return number

    def _in_place(self, place: Place, taken: Collection[DeviceId]) -> list[PublishedDevice]:
        if not taken:
            return []
        pools = (pool for pool in self._objects.pools if (pool.driver, pool.name) == place[:2])
        devices = (device for pool in pools for device in pool.devices if device.id in taken)
        return [device for device in devices if self._place(device) == place]


def _take(left: dict[tuple[str, str], int], device: PublishedDevice) -> None:
    for key, value in device.consumes.items():
        left[key] = left.get(key, 0) - value


def _counter_sets(device: PublishedDevice) -> list[str]:
    return sorted({counter_set for counter_set, _ in device.consumes})


def _holds(selectors: Iterable[str], names: Mapping[str, object]) -> bool:
    try:
        return selects(selectors, names)
    except CelError:
        return False
