"""What vendors add to a node's score: Kunlun's bubbles, MetaX' tables and tenants, groups of Ascend and Vastai."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from gpus.vendors import KUNLUN, METAX_GPU, METAX_SGPU, VASTAI
from scheduling.devices.fit.device_state import DeviceState
from scheduling.devices.fit.outcome import Outcome
from scheduling.devices.search.fleet import Fleet
from scheduling.devices.vendors import vendor_score
from scheduling.model.device import Device, DeviceRequest, DeviceSlice
from scheduling.model.node import CountScores, Node
from scheduling.model.placement import DeviceConstraints, Placement, PodSetToPlace
from scheduling.model.vendor import NVIDIA, DeviceVendor
from tests.scheduling.vendor_helpers import BY_WORD, ask, devices_of_vendor, node, place, where, whole

ASCEND = BY_WORD["Ascend910B3"]
NONE = DeviceConstraints()


def score(
    vendor: DeviceVendor,
    devices: Sequence[Device],
    taken: Sequence[Sequence[int]],
    *,
    used: Sequence[int] = (),
    node: Node | None = None,
    policy: str = "binpack",
    cores: int = 100,
    wants: DeviceConstraints = NONE,
) -> float:
    """The vendor's score of a node whose devices of these indexes each container would take, while others are used."""
    made = [DeviceState(device, number) for number, device in enumerate(devices)]
    for index in used:
        made[index].hold(whole(devices[index]))
    containers = [
        [
            DeviceSlice(devices[i].uuid, "n1", 1, cores, i, vendor.common_word, app_class=wants.app_class)
            for i in container
        ]
        for container in taken
    ]
    return vendor_score(Outcome(node or Node("n1"), made, containers, policy), vendor, wants)


def attributed(vendor: DeviceVendor, name: str, values: str) -> list[Device]:
    """Devices with one character of `values` each as their attribute; a dot for none."""
    return [
        replace(device, attributes={} if value == "." else {name: value})
        for device, value in zip(devices_of_vendor(vendor, len(values)), values, strict=True)
    ]


class TestKunlun:
    """3000 where the pod mends a half, 1000 less for each that it breaks further."""

    @pytest.mark.parametrize(
        ("used", "taken", "points"),
        [
            ((0, 1, 2), (3,), 3000),
            ((0, 1, 2), (4, 5), 2000),
            ((0, 1, 2, 3), (4,), 1000),
            ((), (0,), 0),
            ((), tuple(range(8)), 3000),
        ],
    )
    def test_broken_halves(self, used: tuple[int, ...], taken: tuple[int, ...], points: int) -> None:
        assert score(KUNLUN, devices_of_vendor(KUNLUN), [taken], used=used) == points

    def test_the_node_whose_gap_the_pod_fills_wins_over_a_fuller_one(self) -> None:
        devices = devices_of_vendor(KUNLUN)
        nodes = [
            node("n1", devices, [whole(devices[index]) for index in (0, 1, 4, 5)]),
            node("n2", devices, [whole(devices[index]) for index in (0, 1, 2)]),
        ]
        one = ask(KUNLUN, DeviceRequest("kunlun", 1, 0, 100, 100))
        assert where(place(nodes, KUNLUN, one)) == "n2"
        assert where(place(nodes, KUNLUN, ask(KUNLUN, DeviceRequest("kunlun", 2, 0, 100, 100)))) == "n1"


class TestTables:
    """MetaX: 2000 less the loss with binpack, 2000 less the score with spread, by the number of devices."""

    TABLE = CountScores({1: 100, 2: 300}, {1: 50, 2: 400})

    @pytest.mark.parametrize(
        ("policy", "count", "points"),
        [("binpack", 1, 1900), ("binpack", 2, 1700), ("spread", 1, 1950), ("spread", 2, 1600), ("binpack", 3, 2000)],
    )
    def test_points(self, policy: str, count: int, points: int) -> None:
        at = Node("n1", count_scores={METAX_GPU.common_word: self.TABLE})
        assert score(METAX_GPU, devices_of_vendor(METAX_GPU), [range(count)], node=at, policy=policy) == points

    def test_without_a_table_there_are_none(self) -> None:
        assert score(METAX_GPU, devices_of_vendor(METAX_GPU), [(0,)]) == 0

    @pytest.mark.parametrize(("policy", "name"), [("binpack", "n1"), ("spread", "n2")])
    def test_the_smaller_loss_and_the_higher_score_win(self, policy: str, name: str) -> None:
        nodes = [
            node(
                "n1", devices_of_vendor(METAX_GPU), count_scores={METAX_GPU.common_word: CountScores({2: 10}, {2: 10})}
            ),
            node(
                "n2", devices_of_vendor(METAX_GPU), count_scores={METAX_GPU.common_word: CountScores({2: 90}, {2: 90})}
            ),
        ]
        pod = ask(METAX_GPU, DeviceRequest(METAX_GPU.common_word, 2, 0, 100, 100))
        assert where(place(nodes, METAX_GPU, pod, node_policy=policy)) == name


class TestTenants:
    """MetaX sGPU: what an online pod does to others, ten thousandfold; turned around under spread."""

    @pytest.mark.parametrize(
        ("tenants", "points"),
        [([], 0), (["offline"], -100), (["offline", "offline"], -200), (["online"], -20), (["online", "offline"], -22)],
    )
    def test_points(self, tenants: list[str], points: int) -> None:
        devices = devices_of_vendor(METAX_SGPU)
        state = DeviceState(devices[0], 0)
        for tenant in tenants:
            state.hold(DeviceSlice(devices[0].uuid, "n1", 1, 0, 0, METAX_SGPU.common_word, app_class=tenant))
        wants = DeviceConstraints(app_class="online")
        mine = [[DeviceSlice(devices[0].uuid, "n1", 1, 0, 0, METAX_SGPU.common_word, app_class="online")]]
        for policy, sign in (("binpack", 1), ("spread", -1)):
            outcome = Outcome(Node("n1"), [state], mine, policy)
            assert vendor_score(outcome, METAX_SGPU, wants) == sign * 10_000 * points

    @pytest.mark.parametrize("policy", ["binpack", "spread"])
    def test_an_online_pod_goes_where_it_is_alone_under_any_policy(self, policy: str) -> None:
        devices = devices_of_vendor(METAX_SGPU, 1, slots=16)
        tenant = DeviceSlice("d0", "", 100, 30, 0, METAX_SGPU.common_word, app_class="offline")
        nodes = [node("n1", devices, [tenant]), node("n2", devices)]
        pod = ask(METAX_SGPU, DeviceRequest(METAX_SGPU.common_word, 1, 100, 101, 30), app_class="online")
        assert where(place(nodes, METAX_SGPU, pod, node_policy=policy)) == "n2"
        assert where(place(nodes[:1], METAX_SGPU, pod, node_policy=policy)) == "n1"

    def test_what_was_scored_before_is_scored_again_where_a_node_changed(self) -> None:
        fleet = Fleet([METAX_SGPU])
        for name in ("n1", "n2"):
            fleet.set_node(node(name, devices_of_vendor(METAX_SGPU, 1, slots=16)))
        pod = ask(METAX_SGPU, DeviceRequest(METAX_SGPU.common_word, 1, 100, 101, 30), app_class="online")
        for number, expected in enumerate(["n1", "n2", "n1"]):
            outcome = fleet.place([PodSetToPlace("main", 1, devices=pod)])
            assert where(outcome) == expected
            assert isinstance(outcome, Placement)
            fleet.reserve(str(number), outcome)

    @pytest.mark.parametrize(
        ("zones", "taken", "points"),
        [("1122", (0, 1), 100), ("1111", (0, 1), 100 - 40), ("1122", (0, 2), -20), ("....", (0, 1), 0)],
    )
    def test_zones_are_kept_whole(self, zones: str, taken: tuple[int, ...], points: int) -> None:
        devices = attributed(METAX_SGPU, "LinkZone", zones)
        wants = DeviceConstraints(zones=True)
        assert score(METAX_SGPU, devices, [taken], wants=wants) == 10_000 * points
        assert score(METAX_SGPU, devices, [taken], policy="spread", wants=wants) == -10_000 * points
        assert score(METAX_SGPU, devices, [taken]) == 0
        assert score(METAX_SGPU, devices, [taken], cores=50, wants=wants) == 0


class TestGroups:
    """The largest group's share of each container's devices: ten times for Ascend, once for Vastai."""

    @pytest.mark.parametrize(
        ("networks", "taken", "points"),
        [("0011", [(0, 1)], 10), ("0011", [(0, 2)], 5), ("0011", [(0, 1), (2, 3)], 20), ("001.", [(2, 3)], 0)],
    )
    def test_networks_of_ascend(self, networks: str, taken: list[tuple[int, ...]], points: float) -> None:
        assert score(ASCEND, attributed(ASCEND, "NetworkID", networks), taken) == points

    def test_adapters_of_vastai(self) -> None:
        assert score(VASTAI, attributed(VASTAI, "AIC", "0012"), [(0, 1, 2, 3)]) == 0.5

    @pytest.mark.parametrize(("policy", "name"), [("binpack", "n2"), ("spread", "n1")])
    def test_a_node_that_keeps_the_devices_in_one_network_scores_higher(self, policy: str, name: str) -> None:
        nodes = [
            node("n1", attributed(ASCEND, "NetworkID", "0123")),
            node("n2", attributed(ASCEND, "NetworkID", "0112")),
        ]
        pod = ask(ASCEND, DeviceRequest(ASCEND.common_word, 2, 0, 100, 0))
        assert where(place(nodes, ASCEND, pod, node_policy=policy)) == name


def test_nvidia_adds_nothing_and_neither_does_a_vendor_that_gives_no_device() -> None:
    assert score(NVIDIA, devices_of_vendor(NVIDIA), [(0,)]) == 0
    assert score(KUNLUN, devices_of_vendor(KUNLUN), []) == 0
