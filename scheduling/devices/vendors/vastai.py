"""Vastai: devices are whole devices, or dies of an adapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from scheduling.devices.fit.device_fit import DeviceFit, RequestRefusal
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.devices.fit.groups import by_attribute, taken_from
from scheduling.devices.fit.outcome import Outcome, attributes_of, same_group_score
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import DeviceVendor

STRATEGY, DIE = "DeviceStrategy", "die"
"""The attribute that holds a device's kind, and its value for dies."""


@dataclass(slots=True)
class VastaiFit(DeviceFit):
    """Several dies come from the adapters with the most free dies. With `mutex`, an adapter is exclusive."""

    _occupied_adapters: frozenset[str] = field(default=frozenset())

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        if self.collects_all(states):
            attribute = self.rules.group_attribute
            in_use = (state.device.attributes for state in states if state.used_slots)
            self._occupied_adapters = frozenset(found[attribute] for found in in_use if attribute in found)
        return DeviceFit.pick(self, states)

    def collects_all(self, states: Sequence[DeviceState]) -> bool:
        """Return true: adapters are chosen among all dies that fit."""
        return bool(states) and states[-1].device.attributes.get(STRATEGY) == DIE

    def choose(self, states: Sequence[DeviceState]) -> list[Pick] | None:
        """Choose dies of as few adapters as possible."""
        if len(self.picks) == self.request.count:
            return self.picks
        groups = by_attribute(self.picks, self.rules.group_attribute)
        groups.sort(key=len, reverse=True)
        return taken_from(groups, self.request.count) if self.request.count > 1 else self.picks[:1]

    def occupied(self, state: DeviceState) -> bool:
        """Return whether the device or its adapter is in use."""
        adapter = state.device.attributes.get(self.rules.group_attribute)
        return state.used_slots > 0 or adapter in self._occupied_adapters


def dies_score(outcome: Outcome, vendor: DeviceVendor, constraints: DeviceConstraints) -> float:
    """Return the share of each container's dies that are on one adapter; 0 for whole devices."""
    strategies = attributes_of(outcome.states, STRATEGY)
    if any(strategies.get(part.uuid, DIE) != DIE for part in outcome.slices(vendor.common_word)):
        return 0.0
    return same_group_score(outcome, vendor, constraints)
