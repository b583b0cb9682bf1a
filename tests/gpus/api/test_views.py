"""Nodes, devices and slices over REST: every device for everybody, every tenant for who may."""

from typing import Any

import pytest

from accounts.models import Cluster
from gpus.models import Device, DeviceAllocation, Node
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Workload
from queues.services.submission import create_workloads
from tests.api_client import SchemaClient
from tests.users import EPOCH


@pytest.fixture
def devices(cluster: Cluster) -> list[Device]:
    """Two nodes with two devices each; team-a and team-b share the first device, a stranger holds a slice of the
    second."""
    specs = [
        WorkloadSpec(namespace, "train", "main", (PodSetSpec("main", 1, {}, {}),)) for namespace in ("team-a", "team-b")
    ]
    create_workloads(cluster, specs, actor="alice")
    devices = []
    for name in ("n1", "n2"):
        node = Node.objects.create(
            cluster=cluster, name=name, created_at=EPOCH, allocatable={"cpu": 8000, "memory": 2**34}
        )
        devices += [
            Device.objects.create(
                node=node, uuid=f"GPU-{name}-{index}", index=index, slots=10, memory_mib=32768, type="V100"
            )
            for index in range(2)
        ]
    for workload in Workload.objects.order_by("namespace"):
        hold(devices[0], workload=workload, pod_set="main", container="c")
    hold(devices[1], source="external", namespace="kube-system", pod_name="monitor")
    Device.objects.filter(pk=devices[0].pk).update(used_slots=2, used_memory_mib=2000, used_cores_percent=20)
    Device.objects.filter(pk=devices[1].pk).update(
        external_slots=1, external_memory_mib=1000, external_cores_percent=10
    )
    return devices


def hold(device: Device, **fields: Any) -> None:
    DeviceAllocation.objects.create(
        cluster=device.node.cluster,
        node=device.node,
        device=device,
        device_uuid=device.uuid,
        memory_mib=1000,
        cores_percent=10,
        created_at=EPOCH,
        **fields,
    )


def test_nodes(bob: SchemaClient, devices: Any) -> None:
    rows = bob.get("/api/v1/nodes/").json()["results"]
    assert [row["name"] for row in rows] == ["n1", "n2"]
    assert rows[0]["allocatable"] == {"cpu": "8", "memory": "16Gi"}
    assert rows[0]["device_totals"] == {
        "devices": 2,
        "slots": 20,
        "used_slots": 3,
        "memory_mib": 65536,
        "used_memory_mib": 3000,
        "cores_percent": 200,
        "used_cores_percent": 30,
    }
    assert [row["name"] for row in bob.get("/api/v1/nodes/", {"search": "2"}).json()["results"]] == ["n2"]
    node = bob.get("/api/v1/nodes/n1/").json()
    assert [device["uuid"] for device in node["devices"]] == ["GPU-n1-0", "GPU-n1-1"]
    assert bob.get("/api/v1/nodes/n3/").status_code == 404


def test_slices_of_others_are_occupied(alice: SchemaClient, bob: SchemaClient, devices: Any) -> None:
    url = "/api/v1/devices/GPU-n1-0/"
    assert [piece["workload"] for piece in alice.get(url).json()["slices"]] == ["team-a/train", "team-b/train"]
    device = bob.get(url).json()
    assert device["used_memory_mib"] == 2000
    mine, occupied = device["slices"]
    assert (mine["workload"], mine["pod_set"], mine["container"]) == ("team-a/train", "main", "c")
    assert occupied == {
        "workload": None,
        "namespace": None,
        "pod_set": "",
        "replica": 0,
        "container": "",
        "source": "decided",
        "memory_mib": 1000,
        "cores_percent": 10,
    }
    assert bob.get("/api/v1/devices/GPU-x/").status_code == 404


def test_devices(alice: SchemaClient, bob: SchemaClient, devices: Any) -> None:
    page = bob.get("/api/v1/devices/", {"limit": 3}).json()
    assert [row["uuid"] for row in page["results"]] == ["GPU-n1-0", "GPU-n1-1", "GPU-n2-0"]
    assert page["results"][1]["slices"][0]["workload"] is None
    rest = bob.get("/api/v1/devices/", {"limit": 3, "after": page["next"]}).json()
    assert [row["uuid"] for row in rest["results"]] == ["GPU-n2-1"]
    found = alice.get("/api/v1/devices/", {"node": "n1", "vendor": "NVIDIA"}).json()["results"]
    assert found[1]["slices"][0]["workload"] == "kube-system/monitor"
    for query, number in (
        ({"node": "n1,n2"}, 4), ({"node": "absent,n2"}, 2), ({"vendor": "AMD,NVIDIA", "type": "A100,V100"}, 4),
        ({"vendor": "AMD,Other"}, 0),
    ):  # fmt: skip
        assert len(bob.get("/api/v1/devices/", query).json()["results"]) == number, query
    url = "/api/v1/device-allocations/"
    for query, number in (
        ({"node": "n1,n2"}, 3), ({"device": "GPU-n1-1,absent"}, 1), ({"source": "decided,external"}, 3),
        ({"source": "external"}, 1),
    ):  # fmt: skip
        assert len(alice.get(url, query).json()["results"]) == number, query


def test_a_device_in_mig_mode_says_where_its_instances_are(alice: SchemaClient, devices: Any) -> None:
    places = [{"start": 0, "size": 4}, {"start": 4, "size": 4}]
    profile = {"name": "3g.20gb", "memory_mib": 19968, "placements": places}
    Device.objects.filter(pk=devices[3].pk).update(mode="mig", mig_profiles=[profile])
    instance = {"profile": "3g.20gb", "start": 4, "size": 4}
    hold(devices[3], source="external", namespace="team-a", pod_name="p", mig_instance=instance)
    shared, *_, cut = alice.get("/api/v1/devices/").json()["results"]
    assert (cut["mig_places"], cut["slices"][0]["mig"]) == (8, [instance])
    assert "mig_places" not in shared
    assert "mig" not in shared["slices"][0]


def test_device_allocations(alice: SchemaClient, bob: SchemaClient, devices: Any) -> None:
    url = "/api/v1/device-allocations/"
    assert [row["namespace"] for row in alice.get(url).json()["results"]] == ["team-a", "team-b", "kube-system"]
    assert [row["namespace"] for row in bob.get(url).json()["results"]] == ["team-a", None, None]
    assert [row["device"] for row in bob.get(url, {"source": "external"}).json()["results"]] == ["GPU-n1-1"]
    assert bob.get(url, {"source": "heard"}).status_code == 400


def test_another_cluster_has_none(alice: SchemaClient, devices: Any) -> None:
    Cluster.objects.create(name="other")
    for kind in ("nodes", "devices", "device-allocations"):
        assert alice.get(f"/api/v1/{kind}/", {"cluster": "other"}).json()["results"] == []


def test_cores_of_mig_profiles_that_are_rounded_up_come_to_no_more_than_the_device(
    alice: SchemaClient, devices: Any
) -> None:
    Device.objects.filter(pk=devices[3].pk).update(mode="mig", used_cores_percent=101)
    shown = alice.get(f"/api/v1/devices/{devices[3].uuid}/").json()
    assert (shown["units"]["parts"], shown["units"]["used_cores"]) == ("MIG instances", 100)
