"""What vendors other than NVIDIA read and write in annotations: round trips, tolerance, and what their plugins need."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpus.annotations import AnnotationError, found_allocation, pod_annotations, webhook_annotations
from gpus.annotations.enflame import (
    assigned_slices,
    decode_devices_drs,
    held_profile,
    profile_id,
)
from gpus.annotations.inventory import decode_devices_metax
from gpus.vendors import (
    AMD,
    AWS_NEURON,
    CAMBRICON,
    ENFLAME_DRS,
    KUNLUN,
    METAX_SGPU,
    MOORE_THREADS,
    VENDORS,
)
from scheduling.model.device import Device, DeviceSlice
from scheduling.model.placement import PodPlacement
from scheduling.model.vendor import DeviceVendor
from tests.gpus.register_annotations import encode_devices_drs, encode_devices_metax

BY_WORD = {vendor.common_word: vendor for vendor in VENDORS}
NAMES = st.text(alphabet=st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=20)
SCORPIO = '{"devices":[{"index":"0","minor":"3","capacity":6}],"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'
NOW = 1_767_225_600.0


def written(vendor: DeviceVendor, *containers: list[DeviceSlice], **known: Any) -> dict[str, str]:
    """The annotations of a pod with these slices per container, beside an init container without any."""
    placed = PodPlacement("main", 0, "n1", ((), *(tuple(parts) for parts in containers)), init_container_count=1)
    return pod_annotations(placed, VENDORS, NOW, **known)


def added(vendor: DeviceVendor, parts: list[DeviceSlice], **annotations: str) -> dict[str, str]:
    """What HAMi's webhook would have added to a pod with these annotations and slices."""
    placed = PodPlacement("main", 0, "n1", (tuple(parts),))
    return webhook_annotations(placed, [vendor], {"metadata": {"annotations": annotations}})


def manifest_of(limits: dict[str, Any], **annotations: str) -> dict[str, Any]:
    """A pod with an init container, and one of these limits."""
    spec = {"initContainers": [{"name": "init"}], "containers": [{"name": "main", "resources": {"limits": limits}}]}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def read_again(vendor: DeviceVendor, annotations: dict[str, str], limits: dict[str, Any]) -> list[DeviceSlice]:
    """The slices that a pod with these annotations, and one container of these limits, is found to hold."""
    main = {"name": "main", "resources": {"limits": limits}}
    spec = {"initContainers": [{"name": "init"}], "containers": [main]}
    found = found_allocation({"metadata": {"annotations": annotations}, "spec": spec}, VENDORS)
    assert found is not None
    assert not found.malformed
    return [replace(part, index=0) for part in found.slices]


class TestSlicesOfEnflame:
    def test_profiles_and_devices(self) -> None:
        (device,) = decode_devices_drs(SCORPIO, "Enflame", "n1")
        assert (device.uuid, device.index, device.slots, device.memory_mib) == ("n1-enflame-drs-0", 0, 6, 40_960)
        assert [(profile.name, profile.slice_count, profile.memory_mib) for profile in device.mig_profiles] == [
            ("1g.6gb", 1, 6144),
            ("3g.20gb", 3, 20_480),
            ("6g.40gb", 6, 40_960),
        ]
        assert [profile.cores_percent for profile in device.mig_profiles] == [17, 50, 100]
        # Six single slices are 102 percent points, and all of them must go on the device; not so in HAMi.
        assert device.cores_percent == 102
        assert decode_devices_drs(SCORPIO, "Enflame", "n1", as_hami=True)[0].cores_percent == 100
        assert profile_id(device, "3g.20gb") == "1"
        part = DeviceSlice(device.uuid, "n1", 20_480, 50, 0, "Enflame")
        assert held_profile(device, part) == device.mig_profiles[1]
        assert held_profile(device, replace(part, cores_percent=17)) is None

    @given(
        st.lists(
            st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(1, 16)), unique_by=lambda device: device[0]
        ),
        st.dictionaries(st.tuples(st.integers(1, 16), st.integers(1, 96)), NAMES, max_size=4),
    )
    def test_round_trip(self, drawn: list[tuple[int, int, int]], sizes: dict[tuple[int, int], str]) -> None:
        profiles = {f"{slices}g.{gib}gb": key for (slices, gib), key in sizes.items()}
        devices = [{"index": str(i), "minor": str(m), "capacity": capacity} for i, m, capacity in drawn]
        decoded = decode_devices_drs(json.dumps({"devices": devices, "profiles": profiles}), "Enflame", "n1")
        assert decode_devices_drs(encode_devices_drs(decoded), "Enflame", "n1") == decoded
        for device in decoded:
            assert all(profile.memory_mib <= device.memory_mib for profile in device.mig_profiles)

    @pytest.mark.parametrize(
        "text",
        [
            "[]",
            "{",
            '{"devices":[],"profiles":[]}',
            '{"devices":{},"profiles":{}}',
            '{"devices":[1],"profiles":{}}',
            '{"devices":[{"index":"a","minor":"0","capacity":6}],"profiles":{}}',
            '{"devices":[{"index":"0","minor":"0"}],"profiles":{}}',
            '{"devices":[],"profiles":{"small":"0"}}',
            '{"devices":[],"profiles":{"1g.6gb":0}}',
        ],
    )
    def test_what_can_t_be_read_is_an_error(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            decode_devices_drs(text, "Enflame", "n1")

    def test_the_plugin_learns_the_device_and_the_profile_of_each_container(self) -> None:
        (device,) = decode_devices_drs(SCORPIO, "Enflame", "n1")
        part = DeviceSlice(device.uuid, "n1", 20_480, 50, 0, "Enflame", slots=3)
        found = written(ENFLAME_DRS, [part], manifest=manifest_of({}), devices={device.uuid: device})
        assert json.loads(found["assigned-containers"]) == {
            "main": {"allocated": False, "request": 3, "profileID": "1", "profileName": "3g.20gb"}
        }
        assert {key: found[f"enflame.com/gcu-{key}"] for key in ("assigned", "assigned-index", "assigned-minor")} == {
            "assigned": "false",
            "assigned-index": "0",
            "assigned-minor": "3",
        }
        assert found["enflame.com/gcu-assigned-time"] == "1767225600000000000"
        assert found["enflame.com/gcu-request-size"] == "3"
        assert found["hami.io/enflame-vgpu-devices-allocated"] == ";n1-enflame-drs-0,Enflame,20480,50:;"
        assert assigned_slices(found["assigned-containers"]) == {"main": 3}
        assert read_again(ENFLAME_DRS, found, {"enflame.com/drs-gcu": 3}) == [part]

    def test_assigned_containers_that_can_t_be_read_are_malformed(self) -> None:
        annotations = {
            "hami.io/vgpu-node": "n1",
            "hami.io/enflame-vgpu-devices-allocated": "n1-Enflame-3,Enflame,20480,50:;",
            "assigned-containers": '{"main":3}',
        }
        main = {"name": "main", "resources": {"limits": {"enflame.com/drs-gcu": 3}}}
        found = found_allocation({"metadata": {"annotations": annotations}, "spec": {"containers": [main]}}, VENDORS)
        assert found is not None
        assert found.malformed


class TestMetax:
    def test_a_device_as_its_node_lists_it(self) -> None:
        text = (
            '[{"uuid":"GPU-1","bdf":"0000:0e:00.0","model":"C500","totalDevCount":16,"totalCompute":100,'
            '"totalVRam":65536,"numa":1,"healthy":true,"qosPolicy":"best-effort","linkZone":2}]'
        )
        devices = decode_devices_metax(text, METAX_SGPU.common_word)
        assert devices[0].attributes == {"bdf": "0000:0e:00.0", "QosPolicy": "best-effort", "LinkZone": "2"}
        assert encode_devices_metax(devices) == text.replace('"bdf":"0000:0e:00.0",', "").replace(
            '"healthy":true', '"healthy":true,"bdf":"0000:0e:00.0"'
        )

    @given(
        st.lists(
            st.builds(
                Device,
                uuid=NAMES,
                index=st.just(0),
                vendor=st.just("Metax-SGPU"),
                type=NAMES,
                slots=st.integers(0, 64),
                memory_mib=st.integers(0, 2**31 - 1),
                cores_percent=st.integers(0, 100),
                numa=st.integers(0, 8),
                mode=st.just(""),
                health=st.booleans(),
                attributes=st.fixed_dictionaries(
                    {},
                    optional={
                        "bdf": NAMES,
                        "QosPolicy": st.sampled_from(["best-effort", "fixed-share", "burst-share"]),
                        "LinkZone": st.integers(1, 8).map(str),
                    },
                ),
            )
        )
    )
    def test_round_trip(self, devices: list[Device]) -> None:
        numbered = tuple(replace(device, index=number) for number, device in enumerate(devices))
        assert decode_devices_metax(encode_devices_metax(numbered), "Metax-SGPU") == numbered

    def test_the_plugin_learns_compute_memory_and_policy(self) -> None:
        part = DeviceSlice("x", "n1", 4096, 60, 0, "Metax-SGPU", qos_policy="fixed-share")
        found = written(METAX_SGPU, [part])
        held = json.loads(found["metax-tech.com/gpu-devices-allocated"])
        assert held == [[], [{"uuid": "x", "compute": 60, "vRam": 4096}]]
        assert found["metax-tech.com/predicate-time"] == "1767225600000000000"
        limits = {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60, "metax-tech.com/vmemory": 4}
        found["metax-tech.com/sgpu-qos-policy"] = "fixed-share"
        assert read_again(METAX_SGPU, found, limits) == [part]

    def test_a_pod_that_names_no_policy_gets_the_default_unless_it_is_online(self) -> None:
        part = DeviceSlice("x", "n1", 4096, 60, 0, "Metax-SGPU")
        key = "metax-tech.com/sgpu-qos-policy"
        assert added(METAX_SGPU, [part]) == {key: "best-effort"}
        assert added(METAX_SGPU, [part], **{key: "fixed-share"}) == {}
        assert added(METAX_SGPU, [part], **{"metax-tech.com/sgpu-app-class": "online"}) == {}

    def test_online_pods_have_no_policy(self) -> None:
        part = DeviceSlice("x", "n1", 4096, 60, 0, "Metax-SGPU", app_class="online")
        found = written(METAX_SGPU, [part])
        found["metax-tech.com/sgpu-app-class"] = "online"
        limits = {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 60, "metax-tech.com/vmemory": 4}
        assert read_again(METAX_SGPU, found, limits) == [part]


class TestAscend:
    WORD = "Ascend910B3"
    PARTS = (
        DeviceSlice("a", "n1", 16_384, 0, 0, WORD),
        DeviceSlice("b", "n1", 65_536, 0, 1, WORD),
        DeviceSlice("c", "n1", 5000, 7, 2, WORD),
    )

    def listed(self, **known: Any) -> list[dict[str, Any]]:
        found = written(BY_WORD[self.WORD], list(self.PARTS), **known)
        assert found["predicate-time"] == "1767225600"
        listed: list[dict[str, Any]] = json.loads(found["huawei.com/Ascend910B3"])
        return listed

    def test_devices_cut_by_the_hardware_name_their_template(self) -> None:
        assert self.listed() == [
            {"UUID": "a", "temp": "vir05_1c_16g", "memory": 16_384},
            {"UUID": "b", "memory": 65_536},
            {"UUID": "c", "memory": 5000, "core": 7},
        ]

    def test_pods_that_want_the_soft_split_name_no_template(self) -> None:
        manifest = manifest_of({}, **{"huawei.com/vnpu-mode": "hami-core"})
        assert self.listed(manifest=manifest)[0] == {"UUID": "a", "memory": 16_384}


class TestNeuron:
    def ids(self, resource: str, *parts: DeviceSlice) -> tuple[str, str | None]:
        found = written(AWS_NEURON, list(parts), manifest=manifest_of({resource: 1}))
        assert (found["NEURON_ALLOCATED"], found["aws.amazon.com/predicate-node"]) == ("false", "n1")
        assert found["NEURON_ALLOC_TIME"] == "1767225600000000000"
        return found["AWS_NEURON_IDS"], found.get("NEURON_RESOURCE_TYPE")

    DEVICE, CORE = "aws.amazon.com/neuron", "aws.amazon.com/neuroncore"

    def test_requests_for_devices_get_device_indexes(self) -> None:
        whole = [DeviceSlice(f"w{n}", "n1", 0, 0b11, n, "AWSNeuron") for n in (2, 3)]
        assert self.ids(self.DEVICE, *whole) == ("2,3", None)

    def test_requests_for_cores_get_core_indexes(self) -> None:
        for bits, numbers in ((0b01, "8"), (0b10, "9"), (0b11, "8,9")):
            assert self.ids(self.CORE, DeviceSlice("w", "n1", 0, bits, 4, "AWSNeuron")) == (numbers, self.CORE)

    @pytest.mark.parametrize(
        ("limits", "cores"),
        [({"aws.amazon.com/neuroncore": 1}, 0b10), ({"aws.amazon.com/neuron": 1}, 0b11)],
    )
    def test_what_is_written_is_found_again(self, limits: dict[str, Any], cores: int) -> None:
        part = DeviceSlice("w", "n1", 0, cores, 0, "AWSNeuron")
        assert read_again(AWS_NEURON, written(AWS_NEURON, [part]), limits) == [part]


def test_amd_names_the_device_s_model() -> None:
    device = Device("a", 0, "AMD", "AMDGPU", 1, 196_608, 304)
    part = DeviceSlice("a", "n1", 16_384, 76, 0, "AMD")
    found = written(AMD, [part], devices={"a": device})
    assert found["hami.io/amd-devices-allocated"] == ";a,AMDGPU,16384,76:;"
    assert found["hami.io/amd-devices-to-allocate"] == found["hami.io/amd-devices-allocated"]
    assert read_again(AMD, found, {"amd.com/gpu": 1, "amd.com/gpumem": 16_384, "amd.com/gpucores": 25}) == [part]
    device = replace(device, type="AMD: Instinct, MI300")
    assert written(AMD, [part], devices={"a": device})["hami.io/amd-devices-allocated"] == ";a,AMD,16384,76:;"


def test_cambricon_names_the_profile() -> None:
    found = written(CAMBRICON, [DeviceSlice("m", "n1", 5120, 30, 3, "MLU")])
    assert found["CAMBRICON_DSMLU_PROFILE"] == "3_30_20"
    assert found["CAMBRICON_DSMLU_ASSIGNED"] == "false"


def test_moore_threads_lists_indexes_and_how_many() -> None:
    parts = [DeviceSlice(f"t{n}", "n1", 49_152, 16, n, "Mthreads") for n in (2, 5)]
    found = written(MOORE_THREADS, parts)
    assert found["mthreads.com/gpu-index"] == "2,5"
    assert found["mthreads.com/predicate-node"] == "n1"
    assert found["mthreads.com/predicate-time"] == "1767225600000000000"
    assert added(MOORE_THREADS, parts) == {"mthreads.com/request-gpu-num": "2"}
    assert added(MOORE_THREADS, parts[:1]) == {}
    assert "hami.io/mthreads-vgpu-devices-to-allocate" not in found
    assert "hami.io/mthreads-vgpu-devices-allocated" in found


def test_kunlun_lists_indexes() -> None:
    found = written(KUNLUN, [DeviceSlice("k", "n1", 1, 1, n, "kunlun") for n in (4, 6)])
    assert found["BAIDU_COM_DEVICE_IDX"] == "4,6"
