"""AWS Neuron: several devices must be neighbours; one device may be shared core by core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scheduling.devices.fit.device_fit import DeviceFit, RequestRefusal, matches_uuid
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.model.device import DeviceSlice
from scheduling.model.placement import DeviceRefusal

_RING_FAMILY = "inf"
"""Inferentia's devices form a ring, in which any neighbours can be used together. Trainium's form a torus."""
_OF_A_TORUS = (1, 4, 8, 16)


@dataclass(slots=True)
class NeuronFit(DeviceFit):
    """Requests for several devices: a node without free neighbours is refused as a whole."""

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        if self.request.count == 1:
            return DeviceFit.pick(self, states)
        # HAMi looks for neighbours by position in its list, sorted by score, and then takes the devices with these
        # indexes; it ignores UUIDs and `mutex`. So HAMi may assign a device in use. We do not follow that.
        ordered = states[::-1] if self.rules.as_hami else sorted(states, key=lambda state: state.index)
        start = self._start(ordered)
        by_index = {state.index: state for state in states}
        run = range(start, start + self.request.count) if start is not None else range(0)
        if self.rules.as_hami:
            chosen = [by_index[index] for index in run if index in by_index]
        else:
            chosen = [ordered[place] for place in run]
        if not chosen or any(state.used_slots for state in chosen):
            self.counts[DeviceRefusal.NUMA_NOT_FIT] += 1
            return RequestRefusal(self.request, len(states), self.counts)
        return [(state, self._whole(state)) for state in chosen]

    def refused_amounts(self, state: DeviceState, memory: int, cores: int | None) -> DeviceRefusal | None:
        """Refuse a device that lacks cores. These devices have no memory of their own, so memory is never short."""
        return DeviceRefusal.CARD_INSUFFICIENT_CORE if cores is None else None

    def _start(self, ordered: Sequence[DeviceState]) -> int | None:
        """Return the first position from which the requested number of adjacent devices is free."""
        count, step = self.request.count, 1
        if not self._in_a_ring(ordered):
            if count not in _OF_A_TORUS:
                return None
            step = count
        for start in range(0, len(ordered) - count + 1, step):
            if self._neighbours(ordered[start : start + count]):
                return start
        return None

    def _in_a_ring(self, states: Sequence[DeviceState]) -> bool:
        family = states[0].device.attributes.get(self.rules.family_attribute, "") if states else ""
        return _RING_FAMILY in family or _RING_FAMILY.capitalize() in family

    def _neighbours(self, run: Sequence[DeviceState]) -> bool:
        """Return whether these devices are free for the pod and adjacent in the product."""
        if any(state.used_slots or not state.device.health or state.device.cordoned for state in run):
            return False
        if self.rules.as_hami:
            return True
        first = run[0].index
        return all(
            state.index == first + place and matches_uuid(state.device.uuid, self.constraints)
            for place, state in enumerate(run)
        )

    def _whole(self, state: DeviceState) -> DeviceSlice:
        device = state.device
        return DeviceSlice(
            device.uuid, self.node, device.memory_mib, device.cores_percent, device.index, self.request.vendor
        )
