"""What a pod holds of each device: the larger of its largest init container and the sum of the rest."""

from __future__ import annotations

from typing import Any

import pytest

from scheduling.devices.search.pod_usage import peak_usage
from scheduling.model.device import DeviceSlice, MigInstance, MigPlacement


def part(memory: int, cores: int = 0, *, uuid: str = "g0", **fields: Any) -> DeviceSlice:
    """A slice of a device."""
    return DeviceSlice(uuid, "n1", memory, cores, **fields)


@pytest.mark.parametrize(
    ("containers", "init", "peak"),
    [
        ([[part(3000, 30)]], 0, (3000, 30, 1)),
        ([[part(3000, 30)], [part(4000, 10)]], 0, (7000, 40, 2)),
        ([[part(8000)], [part(3000)]], 1, (8000, 0, 1)),
        ([[part(8000)], [part(9000)], [part(3000)], [part(4000)]], 2, (9000, 0, 2)),
        ([[part(100, 50, slots=3)], [part(50, 17)]], 1, (100, 50, 3)),
        ([[part(100, 0b11, slots=2)], [part(50, 0b01)], [part(50, 0b10)]], 1, (100, 0b11, 2)),
    ],
)
def test_the_largest_init_container_or_all_the_others(
    containers: list[list[DeviceSlice]], init: int, peak: tuple[int, int, int]
) -> None:
    held = peak_usage(containers, init)["g0"]
    assert (held.memory_mib, held.cores_percent, held.slots) == peak


def test_several_mig_instances_of_an_init_container_take_one_slot() -> None:
    places = [MigInstance("1g.5gb", MigPlacement(start, 1)) for start in (5, 6)]
    held = peak_usage([[part(4864, 15, mig=place) for place in places]], 1)["g0"]
    assert (held.memory_mib, held.slots, held.mig_instances) == (9728, 1, tuple(places))


def test_devices_are_apart_and_in_the_order_of_their_names() -> None:
    held = peak_usage([[part(1, uuid="g1"), part(2, uuid="g0")]], 0)
    assert [(uuid, slice_.memory_mib) for uuid, slice_ in held.items()] == [("g0", 2), ("g1", 1)]
