"""The checks of single devices that only some vendors make: split modes, slices of profiles, single cores, tenants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpus.annotations.enflame import decode_devices_drs
from gpus.vendors import (
    AMD,
    AWS_NEURON,
    CAMBRICON,
    ENFLAME_DRS,
    HYGON,
    KUNLUN_VXPU,
    METAX_GPU,
    METAX_SGPU,
    MOORE_THREADS,
)
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import PERCENTAGE_UNSET, Device, DeviceRequest, DeviceSlice
from scheduling.model.placement import Placement, PlacementRefusal, PodSetToPlace
from scheduling.model.vendor import DeviceVendor
from tests.scheduling.vendor_helpers import BY_WORD, ask, devices_of_vendor, indexes, node, place, whole, why

ASCEND = BY_WORD["Ascend910B3"]
DRS = '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'


def fill(
    vendor: DeviceVendor, devices: list[Device], *pods: Any, as_hami: bool = False
) -> list[Placement | PlacementRefusal]:
    """Place and reserve one pod after another on one node."""
    fleet = Fleet([vendor], device_policy="binpack", as_hami=as_hami)
    fleet.set_node(node("n1", devices))
    outcomes = []
    for number, pod in enumerate(pods):
        outcome = fleet.place([PodSetToPlace("main", 1, devices=pod)])
        outcomes.append(outcome)
        if isinstance(outcome, Placement):
            fleet.reserve(str(number), outcome)
    return outcomes


def part(outcome: Placement | PlacementRefusal) -> DeviceSlice:
    """The one slice that a pod got."""
    assert isinstance(outcome, Placement), outcome
    (held,) = outcome.pods[0].slices
    return held


class TestSplitModes:
    """Ascend: a pod that wants the soft split needs a node that offers it; else `ModeNotFit`, once for the node."""

    def outcome(
        self, split: str | None, wanted: str | None, *, by_default: bool = False
    ) -> Placement | PlacementRefusal:
        vendor = replace(ASCEND, rules=replace(ASCEND.rules, soft_split=by_default))
        attributes = {} if split is None else {"split": split}
        devices = devices_of_vendor(vendor, 2, memory_mib=65_536, slots=4, attributes=attributes)
        return place(
            [node("n1", devices)], vendor, ask(vendor, DeviceRequest(vendor.common_word, 1, 5000), mode=wanted)
        )

    @pytest.mark.parametrize(
        ("split", "wanted"), [("soft", "hami-core"), ("hard", None), ("soft", None), ("hard", "template")]
    )
    def test_fits(self, split: str, wanted: str | None) -> None:
        assert isinstance(self.outcome(split, wanted), Placement)

    def test_does_not_fit(self) -> None:
        outcome = self.outcome("hard", "hami-core")
        assert why(outcome) == "1/2 ModeNotFit"
        assert isinstance(outcome, PlacementRefusal)
        assert "split in another way" in outcome.message

    def test_devices_that_say_nothing_are_as_the_settings_say(self) -> None:
        assert isinstance(self.outcome(None, "hami-core", by_default=True), Placement)
        assert why(self.outcome(None, "hami-core")) == "1/2 ModeNotFit"
        assert isinstance(self.outcome(None, None), Placement)


class TestSlicesOfProfiles:
    """Enflame: the smallest profile that has enough; used slots grow by its slices."""

    def pods(self, *requests: tuple[int, int, int]) -> list[Placement | PlacementRefusal]:
        devices = list(decode_devices_drs(DRS, "Enflame", "x"))
        asked = [
            DeviceRequest("Enflame", 1, memory, PERCENTAGE_UNSET, cores, slots) for slots, memory, cores in requests
        ]
        return fill(ENFLAME_DRS, devices, *(ask(ENFLAME_DRS, request) for request in asked))

    @pytest.mark.parametrize(
        ("slices", "memory", "cores", "held"),
        [
            (1, 0, 0, (1, 6144, 17)),
            (3, 0, 0, (3, 20_480, 50)),
            (1, 6144, 17, (1, 6144, 17)),
            (1, 6145, 10, (3, 20_480, 50)),
            (1, 20_480, 40, (3, 20_480, 50)),
            (1, 20, 0, (3, 20_480, 50)),  # GiB: at most twice what the largest profile has
            (1, 80, 0, None),
            (2, 0, 0, None),
            (1, 1000, 51, (6, 40_960, 100)),
        ],
    )
    def test_the_smallest_that_has_enough(
        self, slices: int, memory: int, cores: int, held: tuple[int, int, int] | None
    ) -> None:
        outcome = self.pods((slices, memory, cores))[0]
        if held is None:
            assert why(outcome) == "1/1 ModeNotFit"
            return
        got = part(outcome)
        assert (got.slots, got.memory_mib, got.cores_percent) == held

    def test_six_single_slices_fill_a_device_though_hami_finds_too_few_cores_for_the_sixth(self) -> None:
        *placed, refused = self.pods(*[(1, 0, 0)] * 7)
        assert all(isinstance(outcome, Placement) for outcome in placed)
        assert why(refused) == "1/1 CardTimeSlicingExhausted"
        devices = list(decode_devices_drs(DRS, "Enflame", "x", as_hami=True))
        one = ask(ENFLAME_DRS, DeviceRequest("Enflame", 1, 0, PERCENTAGE_UNSET, 0, 1))
        *_, sixth = fill(ENFLAME_DRS, devices, *[one] * 6, as_hami=True)
        assert why(sixth) == "1/1 CardInsufficientCore"

    def test_a_profile_needs_all_its_slices(self) -> None:
        *placed, refused = self.pods((3, 0, 0), (1, 0, 0), (3, 0, 0))
        assert all(isinstance(outcome, Placement) for outcome in placed)
        assert why(refused) == "1/1 CardTimeSlicingExhausted"

    def test_containers_share_the_device_that_the_annotations_can_name(self) -> None:
        two = DRS.replace("}],", '},{"index":"1","minor":"1","capacity":6}],')
        devices = decode_devices_drs(two, "Enflame", "x")
        both = DeviceRequest("Enflame", 1, 0, PERCENTAGE_UNSET, 0, 3)
        outcome = place(
            [node("n1", devices)],
            ENFLAME_DRS,
            ask(ENFLAME_DRS, both, both),
            device_policy="spread",
        )
        assert isinstance(outcome, Placement)
        assert len({held.uuid for held in outcome.pods[0].slices}) == 1


class TestSingleCores:
    """Neuron: two cores per device, held as bits."""

    CORE = DeviceRequest("AWSNeuron", 1, 0, 50, 50)
    WHOLE = DeviceRequest("AWSNeuron", 1, 0, 100, 100)

    def outcomes(self, *requests: DeviceRequest, count: int = 1) -> list[Placement | PlacementRefusal]:
        ring = {"AWSNodeType": "inf2.24xlarge"}
        devices = devices_of_vendor(AWS_NEURON, count, slots=2, memory_mib=0, cores_percent=0b11, attributes=ring)
        return fill(AWS_NEURON, devices, *(ask(AWS_NEURON, request) for request in requests))

    def test_each_gets_the_lowest_free_core(self) -> None:
        first, second, third = self.outcomes(self.CORE, self.CORE, self.CORE)
        assert [part(outcome).cores_percent for outcome in (first, second)] == [0b01, 0b10]
        assert why(third) == "1/1 CardTimeSlicingExhausted"

    def test_a_whole_device_needs_both(self) -> None:
        whole_one, core = self.outcomes(self.WHOLE, self.CORE)
        assert (part(whole_one).cores_percent, part(whole_one).slots) == (0b11, 1)
        assert why(core) == "1/1 CardInsufficientCore"
        _, refused = self.outcomes(self.CORE, self.WHOLE)
        assert why(refused) == "1/1 CardInsufficientCore"

    def test_several_whole_devices_pass_over_those_that_are_shared(self) -> None:
        shared, several = self.outcomes(self.CORE, replace(self.WHOLE, count=2), count=4)
        assert indexes(several) == [0, 1]
        assert indexes(shared) == [3]

    def test_containers_of_a_pod_get_cores_of_their_own(self) -> None:
        devices = devices_of_vendor(AWS_NEURON, 1, slots=2, memory_mib=0, cores_percent=0b11)
        outcome = place([node("n1", devices)], AWS_NEURON, ask(AWS_NEURON, self.CORE, self.CORE))
        assert isinstance(outcome, Placement)
        assert [held.cores_percent for held in outcome.pods[0].slices] == [0b01, 0b10]


class TestTenants:
    """MetaX sGPU: one QoS policy per device in use; application classes among themselves."""

    def outcome(self, *pods: tuple[int, dict[str, str]], **fields: Any) -> str | int:
        """The index of the device that the last of some pods gets, or its refusal."""
        asked = [
            ask(METAX_SGPU, DeviceRequest(METAX_SGPU.common_word, 1, 100, 101, cores), **wants) for cores, wants in pods
        ]
        devices = devices_of_vendor(METAX_SGPU, fields.pop("count", 1), slots=16, **fields)
        *_, last = fill(METAX_SGPU, devices, *asked)
        return part(last).index if isinstance(last, Placement) else why(last)

    BEST, FIXED = {"qos_policy": "best-effort"}, {"qos_policy": "fixed-share"}
    ONLINE = {"app_class": "online"}
    OFFLINE = {"qos_policy": "best-effort", "app_class": "offline"}

    def test_the_first_tenant_sets_the_policy(self) -> None:
        assert self.outcome((30, self.BEST), (30, self.BEST)) == 0
        assert self.outcome((30, self.BEST), (30, self.FIXED)) == "1/1 CardQosPolicyMismatch"
        assert self.outcome((30, self.BEST), (30, self.FIXED), count=2) == 0

    def test_an_unused_device_takes_any_whatever_its_node_still_says(self) -> None:
        assert self.outcome((30, self.FIXED), attributes={"QosPolicy": "best-effort"}) == 0

    def test_of_tenants_that_are_not_known_the_node_tells_the_policy(self) -> None:
        devices = devices_of_vendor(METAX_SGPU, 1, slots=16, attributes={"QosPolicy": "best-effort"})
        held = [DeviceSlice("d0", "", 100, 30, 0, METAX_SGPU.common_word)]
        request = DeviceRequest(METAX_SGPU.common_word, 1, 100, 101, 30)
        assert why(place([node("n1", devices, held)], METAX_SGPU, ask(METAX_SGPU, request, **self.FIXED))) == (
            "1/1 CardQosPolicyMismatch"
        )
        assert isinstance(
            place([node("n1", devices, held)], METAX_SGPU, ask(METAX_SGPU, request, **self.BEST)), Placement
        )

    def test_whole_devices_are_not_shared(self) -> None:
        assert self.outcome((100, self.FIXED), attributes={"QosPolicy": "best-effort"}) == 0
        assert self.outcome((30, self.BEST), (100, self.FIXED)) == "1/1 CardInsufficientCore"

    def test_classes_stay_among_themselves(self) -> None:
        assert self.outcome((30, self.OFFLINE), (30, self.ONLINE)) == 0
        assert self.outcome((30, self.ONLINE), (30, self.OFFLINE)) == "1/1 CardAppClassMismatch"
        assert self.outcome((30, self.ONLINE), (30, self.ONLINE)) == 0
        assert self.outcome((30, self.BEST), (30, self.ONLINE)) == "1/1 CardAppClassMismatch"
        assert self.outcome((30, self.OFFLINE), (30, self.BEST)) == "1/1 CardAppClassMismatch"

    def test_an_online_pod_prefers_an_empty_device_then_offline_ones(self) -> None:
        assert self.outcome((30, self.OFFLINE), (30, self.ONLINE), count=2) == 0
        assert self.outcome((60, self.ONLINE), (60, self.OFFLINE), (30, self.ONLINE), count=2) == 1

    def test_a_tenant_that_left_counts_no_more(self) -> None:
        fleet = Fleet([METAX_SGPU])
        fleet.set_node(node("n1", devices_of_vendor(METAX_SGPU, 1, slots=16)))

        def try_place(**wants: str) -> Placement | PlacementRefusal:
            pod = ask(METAX_SGPU, DeviceRequest(METAX_SGPU.common_word, 1, 100, 101, 30), **wants)
            return fleet.place([PodSetToPlace("main", 1, devices=pod)])

        first = try_place(**self.BEST)
        assert isinstance(first, Placement)
        fleet.reserve("first", first)
        assert why(try_place(**self.FIXED)) == "1/1 CardQosPolicyMismatch"
        fleet.release("first")
        assert not any(fleet.table.tenants.values())
        assert isinstance(try_place(**self.FIXED), Placement)


def test_a_device_of_kunlun_holds_slices_of_one_size() -> None:
    devices = devices_of_vendor(KUNLUN_VXPU, 1, slots=4, memory_mib=98_304)
    quarter, half = (ask(KUNLUN_VXPU, DeviceRequest("XPU", 1, memory)) for memory in (24_576, 49_152))
    *_, same, other = fill(KUNLUN_VXPU, devices, quarter, quarter, half)
    assert isinstance(same, Placement)
    assert why(other) == "1/1 NumaNotFit"


def test_containers_on_moore_threads_share_a_device() -> None:
    devices = devices_of_vendor(MOORE_THREADS, 2, slots=100, memory_mib=49_152, cores_percent=16)
    one = DeviceRequest("Mthreads", 1, 8192)
    outcome = place([node("n1", devices)], MOORE_THREADS, ask(MOORE_THREADS, one, one), device_policy="spread")
    assert isinstance(outcome, Placement)
    assert len({held.uuid for held in outcome.pods[0].slices}) == 1


@pytest.mark.parametrize(("percent", "units"), [(25, 76), (33, 100), (67, 203), (100, 304)])
def test_amd_cores_are_a_share_of_the_compute_units(percent: int, units: int) -> None:
    devices = devices_of_vendor(AMD, 1, slots=10, memory_mib=196_608, cores_percent=304)
    request = DeviceRequest("AMD", 1, 1000, PERCENTAGE_UNSET, percent)
    assert part(place([node("n1", devices)], AMD, ask(AMD, request))).cores_percent == units


def test_amd_gives_at_least_one_unit_and_knows_no_exclusive_devices() -> None:
    devices = devices_of_vendor(AMD, 1, slots=10, memory_mib=1000, cores_percent=40)
    one = ask(AMD, DeviceRequest("AMD", 1, 100, PERCENTAGE_UNSET, 1))
    rest = ask(AMD, DeviceRequest("AMD", 1, 100, PERCENTAGE_UNSET, 97))
    first, second, third = fill(AMD, devices, one, rest, one)
    assert [part(outcome).cores_percent for outcome in (first, second, third)] == [1, 38, 1]


@pytest.mark.parametrize("vendor", [METAX_GPU, CAMBRICON, HYGON], ids=lambda vendor: vendor.common_word)
def test_a_whole_device_is_given_once(vendor: DeviceVendor) -> None:
    devices = devices_of_vendor(vendor)
    request = DeviceRequest(vendor.common_word, 7, 0, 100, 100)
    held = [whole(devices[0])]
    assert indexes(place([node("n1", devices, held)], vendor, ask(vendor, request))) == list(range(1, 8))
    refused = place([node("n1", devices, held)], vendor, ask(vendor, replace(request, count=8)))
    assert why(refused) == "1/8 CardTimeSlicingExhausted, 7/8 AllocatedCardsInsufficientRequest"
