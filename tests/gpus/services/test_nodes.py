"""Nodes and devices follow what the cluster shows, and only what differs is written."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from accounts.models import Cluster
from gpus.annotations import FoundAllocation
from gpus.models import Device, DeviceAllocation, Node
from gpus.services import ExternalPod, forget_node, observed_node, record_external, sync_foreign_usage, sync_node
from scheduler.models import Change
from scheduling.model.device import DeviceSlice
from tests.factories import make_cluster, make_workload

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def cluster(db: None) -> Cluster:
    return make_cluster()


def gpu(uuid: str, index: int = 0, **changed: Any) -> dict[str, Any]:
    return {
        "id": uuid, "index": index, "count": 10, "devmem": 32_768, "devcore": 100, "type": "NVIDIA-V100",
        "mode": "hami-core", "health": True, **changed,
    }  # fmt: skip


def manifest(*devices: dict[str, Any], annotations: dict[str, str] | None = None, **status: Any) -> dict[str, Any]:
    register = {"hami.io/node-nvidia-register": orjson.dumps(list(devices)).decode()} if devices else {}
    return {
        "metadata": {
            "name": "n1",
            "uid": "u1",
            "labels": {"zone": "a"},
            "annotations": {**register, **(annotations or {})},
        },
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {"allocatable": {"cpu": "8", "memory": "64Gi", "pods": "110"}, "capacity": {"cpu": "8"}, **status},
    }


def sync(cluster: Cluster, node: dict[str, Any]) -> bool:
    return sync_node(cluster.pk, observed_node(node), now=NOW)


def test_a_node_and_its_devices_are_stored_in_base_units(cluster: Cluster) -> None:
    assert sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1, health=False, numa=1)))
    node = Node.objects.get()
    assert (node.allocatable["cpu"], node.allocatable["memory"], node.ready) == (8000, 64 * 2**30, True)
    assert node.taints == [{"key": "gpu", "effect": "NoSchedule"}]
    rows = Device.objects.values_list("uuid", "index", "slots", "memory_mib", "healthy", "numa")
    assert list(rows) == [("GPU-a", 0, 10, 32_768, True, 0), ("GPU-b", 1, 10, 32_768, False, 1)]


def test_the_same_again_writes_nothing(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a")))
    Change.objects.all().delete()
    cluster.refresh_from_db()
    before = cluster.configuration_generation
    assert sync(cluster, manifest(gpu("GPU-a"))) is False
    # The position in the list means nothing, and locks come and go.
    assert sync(cluster, manifest(gpu("GPU-a"), annotations={"hami.io/mutex.lock": "x"})) is False
    cluster.refresh_from_db()
    assert (cluster.configuration_generation, Change.objects.count()) == (before, 0)


def test_conditions_are_kept_in_the_clusters_words_and_heartbeats_write_nothing(cluster: Cluster) -> None:
    def said(beat: str) -> dict[str, Any]:
        pressure = {
            "type": "MemoryPressure", "status": "False", "reason": "Enough", "message": "kubelet has memory",
            "lastHeartbeatTime": beat, "lastTransitionTime": "2026-01-01T00:00:00Z",
        }  # fmt: skip
        return manifest(conditions=[pressure])

    assert sync(cluster, said("2026-01-05T09:00:00Z"))
    assert sync(cluster, said("2026-01-05T09:00:10Z")) is False
    [condition] = Node.objects.get().conditions
    assert condition == {
        "type": "MemoryPressure",
        "status": "False",
        "reason": "Enough",
        "message": "kubelet has memory",
        "last_transition_time": "2026-01-01T00:00:00Z",
    }


def test_readiness_and_cordons_follow(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    down = manifest(
        gpu("GPU-a"),
        gpu("GPU-b", 1),
        annotations={"hami.io/device-cordon": "GPU-b"},
        conditions=[{"type": "Ready", "status": "Unknown"}],
    )
    down["spec"]["unschedulable"] = True
    assert sync(cluster, down)
    node = Node.objects.get()
    assert (node.ready, node.unschedulable) == (False, True)
    assert list(Device.objects.values_list("cordoned", flat=True)) == [False, True]
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    assert list(Device.objects.values_list("cordoned", flat=True)) == [False, False]


def test_an_operators_cordon_outlives_a_sync_that_says_nothing_of_cordons(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a")))
    Device.objects.update(cordoned=True)
    sync(cluster, manifest(gpu("GPU-a", health=False)))
    assert Device.objects.get().cordoned is True


def test_an_operators_cordon_outlives_an_annotation_that_cordons_other_devices(cluster: Cluster) -> None:
    def cordoned(*uuids: str) -> list[bool]:
        devices = [gpu(f"GPU-{name}", number) for number, name in enumerate("abc")]
        sync(cluster, manifest(*devices, annotations={"hami.io/device-cordon": ",".join(uuids)}))
        return list(Device.objects.order_by("index").values_list("cordoned", flat=True))

    assert cordoned("GPU-c") == [False, False, True]
    Device.objects.filter(uuid="GPU-a").update(cordoned=True)
    assert cordoned("GPU-b", "GPU-c") == [True, True, True]
    assert cordoned("GPU-c") == [True, False, True]


def test_a_cordoned_device_that_falls_off_the_bus_comes_back_cordoned(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    Device.objects.filter(uuid="GPU-a").update(cordoned=True)
    sync(cluster, manifest(gpu("GPU-b", 1)))
    assert Device.objects.get(uuid="GPU-a").missing_since is not None
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    back = Device.objects.get(uuid="GPU-a")
    assert (back.cordoned, back.missing_since) == (True, None)
    sync(cluster, manifest(gpu("GPU-b", 1)))
    Device.objects.update(cordoned=False)
    sync(cluster, manifest(gpu("GPU-b", 1)))
    assert not Device.objects.filter(uuid="GPU-a").exists(), "opened, it goes as others do"


def test_a_device_that_is_gone_goes_unless_slices_of_it_are_held(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    workload = make_workload(cluster, "w")
    device = Device.objects.get(uuid="GPU-a")
    DeviceAllocation.objects.create(
        cluster=cluster, node=device.node, device=device, device_uuid="GPU-a", workload=workload, pod_set="main",
        memory_mib=1000, cores_percent=10, created_at=NOW,
    )  # fmt: skip
    sync(cluster, manifest(gpu("GPU-c", 2)))
    assert dict(Device.objects.values_list("uuid", "missing_since")) == {"GPU-a": NOW, "GPU-c": None}
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-c", 2)))
    assert Device.objects.get(uuid="GPU-a").missing_since is None


@pytest.mark.parametrize("text", ["not json", '{"id": 1}', '[{"count": "many"}]'])
def test_devices_whose_annotation_can_not_be_read_stay_and_are_closed(cluster: Cluster, text: str) -> None:
    sync(cluster, manifest(gpu("GPU-a")))
    sync(cluster, manifest(annotations={"hami.io/node-nvidia-register": text}))
    assert list(Device.objects.values_list("uuid", "healthy")) == [("GPU-a", False)]
    sync(cluster, manifest(gpu("GPU-a")))
    assert Device.objects.get().healthy is True


def test_a_plugin_that_stopped_answering_makes_its_devices_unhealthy(cluster: Cluster) -> None:
    asked = {"hami.io/node-handshake": "Requesting_2025-12-31 23:00:00"}
    sync(cluster, manifest(gpu("GPU-a"), annotations=asked))
    assert Device.objects.get().healthy is False


def test_a_node_that_left_is_removed_unless_we_decided_slices_there(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a")))
    device = Device.objects.get()
    found = FoundAllocation("n1", (DeviceSlice("GPU-a", "n1", 1000, 10),))
    record_external(cluster.pk, [ExternalPod("team", "p", "1", found)], NOW)
    workload = make_workload(cluster, "w")
    held = DeviceAllocation.objects.create(
        cluster=cluster, node=device.node, device=device, device_uuid="GPU-a", workload=workload, pod_set="main",
        memory_mib=1000, cores_percent=10, created_at=NOW,
    )  # fmt: skip
    assert forget_node(cluster.pk, "n1", NOW)
    device.refresh_from_db()
    assert (Node.objects.get().ready, device.missing_since, device.external_slots) == (False, NOW, 0)
    held.delete()
    assert forget_node(cluster.pk, "n1", NOW)
    assert not Node.objects.exists()
    assert forget_node(cluster.pk, "n1", NOW) is False


def test_slices_that_went_with_their_node_count_on_no_device(cluster: Cluster) -> None:
    sync(cluster, manifest(gpu("GPU-a"), gpu("GPU-b", 1)))
    record_external(
        cluster.pk, [ExternalPod("x", "p", "u", FoundAllocation("n1", (DeviceSlice("GPU-a", "n1", 1, 1),)))], NOW
    )
    sync(cluster, manifest(gpu("GPU-b", 1)))  # GPU-a is missing before its node is
    decided = Device.objects.get(uuid="GPU-b")
    DeviceAllocation.objects.create(
        cluster=cluster, node=decided.node, device=decided, workload=make_workload(cluster, "w"),
        memory_mib=1, cores_percent=0, created_at=NOW,
    )  # fmt: skip
    forget_node(cluster.pk, "n1", NOW)
    assert Device.objects.get(uuid="GPU-a").external_slots == 0


def test_foreign_usage_is_replaced_as_a_whole(cluster: Cluster) -> None:
    sync(cluster, manifest())
    assert sync_foreign_usage(cluster.pk, {"n1": {"cpu": 500, "pods": 1}, "unknown": {"cpu": 1}}, {})
    assert Node.objects.get().foreign_usage == {"cpu": 500, "pods": 1}
    assert sync_foreign_usage(cluster.pk, {"n1": {"cpu": 500, "pods": 1}}, {}) is False
    assert sync_foreign_usage(cluster.pk, {}, {})
    assert Node.objects.get().foreign_usage == {}


def test_foreign_usage_beyond_64_bits_is_written_once(cluster: Cluster) -> None:
    """Three pods of the largest request that Kubernetes takes request that much together."""
    sync(cluster, manifest())
    usage = {"n1": {"memory": 3 * (2**63 - 1), "pods": 3}}
    assert sync_foreign_usage(cluster.pk, usage, {})
    assert sync_foreign_usage(cluster.pk, usage, {}) is False
