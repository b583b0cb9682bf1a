"""Properties of all vendors' placements: nothing is given twice, rules hold on every device, the scan never lies."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gpus.annotations.enflame import decode_devices_drs
from gpus.vendors import (
    AMD,
    AWS_NEURON,
    ENFLAME_DRS,
    KUNLUN,
    KUNLUN_VXPU,
    METAX_SGPU,
    MOORE_THREADS,
    VASTAI,
    VENDORS,
)
from scheduling.devices.fit.device_fit import FitContext
from scheduling.devices.fit.fit import fit_pod
from scheduling.devices.requests.policy import device_policy
from scheduling.devices.requests.requests import pod_device_request
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import Device, DeviceSlice
from scheduling.model.node import Node
from scheduling.model.placement import Placement, PodDeviceRequest, PodSetToPlace
from tests.scheduling.vendor_helpers import BY_WORD, devices_of_vendor

ASCEND = BY_WORD["Ascend910B3"]
DRS = '{"devices":[{"index":"0","minor":"0","capacity":6}],"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'


def devices_on(node: str) -> list[Device]:
    """A node with some devices of every vendor that has rules of its own."""
    metax = [
        replace(device, attributes={"LinkZone": str(device.index // 2)})
        for device in devices_of_vendor(METAX_SGPU, 3, slots=16, memory_mib=65_536)
    ]
    ascend = [
        replace(device, attributes={"split": "soft" if device.index else "hard", "NetworkID": "0"})
        for device in devices_of_vendor(ASCEND, 3, slots=4, memory_mib=65_536)
    ]
    made = [
        *devices_of_vendor(AMD, 2, slots=4, memory_mib=20_000, cores_percent=40),
        *devices_of_vendor(AWS_NEURON, 4, slots=2, memory_mib=100, cores_percent=0b11),
        *devices_of_vendor(KUNLUN, 8, memory_mib=98_304),
        *devices_of_vendor(KUNLUN_VXPU, 2, slots=4, memory_mib=98_304),
        *devices_of_vendor(MOORE_THREADS, 2, slots=100, memory_mib=49_152, cores_percent=16),
        *devices_of_vendor(VASTAI, 2),
        *metax,
        *ascend,
    ]
    named = [replace(device, uuid=f"{node}-{device.vendor}-{device.index}") for device in made]
    return [*named, *decode_devices_drs(DRS, ENFLAME_DRS.common_word, node)]


LIMITS: list[dict[str, Any]] = [
    {"amd.com/gpu": 1, "amd.com/gpumem": 6000, "amd.com/gpucores": 30},
    {"amd.com/gpu": 2},
    {"aws.amazon.com/neuroncore": 1},
    {"aws.amazon.com/neuron": 2},
    {"enflame.com/drs-gcu": 1},
    {"enflame.com/drs-gcu": 2},
    {"enflame.com/gcu-memory": 7000, "enflame.com/gcu-core": 20},
    {"kunlunxin.com/xpu": 1},
    {"kunlunxin.com/xpu": 2},
    {"kunlunxin.com/xpu": 4},
    {"kunlunxin.com/vxpu": 1, "kunlunxin.com/vxpu-memory": 20_000},
    {"kunlunxin.com/vxpu": 2, "kunlunxin.com/vxpu-memory": 40_000},
    {"mthreads.com/vgpu": 1, "mthreads.com/sgpu-memory": 32, "mthreads.com/sgpu-core": 4},
    {"mthreads.com/vgpu": 2},
    {"vastaitech.com/va": 1},
    {"metax-tech.com/sgpu": 1, "metax-tech.com/vmemory": 8, "metax-tech.com/vcore": 25},
    {"metax-tech.com/sgpu": 2},
    {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 16_384},
    {"huawei.com/Ascend910B3": 2},
]
ANNOTATIONS: list[dict[str, str]] = [
    {},
    {"metax-tech.com/sgpu-qos-policy": "fixed-share", "huawei.com/vnpu-mode": "hami-core"},
    {"metax-tech.com/sgpu-app-class": "online"},
    {"metax-tech.com/sgpu-app-class": "offline", "metax-tech.com/sgpu-topology-aware": "true"},
]
PODS = st.tuples(st.lists(st.sampled_from(LIMITS), min_size=1, max_size=2), st.sampled_from(ANNOTATIONS))


def request(limits: list[dict[str, Any]], annotations: dict[str, str]) -> PodDeviceRequest:
    """The request of a pod with a container per dict of limits."""
    containers = [{"name": f"c{n}", "resources": {"limits": each}} for n, each in enumerate(limits)]
    return pod_device_request({"metadata": {"annotations": annotations}, "spec": {"containers": containers}}, VENDORS)


@given(
    st.lists(st.one_of(PODS, st.integers(0, 9)), max_size=20),
    st.sampled_from(["binpack", "spread"]),
    st.sampled_from(["binpack", "spread"]),
)
def test_what_is_placed_holds_every_rule(steps: list[Any], node_policy: str, device_policy: str) -> None:
    fleet = Fleet(VENDORS, node_policy=node_policy, device_policy=device_policy)
    for name in ("n1", "n2"):
        fleet.set_node(Node(name, devices=tuple(devices_on(name))))
    for number, step in enumerate(steps):
        if isinstance(step, int):
            keys = sorted(fleet.reservations)
            if keys:
                fleet.release(keys[step % len(keys)])
            continue
        pod = request(*step)
        outcome = fleet.place([PodSetToPlace("main", 1, devices=pod)])
        assert isinstance(outcome, Placement) == _fits_somewhere(fleet, pod)
        assert outcome == _anew(fleet).place([PodSetToPlace("main", 1, devices=pod)])
        if isinstance(outcome, Placement):
            fleet.reserve(str(number), outcome)
        _check(fleet)
    for key in list(fleet.reservations):
        fleet.release(key)
    assert not fleet.table.used.any()
    assert not any(fleet.table.tenants.values())


def _anew(fleet: Fleet) -> Fleet:
    """A fleet in the same state that has never been asked for a place."""
    anew = fleet.copy_without_reservations()
    for key, placement in fleet.reservations.items():
        anew.reserve(key, placement)
    return anew


def _fits_somewhere(fleet: Fleet, pod: PodDeviceRequest) -> bool:
    """Whether any node has room for the pod, tried node by node, without the scan that first excludes nodes."""
    policy = device_policy(pod.device_policy or fleet.settings.device_policy)
    context = FitContext(policy, pod.weights, fleet.settings.vendors)
    table = fleet.table
    return any(
        fit_pod(node.name, table.devices(row), pod, context)[0] is not None for row, node in enumerate(table.nodes)
    )


def _check(fleet: Fleet) -> None:
    held: dict[str, list[DeviceSlice]] = {}
    for placement in fleet.reservations.values():
        for pod in placement.pods:
            for part in pod.slices:
                held.setdefault(part.uuid, []).append(part)
    by_uuid = {device.uuid: device for node in fleet.table.nodes for device in node.devices}
    for uuid, parts in held.items():
        device = by_uuid[uuid]
        assert sum(part.slots for part in parts) <= device.slots
        assert sum(part.memory_mib for part in parts) <= device.memory_mib
        assert sum(part.cores_percent for part in parts) <= device.cores_percent
        if device.vendor == AWS_NEURON.common_word:
            bits = 0
            for part in parts:
                assert not bits & part.cores_percent
                bits |= part.cores_percent
        if device.vendor == KUNLUN_VXPU.common_word:
            assert len({part.memory_mib for part in parts}) == 1
        if device.vendor == METAX_SGPU.common_word:
            assert len({part.qos_policy for part in parts} - {""}) <= 1
            assert len({bool(part.app_class) for part in parts}) == 1
        if device.vendor == ENFLAME_DRS.common_word:
            sizes = {(profile.slice_count, profile.memory_mib) for profile in device.mig_profiles}
            assert {(part.slots, part.memory_mib) for part in parts} <= sizes
