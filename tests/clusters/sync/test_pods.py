"""What pods say: the progress of workloads, and what others take of nodes and devices."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from django.db import OperationalError

from clusters.api_objects import NODES, PODS
from clusters.client import Listing, WatchEvent
from clusters.sync.pods import PodSync
from gpus.api.reads import drifts
from gpus.models import Device, DeviceAllocation, Node
from queues.models import Pod
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import pod

pytestmark = pytest.mark.django_db(transaction=True)


def condition(system: System) -> dict[str, Any]:
    entries = system.workload().conditions
    return next((entry for entry in entries if entry["type"] == "PodsReady"), {})


def foreign(system: System, name: str = "theirs", **spec: Any) -> None:
    """A pod that the cluster's own scheduler binds."""
    system.client.create(PODS, pod(name, requests={"cpu": "2", "memory": "1Gi"}, **spec))
    system.advance(3)


def test_pods_become_ready_lose_one_and_recover(system: System) -> None:
    system.submit(gpu_job(parallelism=2, completions=2, run_seconds=1000))
    for _ in range(2):
        system.turn()
    assert (condition(system)["status"], condition(system)["reason"]) == ("True", "Started")
    (first, _) = system.pods()
    system.client.delete(PODS, "team", first["metadata"]["name"])
    system.watcher.resync()
    assert (condition(system)["status"], condition(system)["reason"]) == ("False", "WaitForRecovery")
    for _ in range(6):
        system.turn(5)
    assert (condition(system)["status"], condition(system)["reason"]) == ("True", "Recovered")


def test_a_pod_that_went_as_a_job_could_not_be_stored_is_missed_after_the_list_that_follows(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    for _ in range(2):
        system.turn()
    pods = PodSync(system.cluster)
    pods.apply([system.client.list(PODS)], system.now())
    (gone,) = system.pods()
    pods.observe([WatchEvent("DELETED", gone)])  # the watcher looks at jobs then, and fails
    listing = Listing((), "")
    pods.observe([listing])
    pods.apply([listing], system.now())
    assert (condition(system)["status"], condition(system)["reason"]) == ("False", "WaitForRecovery")


def test_a_list_that_follows_pods_which_could_not_be_stored_is_stored(
    system: System, monkeypatch: pytest.MonkeyPatch
) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    Pod.objects.all().delete()
    pods, listing = PodSync(system.cluster), system.client.list(PODS)
    with monkeypatch.context() as patch:
        patch.setattr("clusters.sync.pods.store_pods", Mock(side_effect=OperationalError))
        with pytest.raises(OperationalError):
            pods.apply([WatchEvent("ADDED", listing.items[0])], system.now())
    pods.apply([listing], system.now())
    assert Pod.objects.count() == len(listing.items)


def test_pods_that_succeeded_count_as_ready(system: System) -> None:
    system.submit(gpu_job(parallelism=2, completions=2, run_seconds=20))
    for _ in range(2):
        system.turn()
    longer = {"metadata": {"annotations": {"kueueweb.io/run-seconds": "1000"}}}
    system.client.patch(PODS, "team", system.pods()[0]["metadata"]["name"], longer)
    system.advance(17)
    system.watcher.resync()
    assert set(Pod.objects.values_list("phase", flat=True)) == {"Succeeded", "Running"}
    assert system.workload().pods_ready_at is not None


def test_the_devices_that_a_pod_of_ours_names_are_kept_and_compared(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    held = DeviceAllocation.objects.get(source="decided")
    assert Pod.objects.get().devices == [held.device_uuid]
    assert not list(drifts(system.cluster.pk))
    [bound] = system.pods()
    other = Device.objects.filter(node=held.node).exclude(uuid=held.device_uuid)[0].uuid
    for text, devices in ((f"{other},NVIDIA,4000,30:;", [other]), ("GPU-1,NVIDIA,much,50:;", [])):
        annotations = {"hami.io/vgpu-devices-allocated": text}
        system.client.patch(PODS, "team", bound["metadata"]["name"], {"metadata": {"annotations": annotations}})
        system.watcher.resync()
        assert Pod.objects.get().devices == devices
        [drift] = [drift for drift in drifts(system.cluster.pk) if drift.kind == "other-device"]
        assert drift.device == held.device_uuid


def test_a_pod_of_ours_takes_nothing_by_its_annotations(system: System) -> None:
    """Who may write a pod's annotations took devices, and closed its node with one that can't be read."""
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    [bound] = system.pods()
    held = DeviceAllocation.objects.get()
    other = Device.objects.filter(node=held.node).exclude(uuid=held.device_uuid)[0]
    for text in (f"{other.uuid},NVIDIA,4000,30:;", "GPU-1,NVIDIA,much,50:;", f"{held.device_uuid},NVIDIA,4000,30:;"):
        annotations = {"hami.io/vgpu-devices-allocated": text, "hami.io/mlu-devices-allocated": "garbage,x;"}
        system.client.patch(PODS, "team", bound["metadata"]["name"], {"metadata": {"annotations": annotations}})
        system.watcher.resync()
        assert DeviceAllocation.objects.get() == held


@pytest.mark.parametrize(
    ("limits", "node"), [({}, "runs"), ({}, "other"), ({"nvidia.com/gpu": "1"}, "other"), ({"nvidia.com/gpu": "1"}, "")]
)
def test_annotations_are_not_believed_on_a_pod_that_asks_for_nothing_or_runs_elsewhere(
    system: System, limits: dict[str, str], node: str
) -> None:
    """A Job without devices closed every device of a node on which it did not even run."""
    names = list(Node.objects.order_by("name").values_list("name", flat=True))
    annotations = {"hami.io/vgpu-devices-allocated": "garbage,x;"}
    if node:
        annotations["hami.io/vgpu-node"] = names[0] if node == "runs" else names[1]
    theirs = pod("theirs", limits=limits)
    theirs["metadata"]["annotations"] = annotations
    theirs["spec"]["nodeName"] = names[0]
    system.client.create(PODS, theirs)
    system.watcher.resync()
    assert not DeviceAllocation.objects.exists()


def test_a_pod_whose_annotation_can_not_be_read_holds_as_many_devices_as_it_asks_for(system: System) -> None:
    """It held all devices of its node."""
    name = Node.objects.filter(devices__isnull=False).order_by("name")[0].name
    theirs = pod("theirs", limits={"nvidia.com/gpu": "1"})
    theirs["metadata"]["annotations"] = {
        "hami.io/vgpu-node": name, "hami.io/vgpu-devices-allocated": "garbage,x;"
    }  # fmt: skip
    theirs["spec"]["nodeName"] = name
    system.client.create(PODS, theirs)
    system.watcher.resync()
    held = DeviceAllocation.objects.get()
    assert held.device is not None
    assert (held.memory_mib, bool(held.malformed)) == (held.device.memory_mib, True)
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    assert DeviceAllocation.objects.get(source="decided").device != held.device


def test_a_pod_of_ours_on_another_node_takes_its_amounts_there(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    [bound] = system.pods()
    other = Node.objects.exclude(name=bound["spec"]["nodeName"])[0]
    assert other.foreign_usage == {}
    bound["spec"]["nodeName"] = other.name
    PodSync(system.cluster).apply([Listing((bound,), "1")], system.now())
    other.refresh_from_db()
    assert other.foreign_usage["pods"] == 1
    assert other.unplaced_usage == other.foreign_usage, "it holds quota: these are no others"


def test_rows_of_pods_follow_and_go(system: System) -> None:
    system.submit(gpu_job(run_seconds=30, ttlSecondsAfterFinished=10))
    system.turn()
    row = Pod.objects.get()
    assert (row.pod_set, row.replica, row.phase, row.started_at is not None) == ("main", 0, "Running", True)
    system.turn(30)
    row.refresh_from_db()
    assert (row.phase, row.ready, row.finished_at is not None) == ("Succeeded", False, True)
    system.turn(30)
    assert not Pod.objects.exists()


def test_amounts_of_others_are_counted_per_node_and_ours_are_not(system: System) -> None:
    foreign(system)
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    node = Node.objects.get(name="node-01")
    assert (node.foreign_usage, node.unplaced_usage) == ({"cpu": 2000, "memory": 2**30, "pods": 1}, {})
    assert Node.objects.get(name="node-02").foreign_usage == {}
    system.client.delete(PODS, "default", "theirs")
    system.turn()
    assert Node.objects.get(name="node-01").foreign_usage == {}


def test_words_that_we_do_not_know_yet_are_no_obstacle(system: System) -> None:
    foreign(
        system,
        tolerations=[{"key": "speed", "operator": "Gt", "value": "3", "effect": "NoSchedule"}],
        nodeName="node-02",
    )
    system.watcher.resync()
    assert Node.objects.get(name="node-02").foreign_usage["cpu"] == 2000


def test_slices_of_others_are_found_kept_and_forgotten(system: System) -> None:
    uuid = Device.objects.filter(node__name="node-01").order_by("index")[0].uuid
    annotations = {
        "hami.io/vgpu-node": "node-01",
        "hami.io/vgpu-devices-allocated": f"{uuid},NVIDIA,30000,50:;",
    }
    system.client.create(
        PODS, pod("theirs", annotations=annotations, schedulerName="hami-scheduler", limits={"nvidia.com/gpu": "1"})
    )
    system.watcher.resync()
    # HAMi has promised the slice already, though the pod is not bound yet.
    assert Device.objects.get(uuid=uuid).external_slots == 1
    uid = system.client.list(PODS).items[0]["metadata"]["uid"]
    system.client.bind("default", "theirs", uid, "node-01")
    system.watcher.resync()
    device = Device.objects.get(uuid=uuid)
    assert (device.external_memory_mib, device.external_cores_percent, device.external_slots) == (30_000, 50, 1)
    system.submit(gpu_job(mib=4000, run_seconds=1000))
    system.turn()
    assert DeviceAllocation.objects.get(source="decided").device_uuid != uuid
    system.client.delete(PODS, "default", "theirs")
    system.turn()
    device.refresh_from_db()
    assert device.external_memory_mib == 0


def test_what_init_containers_of_others_held_is_free_when_all_succeeded(system: System) -> None:
    def container(name: str, mib: int) -> dict[str, Any]:
        return {"name": name, "resources": {"limits": {"nvidia.com/gpu": "1", "nvidia.com/gpumem": str(mib)}}}

    def held(*exit_codes: int | None) -> int:
        states: list[dict[str, Any]] = [
            {"running": {}} if code is None else {"terminated": {"exitCode": code}} for code in exit_codes
        ]
        theirs["status"] = {"phase": "Running", "initContainerStatuses": [{"state": state} for state in states]}
        PodSync(system.cluster).apply([Listing((theirs,), "1")], system.now())
        return DeviceAllocation.objects.get().memory_mib

    uuid = Device.objects.filter(node__name="node-01")[0].uuid
    theirs = pod("theirs", annotations={"hami.io/vgpu-node": "node-01"})
    theirs["metadata"] |= {"uid": "9", "namespace": "default"}
    text = f"{uuid},NVIDIA,8000,0:;{uuid},NVIDIA,9000,0:;{uuid},NVIDIA,3000,0:;"
    theirs["metadata"]["annotations"]["hami.io/vgpu-devices-allocated"] = text
    theirs["spec"] |= {
        "nodeName": "node-01",
        "initContainers": [container("first", 8000), container("second", 9000)],
        "containers": [container("main", 3000)],
    }
    assert [held(), held(0), held(0, None), held(0, 1), held(0, 0)] == [9000, 9000, 9000, 9000, 3000]


def test_a_foreign_pod_with_our_label_stays_foreign(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    liar = pod("liar", requests={"cpu": "3"})
    liar["metadata"]["labels"] = {"kueueweb.io/workload-uid": str(system.workload().uid)}
    system.client.create(PODS, liar)
    system.advance(3)
    system.watcher.resync()
    assert sum(usage.get("cpu", 0) for usage in Node.objects.values_list("foreign_usage", flat=True)) == 3000
    assert Pod.objects.count() == 1


@pytest.mark.parametrize(("uid", "replica"), [("no uid", "0"), ("{uid}", "9" * 30), ("{uid}", "²")])
def test_labels_and_annotations_that_make_no_sense_do_no_harm(system: System, uid: str, replica: str) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    strange = pod("strange", annotations={"kueueweb.io/replica": replica}, schedulerName="kueueweb")
    uid = uid.replace("{uid}", str(system.workload().uid)).replace(" ", ".")
    strange["metadata"] |= {
        "namespace": "team",
        "labels": {"kueueweb.io/workload-uid": uid, "kueueweb.io/managed": "true"},
    }
    system.client.create(PODS, strange)
    for _ in range(2):
        system.turn()
    assert system.workload().status == "Admitted"


def test_late_repeated_and_lost_events_end_in_the_same_rows(system: System) -> None:
    system.submit(gpu_job(parallelism=2, completions=2, run_seconds=1000))
    for _ in range(2):
        system.turn()
    truth = system.client.list(PODS)
    sync = PodSync(system.cluster)
    now = system.now()
    earlier = {**truth.items[0]["metadata"], "resourceVersion": "1"}
    older = {**truth.items[0], "metadata": earlier, "status": {"phase": "Pending"}}
    gone = {**truth.items[1], "metadata": {**truth.items[1]["metadata"], "uid": "ghost", "name": "ghost"}}
    events = [
        WatchEvent("ADDED", older),
        WatchEvent("ADDED", older),
        WatchEvent("ADDED", gone),
        WatchEvent("DELETED", truth.items[1]),
        WatchEvent("DELETED", truth.items[1]),
    ]
    sync.apply(events, now)
    sync.apply([truth], now)
    assert set(Pod.objects.values_list("uid", "phase")) == {
        (item["metadata"]["uid"], "Running") for item in truth.items
    }
    sync.apply([Listing((), "1")], now)
    assert not Pod.objects.exists()


def test_a_list_reads_only_the_pods_that_changed_since(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    system.turn()
    sync = PodSync(system.cluster)
    (pod,) = system.client.list(PODS).items
    sync.apply([Listing((pod,), "1")], system.now())

    def phase_when_listed(version: str) -> str:
        metadata = {**pod["metadata"], "resourceVersion": version}
        sync.apply([Listing(({**pod, "metadata": metadata, "status": {"phase": "Unknown"}},), "2")], system.now())
        return Pod.objects.get().phase

    assert phase_when_listed(pod["metadata"]["resourceVersion"]) == "Running"
    Pod.objects.all().delete()  # its row comes back all the same
    assert phase_when_listed(pod["metadata"]["resourceVersion"]) == "Running"
    assert phase_when_listed("changed") == "Unknown"


def test_nodes_that_fail_are_noted_on_the_workloads_that_run_there(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    node = DeviceAllocation.objects.get().node.name
    system.chaos(nodes={node: "not-ready"})
    system.watcher.resync()
    system.watcher.tick()
    assert (Node.objects.get(name=node).ready, system.workload().unhealthy_nodes) == (False, [])
    system.advance(31)
    system.watcher.tick()
    assert system.workload().unhealthy_nodes == [node]
    system.chaos(nodes={node: "ready"})
    system.watcher.resync()
    assert system.workload().unhealthy_nodes == []


def test_a_node_that_left_is_noted_at_once_and_its_row_stays_for_what_is_held(system: System) -> None:
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    node = DeviceAllocation.objects.get().node.name
    other = "node-02" if node == "node-01" else "node-01"
    system.chaos(nodes={node: "gone", other: "gone"})
    system.watcher.resync()
    assert list(Node.objects.values_list("name", "ready")) == [(node, False)]
    assert system.workload().unhealthy_nodes == [node]
    assert system.client.list(NODES).items == ()


def test_a_node_that_can_not_be_stored_does_not_hold_up_the_others(
    system: System, caplog: pytest.LogCaptureFixture
) -> None:
    strange = {"metadata": {"annotations": {"note": "a\u0000b"}}}
    system.client.patch(NODES, "", "node-01", strange)
    system.chaos(nodes={"node-02": "cordoned"})
    with caplog.at_level("ERROR", logger="clusters.sync.nodes"):
        system.watcher.resync()
    assert "node-01" in caplog.text
    assert Node.objects.get(name="node-02").unschedulable is True


def test_an_unhealthy_device_takes_no_new_slice(system: System) -> None:
    for device in Device.objects.filter(node__name="node-01"):
        system.chaos(devices={device.uuid: False})
    system.watcher.resync()
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    assert DeviceAllocation.objects.get().node.name == "node-02"
