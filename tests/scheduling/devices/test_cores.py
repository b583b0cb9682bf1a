"""Cores that a request takes of a device: percent points, a share, single bits; one device and many say the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.requests.cores import devices_with_cores, slices_by_cores, taken_cores
from scheduling.model.device import DeviceRequest
from scheduling.model.vendor import FitRules

PERCENT, SHARE, BITS = FitRules(), FitRules(cores_are_share=True), FitRules(cores_are_bits=True)


def request(percent: int) -> DeviceRequest:
    """A request for so many percent of a device's cores."""
    return DeviceRequest("X", 1, cores_percent=percent)


@pytest.mark.parametrize(
    ("rules", "percent", "total", "used", "taken"),
    [
        (PERCENT, 30, 100, 70, 30),
        (PERCENT, 31, 100, 70, None),
        (PERCENT, 150, 100, 0, 100),
        (PERCENT, 0, 100, 100, 0),
        (SHARE, 33, 304, 0, 100),
        (SHARE, 1, 40, 39, 1),
        (SHARE, 1, 40, 40, None),
        (SHARE, 0, 40, 40, 0),
        (BITS, 50, 0b11, 0b00, 0b01),
        (BITS, 50, 0b11, 0b01, 0b10),
        (BITS, 50, 0b11, 0b11, None),
        (BITS, 100, 0b11, 0b00, 0b11),
        (BITS, 100, 0b11, 0b10, None),
        (BITS, 50, 0b1111, 0b0010, 0b0101),
    ],
)
def test_one_device(rules: FitRules, percent: int, total: int, used: int, taken: int | None) -> None:
    assert taken_cores(request(percent), rules, total, used) == taken


@given(st.sampled_from([PERCENT, SHARE, BITS]), st.integers(0, 120), st.integers(0, 15), st.integers(0, 15))
def test_many_devices_say_what_one_says(rules: FitRules, percent: int, total: int, used: int) -> None:
    used &= total
    asked = request(percent)
    enough = devices_with_cores(asked, rules, np.array([total]), np.array([used]))
    assert bool(enough[0]) == (taken_cores(asked, rules, total, used) is not None)


@given(st.sampled_from([PERCENT, SHARE, BITS]), st.integers(1, 100), st.integers(0, 15))
def test_as_many_slices_fit_one_after_another(rules: FitRules, percent: int, total: int) -> None:
    asked = request(percent)
    slices = slices_by_cores(asked, rules, np.array([total]), np.array([0]))
    assert slices is not None
    used, placed = 0, 0
    while (taken := taken_cores(asked, rules, total, used)) is not None:
        used, placed = used + taken, placed + 1
    assert placed == slices[0]


def test_no_cores_set_no_bound() -> None:
    assert slices_by_cores(request(0), PERCENT, np.array([100]), np.array([100])) is None
