"""What the nodes of a flavor have, beside what quota promises of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from scheduling.model.node import Node
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import matches_node_selector
from scheduling.model.vendor import DeviceVendor


@dataclass(frozen=True, slots=True)
class FlavorCapacity:
    """One resource of a flavor, in base units: the sum of its nominal quotas, what its nodes have of it, and what pods
    of others ask for there."""

    resource: str
    promised: int
    allocatable: int
    used_by_others: int

    @property
    def is_exceeded(self) -> bool:
        """Whether more is promised than there is."""
        return self.promised > self.allocatable


def flavor_capacity(
    flavor: ResourceFlavor, nodes: Iterable[Node], promised: Mapping[str, int], vendors: Sequence[DeviceVendor]
) -> list[FlavorCapacity]:
    """Every resource of which something is promised, by name. Nodes count whether or not they are in service: what is
    cordoned today is there tomorrow. A node that states no amount of a resource has none of it."""
    reached = [node for node in nodes if matches_node_selector(flavor.node_labels, node.selectable_labels)]
    of_devices = _device_amounts(reached, vendors)
    return [
        FlavorCapacity(
            resource,
            amount,
            of_devices.get(resource, sum(node.allocatable.get(resource, 0) for node in reached)),
            sum(node.foreign_usage.get(resource, 0) for node in reached),
        )
        for resource, amount in sorted(promised.items())
    ]


def _device_amounts(nodes: Iterable[Node], vendors: Sequence[DeviceVendor]) -> dict[str, int]:
    """What registered devices have of their vendors' resources: slots, memory in its unit, percent of cores."""
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
