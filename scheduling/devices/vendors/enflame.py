"""Enflame: whole GCUs, and slices of hardware profiles (DRS)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scheduling.devices.fit.device_fit import DeviceFit, RequestRefusal, matches_uuid
from scheduling.devices.fit.device_state import DeviceState, Pick
from scheduling.model.device import DeviceRequest, DeviceSlice, MigProfile
from scheduling.model.placement import DeviceRefusal

_GIB = 1024


@dataclass(slots=True)
class GcuFit(DeviceFit):
    """A device in use takes no other slice."""

    def slice_of(self, state: DeviceState) -> DeviceSlice | DeviceRefusal:
        """Return the whole device, if no slice of it is taken."""
        if self.rules.uuid_filter and not matches_uuid(state.device.uuid, self.constraints):
            return DeviceRefusal.CARD_UUID_MISMATCH
        if state.used_slots > 0:
            return DeviceRefusal.EXCLUSIVE_DEVICE_ALLOCATE_CONFLICT
        return self.made(state, self.memory_of(state), self.request.cores_percent)


@dataclass(slots=True)
class DrsFit(DeviceFit):
    """All devices of a node have the same profiles, and one profile serves the request on any device."""

    _profile: MigProfile | None = None

    def pick(self, states: Sequence[DeviceState]) -> list[Pick] | RequestRefusal:
        """Return the chosen device. A node without a profile for the request is refused as a whole."""
        profiles = {profile for state in states for profile in state.device.mig_profiles}
        self._profile = profile_for(self.request, profiles)
        if self._profile is None:
            self.counts[DeviceRefusal.MODE_NOT_FIT] += 1
            return RequestRefusal(self.request, len(states), self.counts)
        return DeviceFit.pick(self, states)

    def slice_of(self, state: DeviceState) -> DeviceSlice | DeviceRefusal:
        """Return a slice as large as the profile."""
        profile, device = self._profile, state.device
        if profile is None:
            return DeviceRefusal.MODE_NOT_FIT
        refused = self.refused_sharing(state)
        if refused is not None:
            return refused
        if device.memory_mib - state.used_memory_mib < profile.memory_mib:
            return DeviceRefusal.CARD_INSUFFICIENT_MEMORY
        if device.cores_percent - state.used_cores < profile.cores_percent:
            return DeviceRefusal.CARD_INSUFFICIENT_CORE
        if self.rules.one_device_per_pod and not self.with_the_pod(device.uuid):
            return DeviceRefusal.CARD_NOT_FOUND_CUSTOM_FILTER_RULE
        return self.made(state, profile.memory_mib, profile.cores_percent)

    @property
    def slots(self) -> int:
        """Return the slices of the profile. HAMi only checks that a slice is left, and counts one slice per
        container."""
        return 1 if self.rules.as_hami or self._profile is None else self._profile.slice_count

    def hold(self, state: DeviceState, part: DeviceSlice) -> None:
        """Count the slice. In HAMi, later containers of the pod see all its slices, but other pods see one."""
        state.hold(part)
        if self._profile is not None:
            state.used_slots += self._profile.slice_count - part.slots


def profile_for(request: DeviceRequest, profiles: Iterable[MigProfile]) -> MigProfile | None:
    """Return the profile that serves a request: the profile with that many slices, or the smallest one with enough
    memory and cores."""
    by_size = sorted(profiles, key=lambda profile: (profile.slice_count, profile.memory_mib))
    if not by_size:
        return None
    if not request.memory_mib and not request.cores_percent:
        return next((profile for profile in by_size if profile.slice_count == request.slots), None)
    memory = _memory_mib(request.memory_mib, by_size[-1].memory_mib)
    return next(
        (
            profile
            for profile in by_size
            if profile.memory_mib >= memory and profile.cores_percent >= request.cores_percent
        ),
        None,
    )


def _memory_mib(amount: int, largest_mib: int) -> int:
    """Amounts far above the largest profile in GiB count as MiB, others as GiB; both are rounded up to whole GiB."""
    gib = -(-amount // _GIB) if amount > 2 * largest_mib // _GIB else amount
    return gib * _GIB
