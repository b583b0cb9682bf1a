"""Jobs on a real Kubernetes: started where we decided, stopped and started again, found, withdrawn."""

from __future__ import annotations

import threading
import time

import orjson
from django.db import connection

from clusters.api_objects import NODES, PODS, JsonObject
from clusters.push.sweep import push_pending
from gpus.models import DeviceAllocation, Node
from queues.services.workloads import cancel, change_priority, hold, release
from tests.acceptance.processes import wait_for
from tests.cluster_kinds import DEPLOYMENTS, JOBS
from tests.clusters.system import deployment, gpu_job
from tests.kubernetes.device_plugin import DevicePlugin, slices_of
from tests.kubernetes.system import System, documents, kind_of


def test_the_deployment_s_manifests_are_accepted(system: System) -> None:
    for file in ("configuration.yaml", "web.yaml", "workers.yaml", "watcher.yaml"):
        for manifest in documents(file):
            applied = system.admin.apply(kind_of(manifest), manifest)
            assert applied["metadata"]["name"] == manifest["metadata"]["name"]
            if kind_of(manifest) == DEPLOYMENTS:
                system.admin.delete(DEPLOYMENTS, "kueueweb", manifest["metadata"]["name"])


def test_a_job_runs_on_its_slices_to_the_end(system: System, device_plugin: DevicePlugin) -> None:
    system.submit(gpu_job("train", parallelism=2, completions=2, run_seconds=10))
    system.until("both pods run", lambda: system.phases("train") == ["Running", "Running"])
    decided = {
        (allocation.node.name, allocation.device_uuid)
        for allocation in system.workload("train").device_allocations.all()
    }
    assert {item for pod in system.pods("train") for item in slices_of(pod)} == decided
    assert sum(device_plugin.allocated.values()) == 2
    system.until("it is finished", lambda: system.status("train") == "Finished")


def test_held_and_released_it_runs_again(system: System) -> None:
    system.submit(gpu_job("train", run_seconds=None))
    system.until("it runs", lambda: system.phases("train") == ["Running"])
    key = ("team", system.workload("train").name)

    hold(system.cluster, [key], actor="alice")
    system.until("the Job has no pods", lambda: not system.pods("train"))
    assert system.job("train")["spec"]["suspend"] is True
    system.until("its slices are free", lambda: not system.workload("train").device_allocations.exists())

    release(system.cluster, [key], actor="alice")
    system.until("it runs again", lambda: system.phases("train") == ["Running"])
    assert system.job("train")["spec"]["suspend"] is False


def test_a_more_important_job_takes_the_devices(system: System) -> None:
    whole = {"mib": 32_768, "cores": 100}
    system.submit(gpu_job("low", parallelism=4, completions=4, run_seconds=None, **whole))
    system.until("it fills all devices", lambda: system.phases("low") == ["Running"] * 4)
    system.submit(gpu_job("high", run_seconds=3, **whole))
    change_priority(system.cluster, [("team", system.workload("high").name)], 100, actor="alice")

    system.until("the other runs", lambda: system.phases("high") == ["Running"])
    assert system.pods("low") == []
    assert system.job("low")["spec"]["suspend"] is True
    system.until("the first is back", lambda: system.phases("low") == ["Running"] * 4)
    assert system.status("high") == "Finished"


def test_a_cancelled_job_is_deleted(system: System) -> None:
    system.submit(gpu_job("train", run_seconds=None))
    system.until("it runs", lambda: system.phases("train") == ["Running"])
    cancel(system.cluster, [("team", system.workload("train").name)], actor="alice")
    system.until(
        "the job and its pod are gone", lambda: not system.pods() and not system.admin.list(JOBS, "team").items
    )
    system.until("the workload ended", lambda: system.status("train") == "Finished")


def test_a_job_that_someone_else_made_is_found_and_started(system: System) -> None:
    system.admin.create(JOBS, gpu_job("theirs", suspend=True, run_seconds=2))
    system.until("it runs", lambda: system.phases("theirs") == ["Running"])
    assert slices_of(system.pods("theirs")[0])
    system.until("it is finished", lambda: system.status("theirs") == "Finished")


def test_a_found_job_that_is_deleted_frees_its_slices(system: System) -> None:
    system.admin.create(JOBS, gpu_job("theirs", suspend=True, run_seconds=None))
    system.until("it runs", lambda: system.phases("theirs") == ["Running"])
    system.admin.delete(JOBS, "team", "theirs")
    system.until("nothing is held", lambda: not DeviceAllocation.objects.exists())


def test_a_deployment_s_pods_are_workloads(system: System) -> None:
    system.apply(deployment(2))
    system.until("both run", lambda: system.phases() == ["Running", "Running"])
    devices = [item for pod in system.pods() for item in slices_of(pod)]
    assert len(devices) == 2


def test_what_others_hold_is_not_given_away(system: System) -> None:
    node = system.admin.list(NODES).items[0]
    devices = orjson.loads(node["metadata"]["annotations"]["hami.io/node-nvidia-register"])
    system.admin.create(PODS, foreign_pod("theirs", node["metadata"]["name"], [device["id"] for device in devices]))
    system.until("it is seen", lambda: DeviceAllocation.objects.filter(workload=None).count() == len(devices))
    system.submit(gpu_job("train", parallelism=2, completions=2, mib=32_768, cores=100, run_seconds=None))
    system.until("it runs", lambda: system.phases("train") == ["Running", "Running"])
    assert {item[0] for pod in system.pods("train") for item in slices_of(pod)} != {node["metadata"]["name"]}


def test_a_job_that_fails_ends_as_failed(system: System) -> None:
    manifest = gpu_job("train", run_seconds=1, annotations={"kueueweb.io/fail": "true"}, backoffLimit=0)
    system.submit(manifest)
    system.until("it has ended", lambda: system.status("train") == "Finished")
    assert system.workload("train").reason == "Failed"
    assert not DeviceAllocation.objects.exists()


def test_a_cordoned_node_gets_nothing_new(system: System) -> None:
    system.admin.patch(NODES, "", "node-01", {"spec": {"unschedulable": True}})
    try:
        system.until("it is seen", lambda: Node.objects.get(name="node-01").unschedulable)
        system.submit(gpu_job("train", parallelism=3, completions=3, mib=32_768, cores=100, run_seconds=None))
        system.until("two of three found a place", lambda: "after 2 of 3 pods" in system.workload("train").message)
        assert system.pods() == []
    finally:
        system.admin.patch(NODES, "", "node-01", {"spec": {"unschedulable": None}})
    system.until("all run", lambda: system.phases("train") == ["Running"] * 3)


def test_the_watcher_follows_by_itself(system: System) -> None:
    stopped = threading.Event()

    def watch() -> None:
        system.watcher.run(stopped)
        connection.close()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        system.admin.create(JOBS, gpu_job("theirs", suspend=True, run_seconds=None))
        wait_for("the workload of the found Job", lambda: system.status("theirs") == "Pending")
        system.engine.run()
        push_pending(system.cluster, system.client, time.time)
        system.admin.delete(JOBS, "team", "theirs")
        wait_for("its end", lambda: system.status("theirs") in ("Finished", "Evicted"))
    finally:
        stopped.set()
        thread.join(30)
    assert not thread.is_alive()


def foreign_pod(name: str, node: str, devices: list[str]) -> JsonObject:
    """A pod that another scheduler placed, with all of some devices."""
    text = "".join(f"{device},NVIDIA,32768,100:" for device in devices) + ";"
    limits = {"nvidia.com/gpu": str(len(devices)), "nvidia.com/gpumem": "32768"}
    noted = {"hami.io/vgpu-node": node, "hami.io/vgpu-devices-allocated": text, "hami.io/bind-phase": "success"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "team", "annotations": noted},
        "spec": {
            "nodeName": node,
            "containers": [{"name": "main", "image": "app", "resources": {"limits": limits}}],
        },
    }
