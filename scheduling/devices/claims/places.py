"""Counts per node how many devices of a kind can be taken at once, and how many devices of other kinds that costs.

A kind is a device class with the selectors and the capacity of a request. Each kind that a known workload requests is
a resource of the nodes, so that placement, preemption and fragmentation treat its devices as any other resource. Kinds
may overlap: taking a device of one kind then also charges the other kind, with the largest number of its devices that
this could block. For nested and for separate kinds this is exact; for partly overlapping kinds it is conservative. A
device that can be allocated to several claims counts as often as a claim of the kind fits into its capacity; if it also
consumes counters of other devices, it counts once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from scheduling.devices.claims.cel_values import CelError
from scheduling.devices.claims.consumed_capacity import Dimension, consumed_by
from scheduling.devices.claims.evaluations import DeviceKind, Evaluations
from scheduling.devices.claims.objects import DeviceClass, DeviceId, DeviceObjects, PublishedDevice
from scheduling.model.node import Node

_PLACES_PER_STEP: Final = 4
_STEPS_PER_DEVICE: Final = 20
"""The cost of looking at a device for a new kind."""
_MAX_SHARES: Final = 1_000
"""How many claims a device counts for if they consume nothing of it."""

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
        self._shared: dict[Place, PublishedDevice] = {
            device.id: device
            for pool in objects.pools
            for device in pool.devices
            if device.is_shared and not device.consumes
        }
        self._held = objects.taken | objects.shares.keys()
        self._shapes: dict[DeviceId, int] = {}
        self._numbers: dict[tuple[tuple[str, Dimension], ...], int] = {}
        """Devices with equal dimensions have one shape."""
        self._consumption: dict[DeviceKind, dict[int, dict[str, int] | None]] = defaultdict(dict)
        """The part of a device that a claim of a kind consumes, by the shape of the device."""
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
        """Count the devices of a kind from now on; the namespace pays for the evaluation. Raises EvaluationLimit."""
        devices_of_all = sum(len(pool.devices) for pool in self._objects.pools)
        self._evaluations.spend(namespace, devices_of_all * _STEPS_PER_DEVICE)
        found = self._devices_of(kind, namespace)
        sizes: dict[Place, int] = {}
        for by_place in found.values():
            for place, devices in by_place.items():
                sizes[place] = max(sizes.get(place, 0), self._most(kind, place, devices))
        self._evaluations.spend(namespace, len(sizes) * len(self._sizes) // _PLACES_PER_STEP)
        self._of_kind[kind], self._sizes[kind], self._displaced[kind] = found, sizes, {kind: 1}
        for other, others in self._sizes.items():
            shared = sizes.keys() & others.keys() if other != kind else ()
            if shared:
                self._displaced[kind][other] = self._blocked(kind, other, shared)
                self._displaced[other][kind] = self._blocked(other, kind, shared)

    def _blocked(self, kind: DeviceKind, other: DeviceKind, places: Collection[Place]) -> int:
        """Return how many devices of another kind one device of a kind could block in one of these places, at most."""
        others = self._sizes[other]
        alone = max((others[place] for place in places if place not in self._shared), default=1)
        if not self._shared:
            return max(1, alone)
        one_of_each_shape = {self._shape(self._shared[place]): place for place in places if place in self._shared}
        return max(1, alone, *(self._blocked_shares(kind, other, place) for place in one_of_each_shape.values()))

    def _blocked_shares(self, kind: DeviceKind, other: DeviceKind, place: Place) -> int:
        device = self._shared[place]
        taken, needed = self._consumed(kind, device) or {}, self._consumed(other, device) or {}
        parts = (-(-taken[name] // amount) for name, amount in needed.items() if amount)
        return min(self._sizes[other][place], max(parts, default=0))

    def _shape(self, device: PublishedDevice) -> int:
        found = self._shapes.get(device.id)
        if found is None:
            dimensions = tuple(sorted(device.dimensions.items()))
            found = self._shapes[device.id] = self._numbers.setdefault(dimensions, len(self._numbers))
        return found

    def _consumed(self, kind: DeviceKind, device: PublishedDevice) -> dict[str, int] | None:
        """Return the part of a device that a claim of a kind consumes; None if the device cannot give as much."""
        of_kind, shape = self._consumption[kind], self._shape(device)
        if shape not in of_kind:
            of_kind[shape] = consumed_by(device.dimensions, dict(kind.capacity))
        return of_kind[shape]

    def displaced_by(self, kinds: Collection[DeviceKind]) -> set[str]:
        """Return the resources of these kinds, and of kinds that share devices with them."""
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
            if (kind.capacity or device.is_shared) and self._consumed(kind, device) is None:
                return False
            return selects(device_class.selectors, device, None) and selects(kind.selectors, device, namespace)
        except CelError:
            return False

    def _place(self, device: PublishedDevice) -> Place:
        sets = _counter_sets(device)
        return self._set_place(device.id.driver, device.id.pool, sets[0]) if sets else device.id

    def _set_place(self, driver: str, pool: str, counter_set: str) -> Place:
        return driver, pool, "counters" if (driver, pool) in self._joint else f"counters {counter_set}"

    def on_node(self, node: Node) -> Node:
        """Return the node with these devices added to its resources."""
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
            kind.resource: sum(self._most(kind, place, devices) for place, devices in by_node.get(node, {}).items())
            for kind, by_node in sorted(self._of_kind.items())
        }

    def taken(self, node: str) -> dict[str, int]:
        """Return how many of these devices are unavailable, because other claims hold them or their shared counters."""
        if not self._held:
            return {}
        found: dict[str, int] = {}
        for kind, by_node in self._of_kind.items():
            places = by_node.get(node, {}).items()
            lost = sum(
                self._most(kind, place, devices) - self._most(kind, place, devices, self._held)
                for place, devices in places
            )
            if lost:
                found[kind.resource] = lost
        return found

    def charge(self, kind: DeviceKind, count: int) -> dict[str, int]:
        """Return the resources that a request for `count` devices of a kind takes from the node."""
        others = sorted(self._displaced.get(kind, {}).items())
        return {kind.resource: count} | {other.resource: count * number for other, number in others}

    def _most(
        self, kind: DeviceKind, place: Place, devices: list[PublishedDevice], taken: Collection[DeviceId] = ()
    ) -> int:
        """Return how many of the devices of a place can be taken at once if the largest are taken first, because the
        driver may choose those; of a shared device, how many claims can take a part.
        """
        if place in self._shared:
            return self._most_shares(kind, self._shared[place], taken)
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

    def _most_shares(self, kind: DeviceKind, device: PublishedDevice, taken: Collection[DeviceId]) -> int:
        if device.id in self._objects.taken and device.id in taken:
            return 0
        held = self._objects.shares.get(device.id, {}) if device.id in taken else {}
        consumed = self._consumed(kind, device) or {}
        fits = (
            (device.dimensions[name].value - held.get(name, 0)) // amount for name, amount in consumed.items() if amount
        )
        return max(0, min(fits, default=_MAX_SHARES))

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
