"""Huawei Ascend: devices split by hardware or softly, networks, and modules of two (910C)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.devices.fit.device_fit import DeviceFit, RequestRefusal
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.devices.fit.groups import by_attribute, taken_from
from scheduling.model.device import HAMI_CORE_MODE, SOFT_SPLIT, SPLIT, Device
from scheduling.model.placement import DeviceRefusal

SOFT_SPLIT_CORES = 100
"""A softly split device is shared in percent of its cores, regardless of their number."""


@dataclass(slots=True)
class AscendFit(DeviceFit):
    """Pods that request the soft split need a node that offers it; other pods may use any node, as in HAMi.

    If all devices of a node name their network, all fitting devices are collected, and networks with the most of
    them come first. Modules are taken whole.
    """

    @property
    def _soft(self) -> bool:
        return self.constraints.mode == HAMI_CORE_MODE

    @property
    def _modules(self) -> bool:
        return self.rules.module_size > 1 and self.request.count > 1

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        """Return the picked devices. A node with the wrong split is refused as a whole."""
        if self._soft and not all(self._offers_soft_split(state.device) for state in states):
            self.counts[DeviceRefusal.MODE_NOT_FIT] += 1
            return RequestRefusal(self.request, len(states), self.counts)
        found = DeviceFit.pick(self, states)
        if not self._modules or not isinstance(found, RequestRefusal):
            return found
        # As in HAMi: the number of devices in whole modules, of the number requested.
        self.counts[DeviceRefusal.ALLOCATED_CARDS_INSUFFICIENT_REQUEST] = len(self._of_whole_modules())
        return RequestRefusal(self.request, self.request.count, self.counts)

    def total_cores(self, device: Device) -> int:
        """Return the cores that pods share."""
        return SOFT_SPLIT_CORES if self._soft else device.cores_percent

    def collects_all(self, states: Sequence[DeviceState]) -> bool:
        """Return true: whole modules and networks are chosen among all devices that fit."""
        attribute = self.rules.group_attribute
        return self._modules or (bool(attribute) and all(attribute in state.device.attributes for state in states))

    def choose(self, states: Sequence[DeviceState]) -> list[Pick] | None:
        """Choose whole modules, or devices of as few networks as possible."""
        candidates = self._of_whole_modules() if self._modules else self.picks
        if len(candidates) < self.request.count:
            return None
        if len(candidates) == self.request.count:
            return candidates
        groups = by_attribute(candidates, self.rules.group_attribute)
        groups.sort(key=len, reverse=True)
        return taken_from(groups, self.request.count) if self.request.count > 1 else candidates[:1]

    def _of_whole_modules(self) -> list[Pick]:
        """Return the fitting devices of modules whose other devices all fit, too, module by module; at most the
        requested number."""
        modules: dict[int, list[Pick]] = {}
        for pick in self.picks:
            modules.setdefault(pick[0].index // self.rules.module_size, []).append(pick)
        return [pick for module in modules.values() if len(module) == self.rules.module_size for pick in module]

    def _offers_soft_split(self, device: Device) -> bool:
        split = device.attributes.get(SPLIT)
        return self.rules.soft_split if split is None else split == SOFT_SPLIT
