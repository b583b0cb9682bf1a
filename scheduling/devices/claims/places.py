"""Counts per node how many devices of a kind can be taken at once, and how many devices of other kinds that costs.

A kind is a device class with the selectors of a request. Each kind that a known workload requests is a resource of the
nodes, so that placement, preemption and fragmentation treat its devices as any other resource. Kinds may overlap:
taking a device of one kind then also charges the other kind, with the largest number of its devices that this could
block. For nested and for separate kinds this is exact; for partly overlapping kinds it is conservative.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.evaluations import DeviceKind, Evaluations
from scheduling.devices.claims.objects import DeviceClass, DeviceId, DeviceObjects, PublishedDevice
from scheduling.model.node import Node

_PLACES_PER_STEP: Final = 4

Place = tuple[str, str, str]
"""A counter set, or a device itself, that two devices cannot use at the same time: (driver, pool, name)."""


class DevicePlaces:
    """The devices of the cluster by kind and node."""

    def __init__(self, objects: DeviceObjects, evaluations: Evaluations) -> None:
        self._objects = objects
        self._evaluations = evaluations
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
        self._sizes: dict[DeviceKind, dict[Place, int]] = {}
        """How many devices of a kind each place has on a node, at most."""
        self._displaced: dict[DeviceKind, dict[DeviceKind, int]] = {}
        self.elsewhere: set[DeviceKind] = set()
        """Kinds with devices that are not bound to one node."""

    @property
    def kinds(self) -> Collection[DeviceKind]:
        """The kinds that are counted."""
        return self._of_kind.keys()

    def add(self, kind: DeviceKind, namespace: str | None = None) -> None:
        """Count the devices of a kind from now on, at the namespace's cost. Raises EvaluationLimit."""
        found = self._devices_of(kind, namespace)
        sizes: dict[Place, int] = {}
        for by_place in found.values():
            for place, devices in by_place.items():
                sizes[place] = max(sizes.get(place, 0), self._most(place, devices))
        self._evaluations.spend(namespace, len(sizes) * len(self._sizes) // _PLACES_PER_STEP)
        self._of_kind[kind], self._sizes[kind], self._displaced[kind] = found, sizes, {kind: 1}
        for other, others in self._sizes.items():
            shared = sizes.keys() & others.keys() if other != kind else ()
            if shared:
                self._displaced[kind][other] = max(1, *(others[place] for place in shared))
                self._displaced[other][kind] = max(1, *(sizes[place] for place in shared))

    def displaced_by(self, kinds: Collection[DeviceKind]) -> set[str]:
        """The resources of these kinds, and of kinds that share devices with them."""
        return {other.resource for kind in kinds for other in self._displaced.get(kind, ())}

    def _devices_of(self, kind: DeviceKind, namespace: str | None) -> dict[str, dict[Place, list[PublishedDevice]]]:
        by_node: dict[str, dict[Place, list[PublishedDevice]]] = defaultdict(lambda: defaultdict(list))
        device_class = self._objects.classes.get(kind.device_class)
        if device_class is None:
            return by_node
        for device in (device for pool in self._objects.pools if pool.complete for device in pool.devices):
            if device.tainted or not self._is_of(kind, device_class, device, namespace):
                continue
            if not device.node:
                self.elsewhere.add(kind)
                continue
            by_node[device.node][self._place(device)].append(device)
        return by_node

    def _is_of(
        self, kind: DeviceKind, device_class: DeviceClass, device: PublishedDevice, namespace: str | None
    ) -> bool:
        selects = self._evaluations.selects
        try:
            return selects(device_class.selectors, device, None) and selects(kind.selectors, device, namespace)
        except CelError:
            return False

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
        """Return how many devices of each kind the node has, by resource."""
        return {
            kind.resource: sum(self._most(place, devices) for place, devices in by_node.get(node, {}).items())
            for kind, by_node in sorted(self._of_kind.items())
        }

    def taken(self, node: str) -> dict[str, int]:
        """Return how many of these devices are unavailable, because other claims hold them or their shared counters."""
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
        """Return the resources that a request for `count` devices of a kind takes from the node."""
        others = sorted(self._displaced.get(kind, {}).items())
        return {kind.resource: count} | {other.resource: count * number for other, number in others}

    def _most(self, place: Place, devices: list[PublishedDevice], taken: Collection[DeviceId] = ()) -> int:
        """Return how many of the devices of a place can be taken at once if the largest are taken first, because the
        driver may choose those.
        """
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
