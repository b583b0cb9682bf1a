"""NVIDIA: MIG instances, and groups of devices with the best links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb

from scheduling.devices.fit.device_fit import DeviceFit
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.model.device import MIG_MODE, DeviceSlice, MigInstance, MigPlacement, MigProfile
from scheduling.model.placement import DeviceRefusal

_HIGHEST_START_FIRST = ("1g.", "3g.")
_MAX_COMBINATIONS = 20_000


@dataclass(slots=True)
class NvidiaFit(DeviceFit):
    """MIG devices may serve a request several times. With `topology-aware`, links decide among the fitting devices."""

    @property
    def _linked(self) -> bool:
        return self.rules.topology_aware and self.context.policy.topology_aware

    def may_repeat(self, states: Sequence[DeviceState]) -> bool:
        """MIG devices may serve several times, unless the pod requests another mode."""
        mode = self.constraints.mode
        return (mode is None or MIG_MODE in mode) and any(state.device.mode == MIG_MODE for state in states)

    def collects_all(self, states: Sequence[DeviceState]) -> bool:
        """Return true: links are compared among all devices that fit."""
        return self._linked

    def choose(self, states: Sequence[DeviceState]) -> list[Pick] | None:
        """Choose the devices with the best links."""
        return choose_linked_devices(self.picks, self.request.count)

    def start_numa_group(self) -> None:
        """Start a group like the common fit, except that HAMi does not count discarded devices while links decide."""
        if self._linked:
            self.picks = []
        else:
            DeviceFit.start_numa_group(self)

    def take(self, state: DeviceState, collects_all: bool) -> None:
        """Pick the device if it fits; a MIG device may give several instances.

        As in HAMi, only the instances' places on the device account for each other; slots, memory and cores are
        compared with the usage before this container.
        """
        while len(self.picks) < self.request.count or collects_all:
            before = len(self.picks)
            DeviceFit.take(self, state, collects_all)
            if len(self.picks) == before or state.device.mode != MIG_MODE:
                return

    def made(self, state: DeviceState, memory: int, cores: int) -> DeviceSlice | DeviceRefusal:
        """Return the slice; on a MIG device it is as large as the instance that serves it."""
        part = DeviceFit.made(self, state, memory, cores)
        if state.device.mode != MIG_MODE or isinstance(part, DeviceRefusal):
            return part
        mine = (held.mig for picked, held in self.picks if picked is state)
        in_use = [*state.mig, *(instance for instance in mine if instance is not None)]
        chosen = choose_mig_instance(state.device.mig_profiles, in_use, memory)
        if chosen is None:
            return DeviceRefusal.CARD_MIG_TOPOLOGY_INFEASIBLE
        profile, placement = chosen
        instance = MigInstance(profile.name, placement)
        return replace(part, memory_mib=profile.memory_mib, cores_percent=profile.cores_percent, mig=instance)


def choose_mig_instance(
    profiles: Iterable[MigProfile], in_use: Sequence[MigInstance], memory_mib: int
) -> tuple[MigProfile, MigPlacement] | None:
    """Return the smallest profile with enough memory that has a free place, and the place; None if there is none.

    Profiles are tried by memory, then by slice count. `1g` and `3g` instances go to the highest free start, which keeps
    low starts free for profiles that need them; all others go to the lowest.
    """
    for profile in sorted(profiles, key=lambda profile: (profile.memory_mib, profile.slice_count)):
        if profile.memory_mib < memory_mib:
            continue
        downwards = profile.name.startswith(_HIGHEST_START_FIRST)
        for placement in sorted(profile.placements, key=lambda place: place.start, reverse=downwards):
            if not any(placement.overlaps(instance.placement) for instance in in_use):
                return profile, placement
    return None


def missing_mig_instance(profiles: Iterable[MigProfile], memory_mib: int) -> str:
    """Return why devices with these profiles have no instance with enough memory: no profile is large enough, so they
    never will, or the places of the large profiles are taken."""
    known = {(profile.memory_mib, profile.slice_count, profile.name) for profile in profiles}
    fitting = sorted(each for each in known if each[0] >= memory_mib)
    if fitting:
        names = " or ".join(dict.fromkeys(name for _, _, name in fitting))
        return f"there is no place left for an instance of {names}"
    if not known:
        return "the plugin registered no MIG profile"
    largest, _, name = max(known)
    return f"no MIG profile has {memory_mib} MiB, the largest is {name} with {largest} MiB"


def choose_linked_devices(fitting: Sequence[Pick], count: int) -> list[Pick]:
    """Choose `count` of the fitting devices, which are given in the order of trying.

    A single device is the one whose links to the other fitting devices have the lowest sum, so that good groups stay
    whole. Several devices are the combination with the highest sum of pair scores; ties go to the first combination in
    the order of trying. Beyond 20,000 combinations, the group grows device by device from the best pair.
    """
    if len(fitting) == count:
        return list(fitting)
    states = [state for state, _ in fitting]
    scores = [[_pair_score(left, right) for right in states] for left in states]
    if count == 1:
        totals = [sum(row) for row in scores]
        return [fitting[totals.index(min(totals))]]
    if comb(len(fitting), count) <= _MAX_COMBINATIONS:
        best = max(
            combinations(range(len(fitting)), count),
            key=lambda group: sum(scores[left][right] for left, right in combinations(group, 2)),
        )
        return [fitting[number] for number in best]
    return [fitting[number] for number in sorted(_grow(scores, count))]


def _grow(scores: Sequence[Sequence[int]], count: int) -> list[int]:
    everyone = range(len(scores))
    first, second = max(combinations(everyone, 2), key=lambda pair: scores[pair[0]][pair[1]])
    group = [first, second]
    while len(group) < count:
        rest = (number for number in everyone if number not in group)
        group.append(max(rest, key=lambda number: sum(scores[number][member] for member in group)))
    return group


def _pair_score(left: DeviceState, right: DeviceState) -> int:
    return 0 if left is right else left.device.pair_scores.get(right.device.uuid, 0)
