"""The table of vendors: what each vendor's pods ask for, what its nodes have, and how its cards are chosen."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpus.annotations import encode_devices, node_devices, pod_annotations
from gpus.annotations.inventory import decode_devices_metax, encode_devices_metax
from gpus.vendors import (
    AMD,
    AWS_NEURON,
    CAMBRICON,
    HYGON,
    KUNLUN,
    KUNLUN_VXPU,
    METAX_GPU,
    METAX_SGPU,
    MOORE_THREADS,
    VASTAI,
    VENDORS,
)
from scheduler.core.device import PERCENTAGE_UNSET, Device, DeviceRequest, DeviceSlice
from scheduler.core.device_requests import pod_device_request
from scheduler.core.device_vendor import DeviceVendor, InventoryEncoding
from scheduler.core.node import Node
from scheduler.core.placement import Fleet
from scheduler.core.placement_model import DeviceConstraints, Placement, PodDeviceRequest, PodPlacement, PodSetToPlace

BY_WORD = {vendor.word: vendor for vendor in VENDORS}


def asked(limits: dict[str, Any], annotations: dict[str, str] | None = None) -> PodDeviceRequest:
    """What a pod of one container asks for."""
    container = {"name": "c", "resources": {"limits": limits}}
    metadata = {"annotations": annotations or {}}
    return pod_device_request({"metadata": metadata, "spec": {"containers": [container]}}, VENDORS)


def test_the_table_has_no_doubles() -> None:
    assert len(BY_WORD) == len(VENDORS)
    for names in (
        [vendor.resources.count for vendor in VENDORS],
        [vendor.annotations.allocated for vendor in VENDORS],
        [vendor.annotations.register for vendor in VENDORS if vendor.annotations.register],
    ):
        assert len(set(names)) == len(names)


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.word)
def test_every_vendor_has_an_inventory_and_a_record_on_pods(vendor: DeviceVendor) -> None:
    assert bool(vendor.annotations.register) == (vendor.inventory is not InventoryEncoding.CAPACITY)
    assert (vendor.capacity is not None) == (vendor.inventory is InventoryEncoding.CAPACITY)
    assert vendor.annotations.allocated


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.word)
def test_a_pod_that_asks_for_one_card_of_any_vendor_is_placed_and_annotated(vendor: DeviceVendor) -> None:
    cards = vendor.rules.module_size
    model = vendor.model
    memory, cores = (model.memory_mib, model.cores) if model is not None else (32_768, 100)
    devices = tuple(
        Device(f"{vendor.word}-{n}", n, vendor.word, vendor.word, 1, memory, cores, mode="hami-core") for n in range(4)
    )
    fleet = Fleet(VENDORS)
    fleet.set_node(Node("n1", devices=devices))
    request = asked({vendor.resources.count: 1})
    placement = fleet.place([PodSetToPlace("main", 1, devices=request)])
    assert isinstance(placement, Placement), placement
    assert len(placement.pods[0].slices) == cards
    assert vendor.annotations.allocated in pod_annotations(placement.pods[0], VENDORS, 0)


REQUESTS: list[tuple[dict[str, Any], DeviceRequest]] = [
    ({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 8000}, DeviceRequest("Ascend910B3", 1, 16_384)),
    ({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 16_385}, DeviceRequest("Ascend910B3", 1, 32_768)),
    ({"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 40_000}, DeviceRequest("Ascend910B3", 1, 65_536)),
    ({"huawei.com/Ascend910B3": 4}, DeviceRequest("Ascend910B3", 4, 65_536)),
    ({"huawei.com/Ascend310P": 1, "huawei.com/Ascend310P-memory": 24_000}, DeviceRequest("Ascend310P", 1, 21_527)),
    ({"huawei.com/Ascend910C": 1}, DeviceRequest("Ascend910C", 2, 65_536)),
    (
        {"cambricon.com/vmlu": 1, "cambricon.com/mlu.smlu.vmemory": 20},
        DeviceRequest("MLU", 1, 5120, PERCENTAGE_UNSET, 100),
    ),
    ({"hygon.com/dcunum": 1, "hygon.com/dcumem": 2000}, DeviceRequest("DCU", 1, 2000, PERCENTAGE_UNSET, 100)),
    ({"mthreads.com/vgpu": 1, "mthreads.com/sgpu-memory": 32}, DeviceRequest("Mthreads", 1, 16_384)),
    ({"mthreads.com/vgpu": 1}, DeviceRequest("Mthreads", 1, 0, 100, 16)),
    ({"mthreads.com/vgpu": 2, "mthreads.com/sgpu-memory": 32}, DeviceRequest("Mthreads", 2, 0, 100, 16)),
    ({"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 64}, DeviceRequest("MR-V100", 1, 16_384)),
    ({"iluvatar.ai/MR-V100-vgpu": 2, "iluvatar.ai/MR-V100.vMem": 64}, DeviceRequest("MR-V100", 2, 0, 100, 100)),
    ({"amd.com/gpu": 1, "amd.com/gpucores": 30}, DeviceRequest("AMD", 1, 0, 100, 30)),
    (
        {"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": 4, "metax-tech.com/vcore": 60},
        DeviceRequest("Metax-SGPU", 1, 4096, PERCENTAGE_UNSET, 60),
    ),
    (
        {"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": "512Mi"},
        DeviceRequest("Metax-SGPU", 1, 512, PERCENTAGE_UNSET, 100),
    ),
    ({"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 30_000}, DeviceRequest("XPU", 1, 49_152)),
    ({"kunlunxin.com/xpu": 4}, DeviceRequest("kunlun", 4, 0, 100, 100)),
    ({"vastaitech.com/va": 1}, DeviceRequest("Vastai", 1, 0, 100, 100)),
]


@pytest.mark.parametrize(
    ("limits", "request_"), REQUESTS, ids=lambda row: next(iter(row)) if isinstance(row, dict) else ""
)
def test_requests(limits: dict[str, Any], request_: DeviceRequest) -> None:
    found = asked(limits)
    assert not found.problems
    assert found.containers == ((request_,),)


REFUSED = [
    {"huawei.com/Ascend910C": 3},
    {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 70_000},
    {"huawei.com/Ascend910B3": 2, "huawei.com/Ascend910B3-memory": 8000},
    {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-core": 5},
    {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-memory": 33},
    {"kunlunxin.com/xpu": 3},
]


@pytest.mark.parametrize("limits", REFUSED, ids=lambda limits: " ".join(f"{k}={v}" for k, v in limits.items()))
def test_refused_requests(limits: dict[str, Any]) -> None:
    found = asked(limits)
    assert found.containers == ((),)
    assert [problem.refused for problem in found.problems] == [True]


def test_the_soft_split_of_an_ascend_takes_any_memory_and_cores() -> None:
    limits = {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 5000, "huawei.com/Ascend910B3-core": 7}
    found = asked(limits, {"huawei.com/vnpu-mode": "hami-core"})
    assert found.containers == ((DeviceRequest("Ascend910B3", 1, 5000, PERCENTAGE_UNSET, 7),),)


class TestInventory:
    def test_cards_from_capacity(self) -> None:
        capacity = {
            "cambricon.com/mlu.smlu.vcore": 400,
            "cambricon.com/mlu.smlu.vmemory": 640,
            "mthreads.com/sgpu-core": 32,
            "mthreads.com/sgpu-memory": 192,
            "metax-tech.com/gpu": 2,
        }
        found = node_devices("n1", {}, capacity, {}, VENDORS, now=0)
        shapes = {(device.vendor, device.memory_mib, device.cores_percent, device.slots) for device in found.devices}
        assert shapes == {("MLU", 40_960, 100, 100), ("Mthreads", 49_152, 16, 100), ("Metax-GPU", 65_536, 100, 1)}
        assert [device.uuid for device in found.devices if device.vendor == "MLU"] == [
            f"n1-cambricon-mlu-{number}" for number in range(4)
        ]

    def test_metax_round_trip(self) -> None:
        text = (
            '[{"uuid":"GPU-1","bdf":"0000:0e:00.0","model":"C500","totalDevCount":16,"totalCompute":100,'
            '"totalVRam":65536,"numa":1,"healthy":true,"qosPolicy":"best-effort","linkZone":2}]'
        )
        devices = decode_devices_metax(text, METAX_SGPU.word)
        assert devices[0].attributes == {"bdf": "0000:0e:00.0", "QosPolicy": "best-effort", "LinkZone": "2"}
        assert decode_devices_metax(encode_devices_metax(devices), METAX_SGPU.word) == devices

    @pytest.mark.parametrize(
        "vendor", [vendor for vendor in VENDORS if vendor.annotations.register], ids=lambda vendor: vendor.word
    )
    def test_register_annotations_of_all_vendors(self, vendor: DeviceVendor) -> None:
        device = Device("D-0", 0, vendor.word, "model", 4, 32_768, 100, 1, "", True)
        if vendor.inventory is InventoryEncoding.STRING:
            device = Device("D-0", 0, vendor.word, "model", 4, 32_768, 100, 1, "hami-core", True)
        text = encode_devices([device], vendor)
        assert node_devices("n1", {vendor.annotations.register: text}, {}, {}, VENDORS, now=0).devices == (device,)


def chosen(vendor: DeviceVendor, devices: list[Device], count: int, taken: tuple[int, ...] = ()) -> set[int] | str:
    """The indexes of the cards that a pod of `count` cards gets, or the reason why none."""
    fleet = Fleet([vendor])
    fleet.set_node(Node("n1", devices=tuple(devices)))
    for index in taken:
        fleet.reserve(str(index), on_card(fleet, devices[index]))
    request = PodDeviceRequest(containers=((DeviceRequest(vendor.word, count, 0, 100, 100),),))
    outcome = fleet.place([PodSetToPlace("main", 1, devices=request)])
    if isinstance(outcome, Placement):
        return {part.index for part in outcome.pods[0].slices}
    return outcome.reasons["n1"]


def on_card(fleet: Fleet, device: Device) -> Placement:
    """A place on exactly this card, whole."""
    pinned = PodDeviceRequest(
        containers=((DeviceRequest(device.vendor, 1, 0, 100, 100),),),
        constraints=((device.vendor, DeviceConstraints(use_uuids=(device.uuid,))),),
    )
    outcome = fleet.place([PodSetToPlace("main", 1, devices=pinned)])
    assert isinstance(outcome, Placement)
    return outcome


def eight(vendor: DeviceVendor) -> list[Device]:
    return [Device(f"d{n}", n, vendor.word, vendor.word, 1, 1000, 100) for n in range(8)]


class TestGroups:
    def test_ascend_modules_are_taken_whole(self) -> None:
        vendor = BY_WORD["Ascend910C"]
        assert chosen(vendor, eight(vendor), 2) == {6, 7}
        assert chosen(vendor, eight(vendor), 4, taken=(7,)) == {2, 3, 4, 5}

    def test_cards_of_one_network_come_first(self) -> None:
        vendor = BY_WORD["Ascend910B3"]
        devices = [
            Device(f"d{n}", n, vendor.word, "910B3", 1, 1000, 100, attributes={"NetworkID": str(int(n in {1, 4, 6}))})
            for n in range(8)
        ]
        assert chosen(vendor, devices, 3) == {1, 4, 6}

    @pytest.mark.parametrize(("policy", "node"), [("binpack", "n2"), ("spread", "n1")])
    def test_a_node_that_keeps_the_cards_in_one_network_scores_higher(self, policy: str, node: str) -> None:
        vendor = BY_WORD["Ascend910B3"]
        fleet = Fleet([vendor], node_policy=policy)
        for name, networks in (("n1", "0123"), ("n2", "0112")):
            devices = tuple(
                Device(f"{name}-{n}", n, vendor.word, "910B3", 1, 1000, 100, attributes={"NetworkID": network})
                for n, network in enumerate(networks)
            )
            fleet.set_node(Node(name, devices=devices))
        request = PodDeviceRequest(containers=((DeviceRequest(vendor.word, 2, 0, 100, 0),),))
        outcome = fleet.place([PodSetToPlace("main", 1, devices=request)])
        assert isinstance(outcome, Placement)
        assert outcome.pods[0].node == node

    def test_one_adapter_first_for_vastai(self) -> None:
        devices = [Device(f"d{n}", n, "Vastai", "VA1", 1, 1000, 100, attributes={"AIC": str(n % 4)}) for n in range(8)]
        assert chosen(VASTAI, devices, 2) in ({0, 4}, {1, 5}, {2, 6}, {3, 7})

    def test_neuron_cards_are_neighbours(self) -> None:
        assert chosen(AWS_NEURON, eight(AWS_NEURON), 4, taken=(1,)) == {2, 3, 4, 5}
        refused = chosen(AWS_NEURON, eight(AWS_NEURON), 7, taken=(1,))
        assert refused == "1/8 CardTimeSlicingExhausted, 7/8 AllocatedCardsInsufficientRequest"

    def test_kunlun_fills_the_fuller_half_first(self) -> None:
        assert chosen(KUNLUN, eight(KUNLUN), 2, taken=(0, 1)) == {2, 3}
        assert chosen(KUNLUN, eight(KUNLUN), 4, taken=(0,)) == {4, 5, 6, 7}
        assert chosen(KUNLUN, eight(KUNLUN), 4, taken=(0, 5)) == {2, 3, 6, 7}
        assert chosen(KUNLUN, eight(KUNLUN), 8) == set(range(8))

    def test_equal_slices_only(self) -> None:
        fleet = Fleet([KUNLUN_VXPU])
        fleet.set_node(Node("n1", devices=(Device("x", 0, "XPU", "XPU", 4, 98_304, 100),)))

        def place(memory: int) -> Any:
            request = PodDeviceRequest(containers=((DeviceRequest("XPU", 1, memory),),))
            return fleet.place([PodSetToPlace("main", 1, devices=request)])

        fleet.reserve("first", place(24_576))
        assert isinstance(place(24_576), Placement)
        assert place(49_152).reasons["n1"] == "1/1 CardNotFoundCustomFilterRule"

    def test_moore_threads_containers_share_a_card(self) -> None:
        fleet = Fleet([MOORE_THREADS], device_policy="spread")
        fleet.set_node(
            Node("n1", devices=tuple(Device(f"d{n}", n, "Mthreads", "S4000", 100, 49_152, 16) for n in range(2)))
        )
        one = (DeviceRequest("Mthreads", 1, 8192),)
        outcome = fleet.place([PodSetToPlace("main", 1, devices=PodDeviceRequest(containers=(one, one)))])
        assert isinstance(outcome, Placement)
        assert len({part.uuid for part in outcome.pods[0].slices}) == 1

    def test_amd_cores_are_a_share_of_the_card_s_compute_units(self) -> None:
        fleet = Fleet([AMD])
        fleet.set_node(Node("n1", devices=(Device("d0", 0, "AMD", "MI300X", 10, 196_608, 304),)))
        request = PodDeviceRequest(containers=((DeviceRequest("AMD", 1, 1000, PERCENTAGE_UNSET, 30),),))
        outcome = fleet.place([PodSetToPlace("main", 1, devices=request)])
        assert isinstance(outcome, Placement)
        assert outcome.pods[0].slices[0].cores_percent == 91

    @pytest.mark.parametrize("vendor", [METAX_GPU, CAMBRICON, HYGON], ids=lambda vendor: vendor.word)
    def test_a_whole_card_is_given_once(self, vendor: DeviceVendor) -> None:
        assert chosen(vendor, eight(vendor), 7, taken=(0,)) == set(range(1, 8))
        assert isinstance(chosen(vendor, eight(vendor), 8, taken=(0,)), str)


class TestExtras:
    """What a vendor's own device plugin reads from the pod."""

    def annotations(self, vendor: DeviceVendor, *parts: DeviceSlice) -> dict[str, str]:
        return pod_annotations(PodPlacement("main", 0, "n1", ((), parts)), VENDORS, 1_767_225_600.0)

    def test_ascend_names_the_template(self) -> None:
        word = "Ascend910B3"
        parts = [
            DeviceSlice("a", "n1", 16_384, 0, 0, word),
            DeviceSlice("b", "n1", 65_536, 0, 1, word),
            DeviceSlice("c", "n1", 5000, 7, 2, word),
        ]
        found = self.annotations(BY_WORD[word], *parts)
        assert found["predicate-time"] == "1767225600"
        assert json.loads(found["huawei.com/Ascend910B3"]) == [
            {"UUID": "a", "temp": "vir05_1c_16g"},
            {"UUID": "b"},
            {"UUID": "c", "memory": 5000, "core": 7},
        ]

    def test_cambricon_names_the_profile(self) -> None:
        found = self.annotations(CAMBRICON, DeviceSlice("m", "n1", 5120, 30, 3, "MLU"))
        assert found["CAMBRICON_DSMLU_PROFILE"] == "3_30_20"
        assert found["CAMBRICON_DSMLU_ASSIGNED"] == "false"

    def test_indexes(self) -> None:
        moore = self.annotations(MOORE_THREADS, *(DeviceSlice(f"t{n}", "n1", 1, 1, n, "Mthreads") for n in (2, 5)))
        assert moore["mthreads.com/gpu-index"] == "2,5"
        assert moore["mthreads.com/predicate-time"] == "1767225600000000000"
        assert self.annotations(KUNLUN, DeviceSlice("k", "n1", 1, 1, 4, "kunlun"))["BAIDU_COM_DEVICE_IDX"] == "4"
        assert self.annotations(AWS_NEURON, DeviceSlice("w", "n1", 1, 1, 4, "AWSNeuron"))["AWS_NEURON_IDS"] == "4"

    def test_metax_lists_compute_and_memory_per_container(self) -> None:
        found = self.annotations(METAX_SGPU, DeviceSlice("x", "n1", 4096, 60, 0, "Metax-SGPU"))
        held = json.loads(found["metax-tech.com/gpu-devices-allocated"])
        assert held == [[], [{"uuid": "x", "compute": 60, "vRam": 4096}]]
