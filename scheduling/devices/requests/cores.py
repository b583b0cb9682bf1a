"""How many cores of a device a request takes, by its vendor's rule: percent points, a share, or single bits."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from scheduling.devices.arrays import Booleans, Integers
from scheduling.model.device import DeviceRequest
from scheduling.model.vendor import FitRules


def taken_cores(request: DeviceRequest, rules: FitRules, total: int, used: int) -> int | None:
    """Return the cores that a request takes of a device with `total` cores, `used` of which are taken; None if too few
    are free. These are at most 100 percent points, or a share of the device's own number of cores (at least one), or,
    if cores are bits, the lowest free bits."""
    if rules.cores_are_bits:
        return _free_bits(request, total, used)
    wanted = request.cores_percent if rules.cores_above_100 else _percentage(request)
    if rules.cores_are_share and wanted:
        wanted = max(1, total * wanted // 100)
    return wanted if total - used >= wanted else None


def devices_with_cores(request: DeviceRequest, rules: FitRules, totals: Integers, used: Integers) -> Booleans:
    """Return for each device whether it has the cores that a request takes. `totals` and `used` have the same shape."""
    enough: Booleans
    if rules.cores_are_bits:
        free = np.bitwise_count(totals & ~used)
        enough = free >= _wanted_bits(request, np.bitwise_count(totals))
    else:
        enough = totals - used >= _wanted(request, rules, totals)
    return enough


def slices_by_cores(request: DeviceRequest, rules: FitRules, totals: Integers, used: Integers) -> Integers | None:
    """Return how many slices of the request fit the devices' cores; None if it requests no cores."""
    if not _percentage(request):
        return None
    slices: Integers
    if rules.cores_are_bits:
        wanted = _wanted_bits(request, np.bitwise_count(totals))
        slices = (np.bitwise_count(totals & ~used) // np.maximum(wanted, 1)).astype(np.int64)
    else:
        slices = (totals - used) // np.maximum(_wanted(request, rules, totals), 1)
    return slices


def _percentage(request: DeviceRequest) -> int:
    return min(request.cores_percent, 100)


def _wanted(request: DeviceRequest, rules: FitRules, totals: Integers) -> Integers | int:
    wanted = request.cores_percent if rules.cores_above_100 else _percentage(request)
    return np.maximum(totals * wanted // 100, 1) if rules.cores_are_share and wanted else wanted


def _wanted_bits(request: DeviceRequest, cores: NDArray[np.uint8]) -> Integers:
    share: Integers = cores.astype(np.int64) * _percentage(request) // 100
    return np.maximum(share, 1)


def _free_bits(request: DeviceRequest, total: int, used: int) -> int | None:
    wanted = max(1, total.bit_count() * _percentage(request) // 100)
    free = [1 << bit for bit in range(total.bit_length()) if total & ~used & 1 << bit]
    return sum(free[:wanted]) if len(free) >= wanted else None
