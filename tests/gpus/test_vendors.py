"""The table of vendors: what each vendor's pods ask for, what its nodes have, and how its devices are chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpus.annotations import count_scores, node_devices, pod_annotations
from gpus.annotations.enflame import decode_devices_drs
from gpus.vendors import (
    VENDORS,
)
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import PERCENTAGE_UNSET, Device, DeviceRequest
from scheduling.model.node import CountScores, Node
from scheduling.model.placement import DeviceConstraints, Placement, PodDeviceRequest, PodSetToPlace
from scheduling.model.vendor import DeviceVendor, InventoryEncoding
from tests.gpus.register_annotations import encode_devices

DRS = '{"devices":[{"index":"0","minor":"3","capacity":6}],"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'
BY_WORD = {vendor.common_word: vendor for vendor in VENDORS}


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


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.common_word)
def test_every_vendor_has_an_inventory_and_a_record_on_pods(vendor: DeviceVendor) -> None:
    assert bool(vendor.annotations.register) == (vendor.inventory is not InventoryEncoding.CAPACITY)
    assert (vendor.capacity is not None) == (vendor.inventory is InventoryEncoding.CAPACITY)
    assert vendor.annotations.allocated


def devices_of(vendor: DeviceVendor) -> tuple[Device, ...]:
    """Four devices as the vendor's nodes register them."""
    if vendor.inventory is InventoryEncoding.DRS_JSON:
        return decode_devices_drs(DRS, vendor.common_word, "n1")
    model, shape = vendor.model, vendor.capacity
    memory, cores, slots = (32_768, 100, 1) if model is None else (model.memory_mib, model.cores, 1)
    if shape is not None:
        bits = (1 << shape.cores_per_device) - 1 if shape.cores_are_bits else 0
        memory, cores, slots = shape.memory_mib or 49_152, bits or shape.cores_per_device, shape.slots
    return tuple(
        Device(
            f"{vendor.common_word}-{n}",
            n,
            vendor.common_word,
            vendor.common_word,
            slots,
            memory,
            cores,
            mode="hami-core",
        )
        for n in range(4)
    )


@pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.common_word)
def test_a_pod_that_asks_for_one_device_of_any_vendor_is_placed_and_annotated(vendor: DeviceVendor) -> None:
    fleet = Fleet(VENDORS)
    fleet.set_node(Node("n1", devices=devices_of(vendor)))
    placement = fleet.place([PodSetToPlace("main", 1, devices=asked({vendor.resources.count: 1}))])
    assert isinstance(placement, Placement), placement
    assert len(placement.pods[0].slices) == vendor.rules.module_size
    assert vendor.annotations.allocated in pod_annotations(placement.pods[0], VENDORS, 0)
    fleet.reserve("first", placement)
    fleet.release("first")
    assert not fleet.table.used.any()


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
    ({"mthreads.com/vgpu": 1}, DeviceRequest("Mthreads", 1, 49_152, PERCENTAGE_UNSET, 16)),
    (
        {"mthreads.com/vgpu": 2, "mthreads.com/sgpu-memory": 32},
        DeviceRequest("Mthreads", 2, 49_152, PERCENTAGE_UNSET, 16),
    ),
    ({"iluvatar.ai/MR-V100-vgpu": 1, "iluvatar.ai/MR-V100.vMem": 64}, DeviceRequest("MR-V100", 1, 16_384)),
    (
        {"iluvatar.ai/MR-V100-vgpu": 2, "iluvatar.ai/MR-V100.vMem": 64},
        DeviceRequest("MR-V100", 2, 16_384, PERCENTAGE_UNSET, 200),
    ),
    ({"amd.com/gpu": 1, "amd.com/gpucores": 30}, DeviceRequest("AMD", 1, 0, 100, 30)),
    (
        {"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": 4, "metax-tech.com/vcore": 60},
        DeviceRequest("Metax-SGPU", 1, 4096, PERCENTAGE_UNSET, 60),
    ),
    (
        {"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": "512Mi"},
        DeviceRequest("Metax-SGPU", 1, 512, PERCENTAGE_UNSET, 100),
    ),
    (
        {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 30_000},
        DeviceRequest("XPU", 1, 49_152, PERCENTAGE_UNSET, 50),
    ),
    (
        {"kunlunxin.com/vxpu": 4, "kunlunxin.com/vxpu-memory": 24_576},
        DeviceRequest("XPU", 4, 24_576, PERCENTAGE_UNSET, 25),
    ),
    (
        {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 50_000},
        DeviceRequest("XPU", 1, 98_304, PERCENTAGE_UNSET, 100),
    ),
    ({"kunlunxin.com/xpu": 4}, DeviceRequest("kunlun", 4, 0, 100, 0)),
    ({"enflame.com/gcu": 2}, DeviceRequest("GCU", 2, 0, 100, 100)),
    ({"enflame.com/drs-gcu": 3}, DeviceRequest("Enflame", 1, 0, PERCENTAGE_UNSET, 0, 3)),
    (
        {"enflame.com/gcu-memory": 20_480, "enflame.com/gcu-core": 40},
        DeviceRequest("Enflame", 1, 20_480, PERCENTAGE_UNSET, 40),
    ),
    ({"aws.amazon.com/neuron": 4}, DeviceRequest("AWSNeuron", 4, 0, 100, 100)),
    ({"aws.amazon.com/neuroncore": 1}, DeviceRequest("AWSNeuron", 1, 0, 50, 50)),
    ({"aws.amazon.com/neuroncore": 8}, DeviceRequest("AWSNeuron", 4, 0, 100, 100)),
    ({"birentech.com/gpu": 1}, DeviceRequest("Biren", 1, 0, 100, 0)),
    ({"metax-tech.com/gpu": 2}, DeviceRequest("Metax-GPU", 2, 0, 100, 100)),
    ({"vastaitech.com/va": 1}, DeviceRequest("Vastai", 1, 0, 100, 0)),
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
    {"amd.com/gpu": 1, "amd.com/gpucores": 0},
    {"amd.com/gpu": 1, "amd.com/gpucores": 101},
    {"amd.com/gpu": 1, "amd.com/gpucores": "1500m"},
    {"enflame.com/gcu-core": 101},
    {"aws.amazon.com/neuroncore": 3},
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


DROPPED = [
    {"amd.com/gpumem": 1000},
    {"hygon.com/dcucores": 50},
    {"kunlunxin.com/vxpu-memory": 24_576},
]


@pytest.mark.parametrize("limits", DROPPED, ids=lambda limits: next(iter(limits)))
def test_amounts_without_a_count_would_give_no_device(limits: dict[str, Any]) -> None:
    found = asked(limits)
    assert found.containers == ((),)
    assert [problem.refused for problem in found.problems] == [False]
    assert "the container gets no devices" in found.problems[0].message


def test_amd_reads_limits_only() -> None:
    container = {"name": "c", "resources": {"requests": {"amd.com/gpu": 1}}}
    assert not pod_device_request({"spec": {"containers": [container]}}, VENDORS).asks_for_devices


class TestTenants:
    """What MetaX' annotations make of a pod."""

    LIMITS = {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60, "metax-tech.com/vmemory": 4}

    def constraints(self, **annotations: str) -> DeviceConstraints:
        found = asked(self.LIMITS, {f"metax-tech.com/sgpu-{k.replace('_', '-')}": v for k, v in annotations.items()})
        assert not found.problems
        return found.constraints_of("Metax-SGPU")

    def test_best_effort_is_the_default_but_for_online_pods(self) -> None:
        assert self.constraints() == DeviceConstraints(qos_policy="best-effort")
        assert self.constraints(qos_policy="fixed-share").qos_policy == "fixed-share"
        assert self.constraints(app_class="online") == DeviceConstraints(app_class="online")
        assert self.constraints(app_class="offline") == DeviceConstraints(qos_policy="best-effort", app_class="offline")

    def test_topology_awareness_is_asked_for(self) -> None:
        assert self.constraints(topology_aware="true").zones
        assert not self.constraints(topology_aware="false").zones
        assert not self.constraints().zones

    @pytest.mark.parametrize(
        ("limits", "annotations"),
        [
            (LIMITS, {"metax-tech.com/sgpu-qos-policy": "best"}),
            (LIMITS, {"metax-tech.com/sgpu-app-class": "batch"}),
            ({**LIMITS, "metax-tech.com/sgpu": 2}, {"metax-tech.com/sgpu-app-class": "online"}),
        ],
    )
    def test_other_words_and_several_devices_of_a_class_are_refused(
        self, limits: dict[str, Any], annotations: dict[str, str]
    ) -> None:
        assert any(problem.refused for problem in asked(limits, annotations).problems)


class TestInventory:
    def test_devices_from_capacity(self) -> None:
        capacity = {
            "cambricon.com/mlu.smlu.vcore": 400,
            "cambricon.com/mlu.smlu.vmemory": 640,
            "mthreads.com/sgpu-core": 32,
            "mthreads.com/sgpu-memory": 192,
            "metax-tech.com/gpu": 2,
            "aws.amazon.com/neuron": 1,
        }
        found = node_devices("n1", {}, capacity, {}, VENDORS, 0, {"node.kubernetes.io/instance-type": "inf2.xlarge"})
        shapes = {(device.vendor, device.memory_mib, device.cores_percent, device.slots) for device in found.devices}
        assert shapes == {
            ("MLU", 40_960, 100, 100),
            ("Mthreads", 49_152, 16, 100),
            ("Metax-GPU", 65_536, 100, 1),
            ("AWSNeuron", 0, 0b11, 2),
        }
        assert [device.uuid for device in found.devices if device.vendor == "MLU"] == [
            f"n1-cambricon-mlu-{number}" for number in range(4)
        ]
        (neuron,) = (device for device in found.devices if device.vendor == "AWSNeuron")
        assert (neuron.uuid, neuron.attributes) == ("n1-AWSNeuron-0", {"AWSNodeType": "inf2.xlarge"})

    @pytest.mark.parametrize(
        ("by_default", "annotation", "split", "cores"),
        [
            (False, None, "hard", 20),
            (False, "true", "soft", 100),
            (True, None, "soft", 100),
            (True, "false", "hard", 20),
            (True, "maybe", "soft", 100),
        ],
    )
    def test_how_ascend_devices_are_split(
        self, by_default: bool, annotation: str | None, split: str, cores: int
    ) -> None:
        vendor = BY_WORD["Ascend910B3"]
        vendor = replace(vendor, rules=replace(vendor.rules, soft_split=by_default))
        device = Device("a", 0, vendor.common_word, vendor.common_word, 4, 65_536, 20, mode="")
        annotations = {vendor.annotations.register: encode_devices([device], vendor)}
        if annotation is not None:
            annotations["hami-vnpu-core"] = annotation
        (found,) = node_devices("n1", annotations, {}, {}, [vendor], 0).devices
        assert (found.attributes["split"], found.cores_percent) == (split, cores)

    def test_a_node_s_own_tables_of_counts(self) -> None:
        annotations = {
            "metax-tech.com/gpu.topology.losses": '{"1":100,"2":200,"x":3}',
            "metax-tech.com/gpu.topology.scores": "[1]",
        }
        assert count_scores(annotations, VENDORS) == {"Metax-GPU": CountScores({1: 100, 2: 200}, {})}
        assert count_scores({}, VENDORS) == {}

    @pytest.mark.parametrize(
        "vendor", [vendor for vendor in VENDORS if vendor.annotations.register], ids=lambda vendor: vendor.common_word
    )
    def test_register_annotations_of_all_vendors(self, vendor: DeviceVendor) -> None:
        device = Device("D-0", 0, vendor.common_word, "model", 4, 32_768, 100, 1, "", True)
        if vendor.inventory is InventoryEncoding.DRS_JSON:
            (device,) = decode_devices_drs(DRS, vendor.common_word, "n1")
        if vendor.rules.split_modes:
            device = replace(device, attributes={"split": "hard"})
        if vendor.inventory is InventoryEncoding.STRING:
            device = Device("D-0", 0, vendor.common_word, "model", 4, 32_768, 100, 1, "hami-core", True)
        text = encode_devices([device], vendor)
        assert node_devices("n1", {vendor.annotations.register: text}, {}, {}, VENDORS, 0).devices == (device,)
