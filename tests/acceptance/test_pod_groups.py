"""The life of a group of plain pods against PostgreSQL and a simulated cluster whose clock stands still until moved."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_objects import NAMESPACES, PODS
from gpus.models import DeviceAllocation
from queues.models import ClusterQueue, Job, Workload, WorkloadEvent
from tests.clusters.group_pods import found_pod, gpu_pod
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def system() -> Iterator[System]:
    """A cluster of two nodes with two devices each, with the namespace `team`."""
    with ServerThread(make_simulated()) as server:
        system = System(server)
        system.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
        yield system


def member(name: str, total: int = 3, run_seconds: int = 200, **annotations: str) -> dict[str, Any]:
    """Options of a pod of the group `ring`, with most of a device."""
    notes = {f"kueueweb.io/{key}": value for key, value in annotations.items()}
    return {
        "name": name,
        "group": "ring",
        "total": total,
        "run_seconds": run_seconds,
        "mib": 20_000,
        "annotations": notes,
    }


def turns(system: System, count: int = 5, seconds: float = 3.0) -> None:
    for _ in range(count):
        system.turn(seconds)


def phases(system: System) -> dict[str, str]:
    return {item["metadata"]["name"]: item["status"]["phase"] for item in system.pods()}


def state(system: System) -> tuple[str, str]:
    row = Workload.objects.get(name="ring")
    return row.status, row.reason


def condition(name: str) -> tuple[str, str]:
    row = Workload.objects.get(name="ring")
    found: dict[str, Any] = next(entry for entry in row.conditions if entry["type"] == name)
    return found["status"], found["reason"]


def events(reason: str) -> int:
    return WorkloadEvent.objects.filter(workload_name="ring", reason=reason).count()


def test_a_group_waits_runs_has_a_pod_replaced_and_ends(system: System) -> None:
    for name in ("a", "b"):
        system.apply(gpu_pod(**member(name)))
    turns(system, 2)
    assert (state(system), phases(system)) == (("Pending", "PodGroupIncomplete"), {})
    assert events("ErrWorkloadCompose") == 1
    system.apply(gpu_pod(**member("c", run_seconds=40, fail="true")))
    turns(system)
    assert (state(system)[0], set(phases(system).values())) == ("Admitted", {"Running"})
    assert condition("PodsReady") == ("True", "Started")
    devices = set(DeviceAllocation.objects.values_list("replica", "device_uuid"))
    assert len(devices) == 3
    turns(system, 2, 20)
    assert phases(system) == {"a": "Running", "b": "Running", "c": "Failed"}
    assert (state(system)[0], condition("WaitingForReplacementPods")) == ("Admitted", ("True", "PodsFailed"))
    assert condition("PodsReady") == ("False", "WaitForRecovery")
    system.apply(gpu_pod(**member("d")))
    turns(system)
    assert {name: phase for name, phase in phases(system).items() if name != "c"} == dict.fromkeys("abd", "Running")
    assert condition("WaitingForReplacementPods") == ("False", "PodsReady")
    assert condition("PodsReady") == ("True", "Recovered")
    assert set(DeviceAllocation.objects.values_list("replica", "device_uuid")) == devices
    turns(system, 4, 60)
    assert state(system) == ("Finished", "Succeeded")
    assert Workload.objects.get(name="ring").message == "Pods succeeded: 3/3."
    assert not DeviceAllocation.objects.exists()


def test_a_preempted_group_stops_whole_and_runs_again(system: System) -> None:
    ClusterQueue.objects.update(within_cluster_queue="LowerPriority", preempt_for_devices=True)
    for name in ("a", "b"):
        system.apply(gpu_pod(**member(name, 2, run_seconds=10_000)))
    turns(system)
    assert state(system)[0] == "Admitted"
    system.submit(gpu_job("urgent", mib=30_000, cores=0, run_seconds=30, parallelism=4, completions=4))
    Workload.objects.exclude(name="ring").update(priority=1000)
    turns(system, 2)
    assert condition("Evicted") == ("True", "Preempted")
    turns(system, 3)
    assert {name for name in phases(system) if name in "ab"} == set()
    assert (state(system)[0], system.workload("urgent").status) == ("Pending", "Admitted")
    turns(system, 4, 30)
    turns(system, 4)
    assert system.workload("urgent").reason == "Succeeded"
    assert (state(system)[0], phases(system)["a"], phases(system)["b"]) == ("Admitted", "Running", "Running")


def test_a_preempted_group_that_was_found_waits_for_the_pods_that_its_owner_makes_anew(system: System) -> None:
    ClusterQueue.objects.update(within_cluster_queue="LowerPriority", preempt_for_devices=True)
    for name in ("a", "b"):
        system.client.create(PODS, found_pod(**member(name, 2, run_seconds=10_000)))
    turns(system)
    assert (state(system)[0], phases(system)) == ("Admitted", {"a": "Running", "b": "Running"})
    system.submit(gpu_job("urgent", mib=30_000, cores=0, run_seconds=30, parallelism=4, completions=4))
    Workload.objects.exclude(name="ring").update(priority=1000)
    turns(system, 5)
    assert (state(system), system.workload("urgent").status) == (("Pending", "PodGroupIncomplete"), "Admitted")
    assert condition("WaitingForReplacementPods") == ("True", "Preempted")
    assert [row.phase for row in Job.objects.filter(kind="Pod")] == ["Failed", "Failed"]
    turns(system, 4, 30)
    assert state(system) == ("Pending", "PodGroupIncomplete")
    for name in ("c", "d"):
        system.client.create(PODS, found_pod(**member(name, 2, run_seconds=60)))
    turns(system)
    assert {name: phases(system)[name] for name in "cd"} == {"c": "Running", "d": "Running"}
    turns(system, 2, 60)
    assert state(system) == ("Finished", "Succeeded")
