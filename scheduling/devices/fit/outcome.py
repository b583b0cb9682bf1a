"""The outcome of a pod on a node, as input of the vendors' node scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.devices.fit.device_state import DeviceState
from scheduling.model.device import DeviceSlice
from scheduling.model.node import Node
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import DeviceVendor

Containers = Sequence[Sequence[DeviceSlice]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a pod on a node: its slices per container, the node's devices before, and the node policy."""

    node: Node
    states: Sequence[DeviceState]
    containers: Containers
    node_policy: str

    def slices(self, vendor: str) -> list[DeviceSlice]:
        """Return the slices of one vendor's devices."""
        return [part for container in self.containers for part in container if part.vendor == vendor]


def attributes_of(states: Iterable[DeviceState], name: str) -> dict[str, str]:
    """Return the attribute of each device that has it, by UUID."""
    return {state.device.uuid: state.device.attributes[name] for state in states if name in state.device.attributes}


def same_group_score(outcome: Outcome, vendor: DeviceVendor, _: DeviceConstraints) -> float:
    """For each container, the share of its devices in the largest group; 0 if a device is in no group."""
    groups = attributes_of(outcome.states, vendor.rules.group_attribute)
    shares = 0.0
    for container in outcome.containers:
        held = Counter(groups.get(part.uuid) for part in container if part.vendor == vendor.common_word)
        if None in held:
            return 0.0
        if held:
            shares += max(held.values()) / held.total()
    return shares * vendor.rules.group_weight
