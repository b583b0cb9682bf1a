"""HAMi's wire formats: round trips, tolerance, and what is refused. X42 and X43 of the worked examples."""

from __future__ import annotations

import json
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpus.annotations import (
    AllocatedDevice,
    AnnotationError,
    MigAllocation,
    NodeLock,
    align_containers,
    decode_containers,
    decode_cordoned,
    decode_mig_allocations,
    decode_pair_scores,
    encode_containers,
    encode_mig_allocations,
    found_allocation,
    node_devices,
    plugin_answers,
    pod_annotations,
)
from gpus.annotations.inventory import (
    decode_devices_json,
    decode_devices_string,
)
from gpus.vendors import VENDORS
from scheduling.model.device import Device, DeviceSlice, MigInstance, MigPlacement, MigProfile
from scheduling.model.placement import PodPlacement
from tests.gpus.register_annotations import (
    encode_cordoned,
    encode_devices_json,
    encode_devices_string,
    encode_pair_scores,
    handshake_request,
)

NAMES = st.text(alphabet=st.characters(codec="ascii", exclude_characters=",:;", categories=("L", "N", "P")), min_size=1)
AMOUNTS = st.integers(0, 2**31 - 1)
PLACES = st.builds(MigPlacement, st.integers(0, 7), st.integers(1, 8))
PROFILES = st.builds(
    MigProfile, NAMES, AMOUNTS, st.integers(0, 100), st.integers(0, 8), st.lists(PLACES, max_size=3).map(tuple)
)
DEVICES = st.builds(
    Device,
    uuid=NAMES,
    index=AMOUNTS,
    vendor=st.just("NVIDIA"),
    type=NAMES,
    slots=AMOUNTS,
    memory_mib=AMOUNTS,
    cores_percent=AMOUNTS,
    numa=st.integers(0, 8),
    mode=st.sampled_from(["hami-core", "mig", "mps", ""]),
    health=st.booleans(),
)
ALLOCATED = st.builds(AllocatedDevice, NAMES, NAMES, AMOUNTS, st.integers(0, 100))


class TestInventory:
    @given(st.lists(DEVICES), st.lists(PROFILES, max_size=3))
    def test_json_round_trip(self, devices: list[Device], profiles: list[MigProfile]) -> None:
        made = tuple(
            Device(**{name: getattr(device, name) for name in Device.__slots__} | {"mig_profiles": tuple(profiles)})
            for device in devices
        )
        assert decode_devices_json(encode_devices_json(made), "NVIDIA") == made

    @given(st.lists(DEVICES, min_size=1))
    def test_string_round_trip(self, devices: list[Device]) -> None:
        assert decode_devices_string(encode_devices_string(devices), "NVIDIA") == tuple(devices)

    def test_keys_that_are_zero_are_absent_and_absent_health_is_unhealthy(self) -> None:
        text = '[{"id":"GPU-aaa","count":10,"devmem":40960,"devcore":100,"type":"NVIDIA","mode":"mig","health":true}]'
        (device,) = decode_devices_json(text, "NVIDIA")
        assert (device.index, device.numa, device.health) == (0, 0, True)
        assert encode_devices_json([device]) == text
        (unhealthy,) = decode_devices_json('[{"id":"GPU-aaa"}]', "NVIDIA")
        assert not unhealthy.health

    def test_seven_and_nine_fields(self) -> None:
        (old,) = decode_devices_string("GPU-aaa,10,16384,100,NVIDIA-Tesla V100,0,true:", "NVIDIA")
        assert (old.index, old.mode, old.health, old.type) == (0, "hami-core", True, "NVIDIA-Tesla V100")
        text = "DCU-0,4,32768,100,DCU-K100,0,true,0,hami-core:DCU-1,4,32768,100,DCU-K100,1,true,1,hami-core:"
        first, second = decode_devices_string(text, "DCU")
        assert (first.index, second.index, second.numa) == (0, 1, 1)
        assert encode_devices_string([first, second]) == text

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "{}",
            "[1]",
            '[{"index":1}]',
            '[{"id":"a","count":"10"}]',
            '[{"id":"a","health":"true"}]',
            '[{"id":"a","devmem":1e300}]',
            '[{"id":"a","devmem":2147483648}]',
            '[{"id":"a","migProfiles":[5]}]',
            "[" * 100_000,
            f'[{{"id":"a","count":{"9" * 5000}}}]',
            "not json",
        ],
    )
    def test_malformed_json_is_refused_whole(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            decode_devices_json(text, "NVIDIA")

    @pytest.mark.parametrize(
        "text",
        [
            "",
            "GPU-a,1,2",
            "GPU-a,1,2,3,T,0,true,0:",
            "GPU-a,x,2,3,T,0,true:",
            "a,1,2,3,T,0,y:",
            "a," + "1" * 5000 + ",2,3,T,0,true:",
        ],
    )
    def test_malformed_strings_are_refused_whole(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            decode_devices_string(text, "NVIDIA")

    @pytest.mark.parametrize(
        "fields",
        [
            {"id": "a" * 129},
            {"id": "a\0"},
            {"id": "a:b"},
            {"type": "t" * 129},
            {"mode": "\n"},
            {"index": -1},
            {"count": -1},
        ],
    )
    def test_what_can_be_no_device_is_a_problem_of_the_annotation(self, fields: dict[str, object]) -> None:
        key, text = "hami.io/node-nvidia-register", json.dumps([{"id": "a", **fields}])
        found = node_devices("n1", {key: text}, {}, {}, VENDORS, 0)
        assert (found.devices, list(found.problems)) == ((), [key])

    def test_a_separator_in_a_name_can_t_be_written_as_a_string(self) -> None:
        with pytest.raises(AnnotationError):
            encode_devices_string([Device("GPU-a", 0, "NVIDIA", "A,100", 1, 1, 1)])

    @given(st.dictionaries(NAMES, st.dictionaries(NAMES, st.integers(0, 1800), max_size=4), max_size=4))
    def test_pair_scores_round_trip(self, scores: dict[str, dict[str, int]]) -> None:
        devices = [Device(uuid, 0, "NVIDIA", "A", 1, 1, 1, pair_scores=pairs) for uuid, pairs in scores.items()]
        assert decode_pair_scores(encode_pair_scores(devices)) == scores

    @given(st.frozensets(NAMES))
    def test_cordoned_round_trip(self, uuids: frozenset[str]) -> None:
        assert decode_cordoned(encode_cordoned(uuids)) == uuids


class TestNode:
    def test_all_that_a_node_says_of_its_devices(self) -> None:
        devices = [Device(f"GPU-{n}", n, "NVIDIA", "NVIDIA A100", 10, 40_960, 100) for n in range(2)]
        scores = [{"uuid": "GPU-0", "score": {"GPU-1": 200}}]
        found = node_devices(
            "n1",
            {
                "hami.io/node-nvidia-register": encode_devices_json(devices),
                "hami.io/node-nvidia-score": json.dumps(scores),
                "hami.io/device-cordon": " GPU-1 ",
                "hami.io/node-handshake": "Reported 2026-01-01 00:00:00",
            },
            {},
            {},
            VENDORS,
            now=0,
        )
        assert [(d.uuid, d.cordoned, dict(d.pair_scores)) for d in found.devices] == [
            ("GPU-0", False, {"GPU-1": 200}),
            ("GPU-1", True, {}),
        ]
        assert not found.unhealthy_vendors
        assert not found.problems

    def test_what_can_t_be_read_is_a_problem_and_no_device(self) -> None:
        found = node_devices("n1", {"hami.io/node-nvidia-register": "[{"}, {}, {}, VENDORS, now=0)
        assert found.devices == ()
        assert list(found.problems) == ["hami.io/node-nvidia-register"]

    def test_a_silent_plugin_makes_its_vendor_unhealthy(self) -> None:
        asked = datetime.fromisoformat("2026-01-01T00:00:00+00:00").timestamp()
        annotations = {
            "hami.io/node-nvidia-register": encode_devices_json([Device("GPU-0", 0, "NVIDIA", "A", 1, 1, 1)]),
            "hami.io/node-handshake": handshake_request(asked),
        }

        def unhealthy(now: float, allocatable: int | None) -> bool:
            amounts = {} if allocatable is None else {"nvidia.com/gpu": allocatable}
            return "NVIDIA" in node_devices("n1", annotations, {}, amounts, VENDORS, now).unhealthy_vendors

        assert not unhealthy(asked + 59, None)
        assert unhealthy(asked + 60, None)
        assert not unhealthy(asked + 60, 8)
        assert unhealthy(asked + 59, 0), "the kubelet offers none: no pod would start"
        annotations["hami.io/node-handshake"] = "Reported_2026-01-01 00:00:00"
        assert (unhealthy(asked, 8), unhealthy(asked, 0)) == (False, True)

    @pytest.mark.parametrize(
        ("handshake", "alive"),
        [(None, True), ("Reported x", True), ("Requesting_nonsense", True), ("Deleted_2026", False)],
    )
    def test_other_handshakes(self, handshake: str | None, alive: bool) -> None:
        assert plugin_answers(handshake, 0, now=0) is alive


class TestAllocation:
    @given(st.lists(st.lists(ALLOCATED, max_size=3), max_size=4))
    def test_round_trip(self, containers: list[list[AllocatedDevice]]) -> None:
        decoded = decode_containers(encode_containers(containers))
        assert decoded == tuple(tuple(container) for container in containers)

    def test_the_older_names_of_mig_instances_are_of_their_device(self) -> None:
        annotations = {"hami.io/vgpu-node": "n1", "hami.io/vgpu-devices-allocated": "GPU-a[1-0],NVIDIA,4864,15:;"}
        container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        found = found_allocation(
            {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}, VENDORS
        )
        assert found is not None
        assert [(part.uuid, part.memory_mib) for part in found.slices] == [("GPU-a", 4864)]

    def test_x42_text_of_two_containers(self) -> None:
        first = (AllocatedDevice("A", "NVIDIA", 1, 2), AllocatedDevice("B", "NVIDIA", 3, 4))
        assert decode_containers("A,NVIDIA,1,2:B,NVIDIA,3,4:;;") == (first, ())
        assert encode_containers([first, ()]) == "A,NVIDIA,1,2:B,NVIDIA,3,4:;;"

    @pytest.mark.parametrize(
        "text",
        [
            "A,NVIDIA,1:;",
            "A,NVIDIA,1,x:;",
            "A,NVIDIA,,0:;",
            "garbage,:;",
            f"A,NVIDIA,{'1' * 5000},0:;",
            "A\0,NVIDIA,1,0:;",
        ],
    )
    def test_malformed_allocations_are_not_passed_over(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            decode_containers(text)

    def test_misaligned_entries_go_to_the_containers_that_ask(self) -> None:
        device = (AllocatedDevice("A", "NVIDIA", 1, 2),)
        assert align_containers([device], [False, True]) == ((), device)
        assert align_containers([(), device], [False, True]) == ((), device)
        assert align_containers([device, (), device], [True, True, True]) == (device, (), device)
        with pytest.raises(AnnotationError):
            align_containers([device, device], [True])

    @given(st.lists(st.booleans(), max_size=5))
    def test_both_alignments_read_the_same(self, asking: list[bool]) -> None:
        device = (AllocatedDevice("A", "NVIDIA", 1, 2),)
        aligned = [device if asks else () for asks in asking]
        assert align_containers(aligned, asking) == align_containers([entry for entry in aligned if entry], asking)

    def test_mig_round_trip(self) -> None:
        instance = MigInstance("1g.5gb", MigPlacement(6, 1))
        allocations = (
            MigAllocation(0, 0, "GPU-a", instance),
            MigAllocation(1, 0, "GPU-a", instance, "MIG-1", 7, 0),
        )
        assert decode_mig_allocations(encode_mig_allocations(allocations)) == allocations

    @pytest.mark.parametrize(
        "text",
        [
            "{",
            "{}",
            "[{}]",
            '[{"gpuUUID":"a","profile":"p","placement":{"start":0,"size":1},"migUUID":"m"}]',
            "[5]",
            "[" * 100_000,
            '[{"gpuUUID":"a","profile":"p","placement":[0,1]}]',
            '[{"gpuUUID":"a","profile":"p","placement":{"start":Infinity,"size":1}}]',
            '[{"gpuUUID":"a","profile":"\\u0000","placement":{"start":0,"size":1}}]',
        ],
    )
    def test_malformed_mig_allocations(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            decode_mig_allocations(text)

    def test_what_is_written_is_found_again(self) -> None:
        placed = PodPlacement(
            "main",
            0,
            "n1",
            ((), (DeviceSlice("GPU-a", "n1", 3000, 30, 0), DeviceSlice("GPU-b", "n1", 3000, 30, 1)), ()),
            init_container_count=1,
        )
        annotations = pod_annotations(placed, VENDORS, 1_767_225_600.9)
        text = ";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;"
        assert annotations == {
            "hami.io/vgpu-node": "n1",
            "hami.io/vgpu-time": "1767225600",
            "hami.io/vgpu-devices-to-allocate": text,
            "hami.io/vgpu-devices-allocated": text,
        }
        limits = {"nvidia.com/gpu": "2", "nvidia.com/gpumem": "3000", "nvidia.com/gpucores": "30"}
        pod = {
            "metadata": {"annotations": annotations},
            "spec": {
                "initContainers": [{"name": "init"}],
                "containers": [{"name": "main", "resources": {"limits": limits}}, {"name": "side"}],
            },
        }
        found = found_allocation(pod, VENDORS)
        assert found is not None
        assert not found.malformed
        assert [(part.uuid, part.memory_mib, part.cores_percent) for part in found.slices] == [
            ("GPU-a", 3000, 30),
            ("GPU-b", 3000, 30),
        ]

    def test_a_pod_without_devices_gets_no_annotations(self) -> None:
        assert pod_annotations(PodPlacement("main", 0, "n1", ((),)), VENDORS, 0) == {}
        assert found_allocation({"metadata": {}}, VENDORS) is None

    @pytest.mark.parametrize("value", ["GPU-a,NVIDIA,x,0:;", None])
    def test_unreadable_allocations_are_malformed(self, value: str | None) -> None:
        annotations = {"hami.io/vgpu-node": "n1"}
        if value is not None:
            annotations["hami.io/vgpu-devices-allocated"] = value
        container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1}}}
        found = found_allocation(
            {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}, VENDORS
        )
        assert found is not None
        assert found.malformed

    def test_mig_instances_are_found_and_written(self) -> None:
        part = DeviceSlice("GPU-a", "n1", 4864, 15, 0, mig=MigInstance("1g.5gb", MigPlacement(6, 1)))
        annotations = pod_annotations(PodPlacement("main", 0, "n1", ((part,),)), VENDORS, 0)
        container = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 3000}}}
        found = found_allocation(
            {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}, VENDORS
        )
        assert found is not None
        assert [each.mig for each in found.slices] == [part.mig]


class TestLock:
    TEXT = "2026-08-01T10:00:00Z,ns,p1"

    def at(self, minute: int) -> float:
        return datetime.fromisoformat(f"2026-08-01T10:{minute:02}:00+00:00").timestamp()

    def test_x43_which_pods_may_take_the_lock(self) -> None:
        lock = NodeLock.decode(self.TEXT)
        assert not lock.free_for("ns", "p2", self.at(3), holder_exists=True)
        assert lock.free_for("ns", "p2", self.at(6), holder_exists=True)
        assert lock.free_for("ns", "p2", self.at(1), holder_exists=False)
        assert lock.free_for("ns", "p1", self.at(1), holder_exists=True)
        assert lock.encode() == self.TEXT

    def test_the_older_form_is_a_bare_time(self) -> None:
        lock = NodeLock.decode("2026-08-01T10:00:00Z")
        assert lock.encode() == "2026-08-01T10:00:00Z"
        assert not lock.free_for("ns", "p2", self.at(3), holder_exists=False)

    @pytest.mark.parametrize("text", ["", "now,ns,p1", "2026-08-01T10:00:00Z,ns", "2026-08-01T10:00:00,ns,p1"])
    def test_an_unreadable_lock_is_an_error(self, text: str) -> None:
        with pytest.raises(AnnotationError):
            NodeLock.decode(text)

    @given(st.integers(0, 2**32), NAMES, NAMES)
    def test_round_trip(self, second: int, namespace: str, pod: str) -> None:
        lock = NodeLock(float(second), namespace, pod)
        assert NodeLock.decode(lock.encode()) == lock
