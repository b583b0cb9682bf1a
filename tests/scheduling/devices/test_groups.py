"""Which devices belong together: modules, networks, adapters, zones, neighbours, halves."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpus.vendors import AWS_NEURON, KUNLUN, METAX_SGPU, VASTAI
from scheduling.devices.vendors.kunlun import broken_halves
from scheduling.model.device import Device, DeviceRequest
from scheduling.model.vendor import DeviceVendor
from tests.scheduling.vendor_helpers import BY_WORD, ask, devices_of_vendor, indexes, node, place, whole, why

ASCEND_910C, ASCEND_910B3 = BY_WORD["Ascend910C"], BY_WORD["Ascend910B3"]


def chosen(vendor: DeviceVendor, devices: list[Device], count: int, taken: tuple[int, ...] = ()) -> list[int] | str:
    """The indexes of the devices that a pod of `count` whole devices gets while others hold some; or why none."""
    held = [whole(devices[index]) for index in taken]
    outcome = place(
        [node("n1", devices, held)], vendor, ask(vendor, DeviceRequest(vendor.common_word, count, 0, 100, 100))
    )
    return why(outcome) if not hasattr(outcome, "pods") else indexes(outcome)


def with_attribute(devices: list[Device], name: str, values: str) -> list[Device]:
    """The devices with one character of `values` each as their attribute; a dot for none."""
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
        assert refused == "0/2 AllocatedCardsInsufficientRequest, 2/2 CardTimeSlicingExhausted"

    def test_modules_of_one_network_come_first(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910C), "NetworkID", "00111100")
        assert chosen(ASCEND_910C, devices, 4, taken=(7,)) == [2, 3, 4, 5]
        devices = with_attribute(devices_of_vendor(ASCEND_910C), "NetworkID", "00112200")
        assert chosen(ASCEND_910C, devices, 4) == [0, 1, 6, 7]

    def test_the_network_with_the_most_devices_comes_first(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910B3), "NetworkID", "01001010")
        assert chosen(ASCEND_910B3, devices, 3) == [3, 5, 7]
        assert chosen(ASCEND_910B3, devices, 6) == [0, 2, 3, 5, 6, 7]

    def test_where_a_device_names_no_network_the_first_in_order_are_taken(self) -> None:
        devices = with_attribute(devices_of_vendor(ASCEND_910B3), "NetworkID", ".1001010")
        assert chosen(ASCEND_910B3, devices, 3) == [5, 6, 7]


class TestVastai:
    def dies(self, adapters: str) -> list[Device]:
        """Dies of these adapters."""
        devices = with_attribute(devices_of_vendor(VASTAI, len(adapters)), "AIC", adapters)
        return [replace(each, attributes={**each.attributes, "DeviceStrategy": "die"}) for each in devices]

    def test_dies_come_from_the_adapter_with_the_most(self) -> None:
        assert chosen(VASTAI, self.dies("01110012"), 2) == [3, 6]

    def test_under_mutex_an_adapter_is_exclusive(self) -> None:
        devices = self.dies("0011")
        pod = ask(VASTAI, DeviceRequest(VASTAI.common_word, 1, 0, 100, 0))
        held = [whole(devices[3])]
        assert indexes(place([node("n1", devices, held)], VASTAI, pod, device_policy="mutex")) == [1]
        both = ask(VASTAI, DeviceRequest(VASTAI.common_word, 3, 0, 100, 0))
        assert why(place([node("n1", devices, held)], VASTAI, both, device_policy="mutex")) == (
            "1/4 CardTimeSlicingExhausted, 1/4 ExclusiveDeviceAllocateConflict, 2/4 AllocatedCardsInsufficientRequest"
        )

    def test_whole_devices_follow_the_policy(self) -> None:
        devices = with_attribute(devices_of_vendor(VASTAI, 4), "DeviceStrategy", "cccc")
        assert chosen(VASTAI, devices, 2) == [2, 3]


class TestZonesOfMetax:
    """Pods with all cores of their devices."""

    def chosen(self, count: int, zones: str, *, cores: int = 100, **wants: str) -> list[int]:
        devices = with_attribute(devices_of_vendor(METAX_SGPU, slots=16), "LinkZone", zones)
        request = DeviceRequest(METAX_SGPU.common_word, count, 100, 101, cores)
        return indexes(place([node("n1", devices)], METAX_SGPU, ask(METAX_SGPU, request, **wants)))

    def test_one_zone_first_then_several_then_devices_of_none(self) -> None:
        assert self.chosen(3, "11122222") == [0, 1, 2]
        assert self.chosen(4, "111.2.2.") == [1, 2, 4, 6]
        assert self.chosen(6, "11.....2") == [0, 1, 4, 5, 6, 7]

    def test_others_follow_the_policy(self) -> None:
        assert self.chosen(1, "11122222", app_class="offline") == [7]
        assert self.chosen(3, "11122222", cores=50) == [5, 6, 7]


class TestNeuron:
    """Neighbours without a gap: any in Inferentia's ring, 4, 8 or 16 in Trainium's torus."""

    def devices(self, count: int, kind: str = "inf2.48xlarge") -> list[Device]:
        made = devices_of_vendor(AWS_NEURON, count, slots=2, memory_mib=100, cores_percent=0b11)
        return [replace(device, attributes={"AWSNodeType": kind}) for device in made]

    def chosen(self, count: int, taken: tuple[int, ...] = (), kind: str = "inf2.48xlarge") -> list[int] | str:
        devices = self.devices(16, kind)
        request = DeviceRequest(AWS_NEURON.common_word, count, 0, 100, 100)
        held = [whole(devices[index]) for index in taken]
        outcome = place([node("n1", devices, held)], AWS_NEURON, ask(AWS_NEURON, request))
        return why(outcome) if not hasattr(outcome, "pods") else indexes(outcome)

    def test_neighbours(self) -> None:
        assert self.chosen(3, taken=(1, 4, 8, 12)) == [5, 6, 7]

    def test_runs_of_a_torus_begin_at_multiples_of_their_length(self) -> None:
        assert self.chosen(4, taken=(1,)) == [2, 3, 4, 5]
        assert self.chosen(4, taken=(1,), kind="trn1.32xlarge") == [4, 5, 6, 7]

    def test_no_run_no_place(self) -> None:
        refused = self.chosen(3, taken=(2, 5, 8, 11, 14))
        assert refused == "1/16 NumaNotFit"

    @pytest.mark.parametrize("kind", ["trn1.32xlarge", "trn1n.32xlarge"])
    def test_a_torus_is_given_in_ones_fours_eights_and_sixteens(self, kind: str) -> None:
        assert [self.chosen(count, kind=kind) for count in (4, 16)] == [[0, 1, 2, 3], list(range(16))]
        assert self.chosen(2, kind=kind) == "1/16 NumaNotFit"
        assert self.chosen(5, kind=kind) == "1/16 NumaNotFit"

    def test_several_devices_are_of_the_wanted_uuids(self) -> None:
        devices = self.devices(6)
        request = DeviceRequest(AWS_NEURON.common_word, 2, 0, 100, 100)
        wanted = {"use_uuids": ("n1-d3", "n1-d4")}
        assert indexes(place([node("n1", devices)], AWS_NEURON, ask(AWS_NEURON, request, **wanted))) == [3, 4]
        # HAMi looks at no UUIDs here.
        as_hami = place([node("n1", devices)], AWS_NEURON, ask(AWS_NEURON, request, **wanted), as_hami=True)
        assert indexes(as_hami) == [0, 1]


class TestKunlun:
    """Two halves of four; each device has one link across."""

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
        assert refused == "1/8 NumaNotFit"

    def test_halves_go_by_index_and_in_hami_by_place_in_the_sorted_list(self) -> None:
        devices = devices_of_vendor(KUNLUN, slots=100)
        held = [replace(whole(devices[index]), slots=1) for index in (0, 4)]
        pod = ask(KUNLUN, DeviceRequest(KUNLUN.common_word, 4, 0, 100, 0))
        outcomes = [place([node("n1", devices, held)], KUNLUN, pod, as_hami=as_hami) for as_hami in (False, True)]
        assert [indexes(outcome) for outcome in outcomes] == [[2, 3, 6, 7], [3, 5, 6, 7]]

    @pytest.mark.parametrize(
        ("used", "points"),
        [((), 1), ((0,), 3), ((0, 1), 2), ((0, 1, 2, 3), 1), ((0, 4), 4), (tuple(range(8)), 0)],
    )
    def test_broken_halves(self, used: tuple[int, ...], points: int) -> None:
        assert broken_halves(used) == points


def test_a_super_pod_that_is_none_takes_single_dies() -> None:
    single = replace(ASCEND_910C, rules=replace(ASCEND_910C.rules, module_size=1))
    assert chosen(single, devices_of_vendor(single), 3, taken=(7,)) == [4, 5, 6]
