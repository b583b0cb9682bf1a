"""Kunlun: eight devices in two halves of four; each is linked with all of its half and with one of the other half."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from scheduling.devices.fit.device_fit import DeviceFit, RequestRefusal, matches_uuid
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.devices.fit.outcome import Outcome
from scheduling.model.device import DeviceSlice
from scheduling.model.placement import DeviceConstraints, DeviceRefusal
from scheduling.model.vendor import DeviceVendor

HALF = 4
SERVER = 2 * HALF
_FULLEST_FIRST = {1: (1, 3, 2, 4), 2: (2, 3, 4), 4: (4,)}
"""Per requested count, the numbers of free devices that a half may have, best first: keeps pairs and halves whole."""
_ACROSS = ((0, 1, 4, 5), (2, 3, 6, 7), (0, 2, 4, 6), (1, 3, 5, 7), (0, 3, 4, 7), (1, 2, 5, 6))
"""Groups of four linked across the halves, in order of preference."""

_BEST, _STEP = 3000, 1000


@dataclass(slots=True)
class XpuFit(DeviceFit):
    """Whole devices. A node without linked devices for the request is refused as a whole."""

    _unwanted: set[str] = field(default_factory=set)

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        """Return the picked devices, in the order of the half or of the links."""
        # HAMi treats the first four of its list, sorted by score, as a half.
        ordered = states[::-1] if self.rules.as_hami else sorted(states, key=lambda state: state.index)
        serving = [self.serves(state) for state in ordered]
        chosen = linked(ordered, serving, self.request.count)
        if not chosen:
            return RequestRefusal(self.request, len(states), self._reasons(states))
        return [(state, self._part(state)) for state in chosen]

    def serves(self, state: DeviceState) -> bool:
        """Return whether a device alone could serve the request."""
        if not matches_uuid(state.device.uuid, self.constraints):
            self._unwanted.add(state.device.uuid)
            return False
        return state.device.health and not state.device.cordoned and self.has_room(state)

    def has_room(self, state: DeviceState) -> bool:
        """Return whether no slice of the device is taken."""
        return not state.used_slots

    def _part(self, state: DeviceState) -> DeviceSlice:
        device = state.device
        memory, cores = self.amounts(state)
        return DeviceSlice(device.uuid, self.node, memory, cores, device.index, self.request.vendor)

    def amounts(self, state: DeviceState) -> tuple[int, int]:
        """Memory and cores of a slice: the whole device."""
        return state.device.memory_mib, state.device.cores_percent

    def _reasons(self, states: Sequence[DeviceState]) -> Counter[DeviceRefusal]:
        conflicts = self.conflicts(states)
        if conflicts:
            self.counts[DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT] += conflicts
        elif self._unwanted:
            self.counts[DeviceRefusal.CARD_UUID_MISMATCH] += len(self._unwanted)
        else:
            self.counts[DeviceRefusal.NUMA_NOT_FIT] += 1
        return self.counts

    def conflicts(self, states: Sequence[DeviceState]) -> int:
        """Return how many devices `mutex` refuses."""
        return 0

    def hold(self, state: DeviceState, part: DeviceSlice) -> None:
        """Count the slice. For whole devices, HAMi's later containers see only that they are taken."""
        state.used_slots += part.slots


@dataclass(slots=True)
class VxpuFit(XpuFit):
    """A quarter, a half or all of each device. A device holds slices of one size only."""

    def has_room(self, state: DeviceState) -> bool:
        """Return whether the device has room for another slice of this size."""
        return self._shareable(state) and not (self.mutex and state.used_slots)

    def _shareable(self, state: DeviceState) -> bool:
        memory, used = self.request.memory_mib, state.used_slots
        if not state.device.health or state.used_memory_mib + memory > state.device.memory_mib:
            return False
        return not used or state.used_memory_mib // used == memory

    def conflicts(self, states: Sequence[DeviceState]) -> int:
        """Return how many devices could serve but for `mutex`."""
        return sum(bool(state.used_slots) and self._shareable(state) for state in states) if self.mutex else 0

    def amounts(self, state: DeviceState) -> tuple[int, int]:
        return self.request.memory_mib, self.request.cores_percent

    def hold(self, state: DeviceState, part: DeviceSlice) -> None:
        state.hold(part)


def linked(ordered: Sequence[DeviceState], serving: Sequence[bool], count: int) -> list[DeviceState]:
    """Return `count` linked devices that can serve the request; empty if there are none.

    The first four of `ordered` form one half of the server. The half that is left fullest is chosen; if no half has
    enough devices, pairs and fours across the halves are tried.
    """
    if count == SERVER:
        return sorted(ordered, key=lambda state: state.index) if sum(serving) == SERVER == len(ordered) else []
    free = [state for state, serves in zip(ordered, serving, strict=True) if serves]
    halves = [
        [
            state
            for state, serves in zip(ordered[start : start + HALF], serving[start : start + HALF], strict=True)
            if serves
        ]
        for start in (0, HALF)
    ]
    if max(map(len, halves)) >= count:
        for size in _FULLEST_FIRST.get(count, ()):
            for half in halves:
                if len(half) == size:
                    return half[:count]
    return _across(free, count)


def _across(free: Sequence[DeviceState], count: int) -> list[DeviceState]:
    """Linked devices across the halves."""
    by_index = {state.index: state for state in free}
    if count == 2:
        for state in free:
            other = by_index.get((state.index + HALF) % SERVER)
            if other is not None:
                return [state, other]
    if count == HALF:
        fours = [four for four in _ACROSS if by_index.keys() >= set(four)]
        if fours:
            return [by_index[index] for index in _best_four(fours, by_index.keys())]
    return []


def _best_four(fours: Sequence[tuple[int, ...]], free: Collection[int]) -> tuple[int, ...]:
    """Return the first four; with six free devices the first four that leave a linked pair (else the last four)."""
    if len(free) != HALF + 2:
        return fours[0]
    return next((four for four in fours if _are_linked(sorted(set(free).difference(four)))), fours[-1])


def _are_linked(pair: Sequence[int]) -> bool:
    left, right = pair
    return left // HALF == right // HALF or right - left == HALF


def halves_score(outcome: Outcome, vendor: DeviceVendor, _: DeviceConstraints) -> float:
    """Score a pod best if it leaves fewer half-used halves than before. HAMi compares the usage before with the pod's
    devices alone, instead of both together."""
    word = vendor.common_word
    if vendor.rules.as_hami and any(state.device.vendor != word for state in outcome.states):
        return 0.0
    before = {state.index for state in outcome.states if state.device.vendor == word and state.used_slots}
    held = {part.index for part in outcome.slices(word)}
    after = held if vendor.rules.as_hami else before | held
    grown = broken_halves(after) - broken_halves(before)
    return float(max(0, _BEST - _STEP * (grown + 1))) if -1 <= grown <= 2 else float(_STEP)


def broken_halves(used: Collection[int]) -> int:
    """Return how broken the halves are: 0 per fully used half, 2 per half with one device in use, else 1; 1 for an
    unused server."""
    if not used:
        return 1
    left = sum(index < HALF for index in used)
    return sum({HALF: 0, 1: 2}.get(size, 1) for size in (left, len(used) - left))
