"""Compares the quota of a flavor with the capacity of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.model.node import Node
from scheduling.model.quantity import NANOS
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.resources import Transformation
from scheduling.model.selectors import matches_node_selector
from scheduling.model.vendor import DeviceVendor


@dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """One resource of a flavor, in base units: the sum of its nominal quotas, the capacity of its nodes, and the
    requests of unmanaged pods there.
    """

    resource: str
    promised: int
    allocatable: int
    used_by_others: int

    @property
    def is_exceeded(self) -> bool:
        """Return whether the quota exceeds the capacity of the nodes."""
        return self.promised > self.allocatable

    @property
    def free(self) -> int:
        """Return the capacity of the nodes that pods of others leave."""
        return max(0, self.allocatable - self.used_by_others)

    def share(self, basis_points: int, headroom: int) -> int:
        """Return the quota that follows the nodes: a share (in hundredths of a percent) of the free capacity, minus the
        headroom."""
        return max(0, self.free * basis_points // _ALL_BASIS_POINTS - headroom)


_ALL_BASIS_POINTS = 10_000


def flavor_capacity(
    flavor: ResourceFlavor,
    nodes: Iterable[Node],
    promised: Mapping[str, int],
    vendors: Sequence[DeviceVendor],
    transformations: Sequence[Transformation] = (),
) -> list[FlavorCapacity]:
    """Return every resource with a quota, sorted by name.

    Nodes out of service count too, because a cordon is temporary. A node that does not report a resource has none of
    it; the capacity of a resource that only transformations produce is computed from the nodes' own resources.
    """
    reached = [node for node in nodes if matches_node_selector(flavor.node_labels, node.selectable_labels)]
    of_devices = _device_amounts(reached, vendors)

    def stated(resource: str) -> int:
        return of_devices.get(resource, sum(node.allocatable.get(resource, 0) for node in reached))

    def used(resource: str) -> int:
        return sum(node.foreign_usage.get(resource, 0) for node in reached)

    return [
        FlavorCapacity(
            resource,
            amount,
            stated(resource) or _made_of(resource, stated, transformations),
            used(resource) if stated(resource) else _made_of(resource, used, transformations),
        )
        for resource, amount in sorted(promised.items())
    ]


def _made_of(resource: str, stated: Callable[[str], int], transformations: Iterable[Transformation]) -> int:
    """Return the amount that transformations produce from the nodes' resources. If one multiplies by the number of
    devices, the sum over all devices is that product already."""
    made = ((rule.outputs.get(resource, 0), rule.input) for rule in transformations)
    return sum(factor * stated(source) // NANOS for factor, source in made if factor)


def _device_amounts(nodes: Iterable[Node], vendors: Sequence[DeviceVendor]) -> dict[str, int]:
    """Return the amounts of registered devices under their vendors' resource names: slots, memory in the vendor's unit,
    percent of cores."""
    rows = {vendor.common_word: vendor.resources for vendor in vendors}
    amounts: dict[str, int] = {}
    for device in (device for node in nodes for device in node.devices):
        resources = rows.get(device.vendor)
        if resources is None:
            continue
        for name, amount in (
            (resources.count, device.slots),
            (resources.memory, device.memory_mib // resources.memory_unit_mib),
            (resources.cores, device.cores_percent),
        ):
            if name:
                amounts[name] = amounts.get(name, 0) + amount
    return amounts
