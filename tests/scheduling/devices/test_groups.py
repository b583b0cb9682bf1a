"""Which cards belong together: modules, networks, adapters, zones, neighbours, halves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpus.vendors import AWS_NEURON, KUNLUN, METAX_SGPU, VASTAI
from scheduling.devices.fit.groups import tasks_to_fill
from scheduling.model.device import Device, DeviceRequest
from scheduling.model.vendor import DeviceGroups, DeviceVendor
from tests.scheduling.vendor_helpers import BY_WORD, ask, devices_of_vendor, indexes, node, place, whole, why

ASCEND_910C, ASCEND_910B3 = BY_WORD["Ascend910C"], BY_WORD["Ascend910B3"]


def chosen(vendor: DeviceVendor, devices: list[Device], count: int, taken: tuple[int, ...] = ()) -> list[int] | str:
    """The indexes of the cards that a pod of `count` whole cards gets while others hold some; or why none."""
    held = [whole(devices[index]) for index in taken]
    outcome = place(
        [node("n1", devices, held)], vendor, ask(vendor, DeviceRequest(vendor.common_word, count, 0, 100, 100))
    )
    return why(outcome) if not hasattr(outcome, "pods") else indexes(outcome)


def with_attribute(devices: list[Device], name: str, values: str) -> list[Device]:
    """The cards with one character of `values` each as their attribute; a dot for none."""
    return [
        replace(device, attributes={} if value == "." else {name: value})
        for device, value in zip(devices, values, strict=True)
    ]


class TestAscend:
    def test_modules_are_taken_whole(self) -> None:
        assert chosen(ASCEND_910C, devices_of_vendor(ASCEND_910C), 2) == [6, 7]
        assert chosen(ASCEND_910C, devices_of_vendor(ASCEND_910C), 4, taken=(7,)) == [2, 3, 4, 5]

    def test_without_enough_whole_modules_there_is_no_place(self) -> None:
        refused = chosen(ASCEND_910C, devices_of_vendor(ASCEND_910C, 4), 2, taken=(0, 3))
        assert refused == "2/4 AllocatedCardsInsufficientRequest, 2/4 CardTimeSlicingExhausted"

    def test_modules_of_one_network_come_first(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910C), "NetworkID", "00111100")
        assert chosen(ASCEND_910C, devices, 4, taken=(7,)) == [2, 3, 4, 5]
        devices = with_attribute(devices_of_vendor(ASCEND_910C), "NetworkID", "00112200")
        assert chosen(ASCEND_910C, devices, 4) == [0, 1, 6, 7]

    def test_devices_of_one_network_come_first(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910B3), "NetworkID", "01001010")
        assert chosen(ASCEND_910B3, devices, 3) == [1, 4, 6]

    def test_without_one_network_that_has_enough_the_largest_come_first_and_strays_last(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910B3), "NetworkID", "..000112")
        assert chosen(ASCEND_910B3, devices, 5) == [2, 3, 4, 5, 6]
        assert chosen(ASCEND_910B3, devices, 7) == [1, 2, 3, 4, 5, 6, 7]


def test_one_adapter_first_for_vastai() -> None:
    devices = with_attribute(devices_of_vendor(VASTAI), "AIC", "01230123")
    assert chosen(VASTAI, devices, 2) in ([0, 4], [1, 5], [2, 6], [3, 7])


class TestZonesOfMetax:
    """Only whole cards, of pods that ask for it."""

    def chosen(self, count: int, zones: str, *, asked: bool, cores: int = 100) -> list[int]:
        devices = with_attribute(devices_of_vendor(METAX_SGPU, slots=16), "LinkZone", zones)
        request = DeviceRequest(METAX_SGPU.common_word, count, 100, 101, cores)
        return indexes(place([node("n1", devices)], METAX_SGPU, ask(METAX_SGPU, request, zones=asked)))

    def test_one_zone_first_then_several_then_devices_of_none(self) -> None:
        assert self.chosen(3, "11122222", asked=True) == [0, 1, 2]
        assert self.chosen(4, "111.2.2.", asked=True) == [0, 1, 2, 6]
        assert self.chosen(6, "11.....2", asked=True) == [0, 1, 4, 5, 6, 7]

    def test_others_follow_the_policy(self) -> None:
        assert self.chosen(3, "11122222", asked=False) == [5, 6, 7]
        assert self.chosen(3, "11122222", asked=True, cores=50) == [5, 6, 7]


class TestNeuron:
    """Neighbours without a gap; Trainium's torus gives 1, 4, 8 or 16."""

    def devices(self, count: int, kind: str = "inf2.48xlarge") -> list[Device]:
        made = devices_of_vendor(AWS_NEURON, count, slots=2, memory_mib=100, cores_percent=0b11)
        return [replace(device, attributes={"AWSNodeType": kind}) for device in made]

    def chosen(self, count: int, taken: tuple[int, ...] = (), kind: str = "inf2.48xlarge") -> list[int] | str:
        devices = self.devices(16, kind)
        request = DeviceRequest(AWS_NEURON.common_word, count, 0, 100, 100, 2)
        held = [whole(devices[index]) for index in taken]
        outcome = place([node("n1", devices, held)], AWS_NEURON, ask(AWS_NEURON, request))
        return why(outcome) if not hasattr(outcome, "pods") else indexes(outcome)

    def test_neighbours(self) -> None:
        assert self.chosen(3, taken=(1, 4, 8, 12)) == [9, 10, 11]

    def test_runs_begin_at_multiples_of_their_length_where_they_can(self) -> None:
        assert self.chosen(4, taken=(1,)) == [4, 5, 6, 7]
        assert self.chosen(4, taken=(1, 6, 11, 12)) == [2, 3, 4, 5]

    def test_no_run_no_place(self) -> None:
        refused = self.chosen(3, taken=(2, 5, 8, 11, 14))
        assert refused == "11/16 AllocatedCardsInsufficientRequest, 5/16 CardTimeSlicingExhausted"

    @pytest.mark.parametrize("kind", ["trn1.32xlarge", "trn1n.32xlarge"])
    def test_a_torus_is_given_in_ones_fours_eights_and_sixteens(self, kind: str) -> None:
        assert [self.chosen(count, kind=kind) for count in (4, 16)] == [[0, 1, 2, 3], list(range(16))]
        assert self.chosen(2, kind=kind) == "16/16 CardNotFoundCustomFilterRule"
        assert self.chosen(5, kind=kind) == "16/16 CardNotFoundCustomFilterRule"
        assert self.chosen(5, kind="trn1.2xlarge") == [0, 1, 2, 3, 4]


class TestKunlun:
    """Two halves of four; each card has one link across."""

    def test_the_fuller_half_is_filled_first(self) -> None:
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 2, taken=(0, 1)) == [2, 3]
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 4, taken=(0,)) == [4, 5, 6, 7]
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 8) == list(range(8))

    def test_a_single_device_fills_a_gap(self) -> None:
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 1, taken=(0, 1, 2)) == [3]
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 1, taken=(4, 5, 6)) == [7]

    def test_across_the_halves_only_over_links(self) -> None:
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 4, taken=(0, 5)) == [2, 3, 6, 7]
        assert chosen(KUNLUN, devices_of_vendor(KUNLUN), 2, taken=(0, 1, 2, 4, 5, 6)) == [3, 7]
        refused = chosen(KUNLUN, devices_of_vendor(KUNLUN), 2, taken=(0, 1, 2, 4, 5, 7))
        assert refused == "2/8 AllocatedCardsInsufficientRequest, 6/8 CardTimeSlicingExhausted"

    @pytest.mark.parametrize(
        ("held", "tasks"),
        [("11111111", 0), ("00000000", 1), ("00000011", 2), ("00000001", 3), ("00010001", 4), ("00001111", 1)],
    )
    def test_the_fewest_tasks_that_fill_a_server(self, held: str, tasks: int) -> None:
        unused = {index for index, bit in enumerate(reversed(held)) if bit == "0"}
        assert tasks_to_fill(unused) == tasks


def test_a_super_pod_that_is_none_takes_single_dies() -> None:
    single = replace(ASCEND_910C, rules=replace(ASCEND_910C.rules, groups=DeviceGroups.ATTRIBUTE, module_size=1))
    assert chosen(single, devices_of_vendor(single), 3, taken=(7,)) == [4, 5, 6]
