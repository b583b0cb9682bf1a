"""A device's amounts in its vendor's own units: compute units, AI cores, dies, MIG instances, DRS slices."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypedDict

from gpus.vendors import VENDORS
from scheduling.devices.vendors.vastai import DIE, STRATEGY
from scheduling.model.device import MIG_MODE, SOFT_SPLIT, SPLIT, Device, MigInstance
from scheduling.model.vendor import ChipModel, DeviceUnits

_BY_WORD = {vendor.common_word: vendor for vendor in VENDORS}
PERCENT = "%"


class DeviceAmounts(TypedDict):
    """The terms for a device and its shares, and its cores. With `cores_unit` "%" the numbers are percent."""

    device: str
    parts: str
    cores_unit: str
    cores: int
    used_cores: int


def device_amounts(
    vendor: str, mode: str, attributes: Mapping[str, str], cores: int, used_cores: int, slices_mib: Iterable[int]
) -> DeviceAmounts:
    """Return the amounts of one device: cores as the device counts them, memory as the sum of its slices."""
    row = _BY_WORD.get(vendor)
    units = DeviceUnits() if row is None else row.units
    device = "die" if attributes.get(STRATEGY) == DIE else units.device
    parts = "MIG instances" if mode == MIG_MODE else units.parts
    if mode == MIG_MODE:  # the cores of each profile are rounded up: three instances may come to 101 %
        used_cores = min(used_cores, cores)
    if row is not None and row.rules.cores_are_bits:
        cores, used_cores = cores.bit_count(), used_cores.bit_count()
    if row is not None and row.rules.split_modes and row.model is not None:
        if attributes.get(SPLIT) == SOFT_SPLIT:
            return DeviceAmounts(device=device, parts=parts, cores_unit=PERCENT, cores=cores, used_cores=used_cores)
        # The hardware's templates have cores of their own, which no pod requests and HAMi does not count.
        used_cores = sum(_cores_of(row.model, memory) for memory in slices_mib)
    return DeviceAmounts(device=device, parts=parts, cores_unit=units.cores, cores=cores, used_cores=used_cores)


class MigInstanceJson(TypedDict):
    """A MIG instance and the memory slices of the device that it takes."""

    profile: str
    start: int
    size: int


def mig_instance(instance: MigInstance) -> MigInstanceJson:
    return {
        "profile": instance.profile,
        "start": instance.placement.start,
        "size": instance.placement.size,
    }


def mig_places(device: Device) -> int:
    """Return how many memory slices a device in MIG mode has; 0 in other modes, and where its profiles name no
    places."""
    if device.mode != MIG_MODE:
        return 0
    ends = (place.start + place.size for profile in device.mig_profiles for place in profile.placements)
    return max(ends, default=0)


def _cores_of(model: ChipModel, memory_mib: int) -> int:
    return next((cut.cores for cut in model.templates if memory_mib <= cut.memory_mib), model.cores)
