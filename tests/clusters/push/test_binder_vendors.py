"""Pods of other vendors' devices, from the Job to the node: limits completed, annotations and locks of their own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from clusters.api_objects import NODES, PODS, JsonObject
from gpus.models import DeviceAllocation
from scheduler.leader.engine import Engine
from scheduling.model.quantity import parse_amount
from tests.clusters.system import System, gpu_job, queued
from tests.factories import make_cluster_queue
from tests.simulated_cluster import job, pod

pytestmark = pytest.mark.django_db(transaction=True)

DRS = '{"devices":[{"index":"0","minor":"3","capacity":6}],"profiles":{"1g.6gb":"0","3g.20gb":"1","6g.40gb":"2"}}'
METAX = orjson.dumps(
    [
        {"uuid": "M-0", "model": "C500", "totalDevCount": 16, "totalCompute": 100, "totalVRam": 65_536, "healthy": True}
        | {"qosPolicy": "best-effort"}
    ]
).decode()
AMD = '[{"id":"A-0","count":4,"devmem":196608,"devcore":304,"type":"AMDGPU","health":true}]'
NODE = "node-01"
NOTHING: Mapping[str, str] = {}
NO_AMOUNTS: Mapping[str, int] = {}


def equip(system: System, annotations: Mapping[str, str] = NOTHING, capacity: Mapping[str, int] = NO_AMOUNTS) -> None:
    """Give a node another vendor's devices, by annotations or by its capacity."""
    system.client.patch(NODES, "", NODE, {"metadata": {"annotations": dict(annotations)}})
    if capacity:
        node = system.client.get(NODES, "", NODE)
        assert node is not None
        amounts = {**node["status"]["capacity"], **{name: str(amount) for name, amount in capacity.items()}}
        system.client.patch(
            NODES, "", NODE, {"status": {"capacity": amounts, "allocatable": amounts}}, subresource="status"
        )
    system.watcher.resync()


def submit(system: System, limits: Mapping[str, Any], name: str = "train", **annotations: str) -> None:
    """A Job of one pod with these limits, in a queue with quota for many of them."""
    noted = {f"metax-tech.com/{key.replace('_', '-')}": value for key, value in annotations.items()}
    manifest = job(name, limits=dict(limits), annotations=noted, run_seconds=1000)
    labels = {"kueue.x-k8s.io/queue-name": "others"}
    system.submit(queued({**manifest, "metadata": {**manifest["metadata"], "labels": labels}}))


def others(system: System, limits: Mapping[str, Any]) -> None:
    """A ClusterQueue with quota for a hundred such pods."""
    quotas = {name: 100 * parse_amount(name, str(amount)) for name, amount in {"cpu": 1, **limits}.items()}
    make_cluster_queue(system.cluster, "others", {"gpu-flavor": quotas}, local_queue="others")


def the_pod(system: System, of: str = "train") -> JsonObject:
    (found,) = [found for found in system.pods() if found["metadata"]["name"].startswith(of)]
    return found


def noted(system: System, of: str = "train") -> dict[str, str]:
    found: dict[str, str] = the_pod(system, of)["metadata"]["annotations"]
    return found


def test_limits_that_were_left_out_reach_the_kubelet(system: System) -> None:
    limits = {"nvidia.com/gpumem": 3000}
    others(system, limits)
    submit(system, limits)
    system.turn()
    (container,) = the_pod(system)["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpumem": 3000, "nvidia.com/gpu": 1}
    # The plugin compares the number of devices that the kubelet asks for with the annotation's.
    assert the_pod(system)["status"]["phase"] == "Running"


def test_quota_counts_what_was_submitted(system: System) -> None:
    limits = {"nvidia.com/gpu": 1}
    others(system, limits)
    submit(system, limits)
    system.turn()
    (container,) = the_pod(system)["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": 1, "nvidia.com/gpucores": 100}
    (pod_set,) = system.workload("train").pod_sets.all()
    assert set(pod_set.resource_usage) == {"cpu", "nvidia.com/gpu"}


class TestMetax:
    LIMITS: Mapping[str, int] = {"metax-tech.com/sgpu": 1, "metax-tech.com/vcore": 30, "metax-tech.com/vmemory": 4}

    def test_the_policy_is_decided_stored_and_written(self, system: System) -> None:
        equip(system, {"metax-tech.com/node-gpu-devices": METAX})
        others(system, self.LIMITS)
        submit(system, self.LIMITS, "first", sgpu_qos_policy="fixed-share")
        system.engine.run()
        submit(system, self.LIMITS, "second", sgpu_qos_policy="burst-share")
        system.engine.run()
        held = DeviceAllocation.objects.get()
        assert (held.device_uuid, held.memory_mib, held.cores_percent, held.qos_policy) == (
            "M-0",
            4096,
            30,
            "fixed-share",
        )
        system.push()
        annotations = noted(system, "first")
        assert annotations["metax-tech.com/sgpu-qos-policy"] == "fixed-share"
        assert orjson.loads(annotations["metax-tech.com/gpu-devices-allocated"]) == [
            [{"uuid": "M-0", "compute": 30, "vRam": 4096}]
        ]
        assert "CardQosPolicyMismatch" in system.workload("second").message

    def test_an_engine_that_starts_anew_knows_the_tenants(self, system: System) -> None:
        equip(system, {"metax-tech.com/node-gpu-devices": METAX})
        others(system, self.LIMITS)
        submit(system, self.LIMITS, "first", sgpu_qos_policy="fixed-share")
        system.engine.run()
        again = Engine(system.cluster, "again", clock=system.now)
        submit(system, self.LIMITS, "second", sgpu_qos_policy="burst-share")
        submit(system, self.LIMITS, "third", sgpu_qos_policy="fixed-share")
        again.run()
        assert {held.workload.name for held in DeviceAllocation.objects.all() if held.workload} == {
            system.workload("first").name,
            system.workload("third").name,
        }

    def test_tenants_that_others_placed_count_too(self, system: System) -> None:
        equip(system, {"metax-tech.com/node-gpu-devices": METAX})
        annotations = {
            "hami.io/vgpu-node": NODE,
            "hami.io/metax-sgpu-devices-allocated": "M-0,Metax-SGPU,4096,30:;",
            "metax-tech.com/sgpu-qos-policy": "fixed-share",
        }
        foreign = pod("foreign", annotations=annotations, limits=dict(self.LIMITS), nodeName=NODE)
        system.client.create(PODS, foreign)
        system.watcher.resync()
        assert DeviceAllocation.objects.get().qos_policy == "fixed-share"
        others(system, self.LIMITS)
        submit(system, self.LIMITS, sgpu_qos_policy="best-effort")
        system.engine.run()
        assert "CardQosPolicyMismatch" in system.workload("train").message


def test_enflame_s_plugin_learns_the_profile_of_each_container(system: System) -> None:
    limits = {"enflame.com/drs-gcu": 3}
    equip(system, {"enflame.com/gcu-drs-capacity": DRS})
    others(system, limits)
    submit(system, limits)
    system.engine.run()
    system.push()
    annotations = noted(system)
    assert annotations["hami.io/enflame-vgpu-devices-allocated"] == f"{NODE}-enflame-drs-0,Enflame,20480,50:;"
    assert orjson.loads(annotations["assigned-containers"]) == {
        "main": {"allocated": False, "request": 3, "profileID": "1", "profileName": "3g.20gb"}
    }
    assert annotations["enflame.com/gcu-assigned-minor"] == "3"
    held = DeviceAllocation.objects.get()
    assert (held.slots, held.device.used_slots if held.device else None) == (3, 3)


def test_amd_s_entries_name_the_model(system: System) -> None:
    limits = {"amd.com/gpu": 1, "amd.com/gpumem": 16_384, "amd.com/gpucores": 25}
    equip(system, {"hami.io/node-amd-register": AMD})
    others(system, limits)
    submit(system, limits)
    system.engine.run()
    system.push()
    assert noted(system)["hami.io/amd-devices-allocated"] == "A-0,AMDGPU,16384,76:;"


class TestLocks:
    """One lock per vendor: HAMi's, Cambricon's own, or none."""

    def locks(self, system: System) -> dict[str, str]:
        node = system.client.get(NODES, "", NODE)
        assert node is not None
        return {key: value for key, value in node["metadata"]["annotations"].items() if key.endswith(".lock")}

    MLU: Mapping[str, int] = {
        "cambricon.com/vmlu": 1,
        "cambricon.com/mlu.smlu.vcore": 20,
        "cambricon.com/mlu.smlu.vmemory": 4,
    }
    CAPACITY: Mapping[str, int] = {
        "cambricon.com/vmlu": 100,
        "cambricon.com/mlu.smlu.vcore": 100,
        "cambricon.com/mlu.smlu.vmemory": 64,
    }

    def moment(self, system: System, seconds_ago: float) -> str:
        return datetime.fromtimestamp(system.now() - seconds_ago, UTC).isoformat()

    def admit(self, system: System, count: int = 1) -> None:
        equip(system, capacity=self.CAPACITY)
        others(system, self.MLU)
        for number in range(count):
            submit(system, self.MLU, f"train{number}")
        system.engine.run()

    def test_cambricon_s_lock_is_its_own_and_holds_the_time_alone(self, system: System) -> None:
        self.admit(system, 2)
        assert system.push().bound == 1
        (lock,) = self.locks(system).items()
        assert lock == ("cambricon.com/dsmlu.lock", self.moment(system, 0).replace("+00:00", "Z"))
        profiles = {found["metadata"]["annotations"]["CAMBRICON_DSMLU_PROFILE"] for found in system.pods()}
        assert profiles == {"0_20_4"}

    @pytest.mark.parametrize(("seconds_ago", "bound"), [(119, 0), (121, 1)])
    def test_it_expires_after_two_minutes(self, system: System, seconds_ago: float, bound: int) -> None:
        self.admit(system)
        equip(system, {"cambricon.com/dsmlu.lock": self.moment(system, seconds_ago)})
        assert system.push().bound == bound

    def test_vendors_without_a_lock_bind_at_once(self, system: System) -> None:
        limits = {"aws.amazon.com/neuroncore": 1}
        equip(system, capacity={"aws.amazon.com/neuron": 1, "aws.amazon.com/neuroncore": 2})
        others(system, limits)
        submit(system, limits, "first")
        submit(system, limits, "second")
        system.engine.run()
        assert system.push().bound == 2
        assert not self.locks(system)
        assert {noted(system, name)["AWS_NEURON_IDS"] for name in ("first", "second")} == {"0", "1"}

    @pytest.mark.parametrize("status", [{"phase": "Running"}, {"startTime": "2026-01-01T00:00:00Z"}])
    def test_a_lock_whose_holder_has_started_is_left_over(self, system: System, status: dict[str, str]) -> None:
        running = pod("other", schedulerName="hami-scheduler")
        system.client.create(PODS, running)
        system.client.patch(PODS, "default", "other", {"status": status}, subresource="status")
        system.submit(gpu_job(run_seconds=1000))
        system.engine.run()
        node = DeviceAllocation.objects.get().node.name
        text = f"{self.moment(system, 10)},default,other"
        system.client.patch(NODES, "", node, {"metadata": {"annotations": {"hami.io/mutex.lock": text}}})
        assert system.push().bound == 1
