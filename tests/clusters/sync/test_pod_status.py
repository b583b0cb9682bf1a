"""How pods fare, and what their workloads say of it while they are not ready."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_objects import PODS
from clusters.client import Listing
from clusters.sync.pod_status import PodStatus, pod_status, why_not_ready
from clusters.sync.pods import PodSync
from queues.models import Pod, WorkloadEvent
from tests.clusters.system import System, gpu_job
from tests.simulated_cluster import ServerThread, make_simulated

LACKING = "0/2 nodes are available: 2 Insufficient cpu."


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason, "message": message}}}]}


def unscheduled(**said: str) -> dict[str, Any]:
    return {"conditions": [{"type": "PodScheduled", "status": "False", **said}]}


def terminated(**state: Any) -> dict[str, Any]:
    return {"containerStatuses": [{"name": "main", "state": {"terminated": state}}]}


@pytest.mark.parametrize(
    ("status", "reason", "message"),
    [
        ({}, "", ""),
        (unscheduled(reason="Unschedulable", message=LACKING), "Unschedulable", LACKING),
        (unscheduled(reason="SchedulingGated"), "SchedulingGated", ""),
        (waiting("ImagePullBackOff", "Back-off pulling image"), "ImagePullBackOff", "Back-off pulling image"),
        (terminated(exitCode=137, reason="OOMKilled"), "OOMKilled", "container main ended with exit code 137"),
        (terminated(exitCode=1), "Error", "container main ended with exit code 1"),
        (terminated(exitCode=2, message="no data"), "Error", "container main ended with exit code 2: no data"),
        (terminated(exitCode=0), "Completed", ""),
        ({"reason": "Evicted", "message": "Low on memory", **waiting("x")}, "Evicted", "Low on memory"),
        ({"containerStatuses": [{"name": "main", "state": {"running": {}}}]}, "", ""),
    ],
)  # fmt: skip
def test_a_pod_says_why_it_is_not_ready_or_how_it_ended(status: dict[str, Any], reason: str, message: str) -> None:
    found = pod_status({"status": status, "spec": {"containers": [{"name": "main"}]}})
    assert (found.reason, found.message, found.containers) == (reason, message, ("main",))


def test_restarts_and_containers_are_those_of_init_containers_too() -> None:
    found = pod_status(
        {
            "spec": {"initContainers": [{"name": "fetch"}], "containers": [{"name": "main"}, {"name": "log"}]},
            "status": {
                "initContainerStatuses": [{"name": "fetch", "restartCount": 2}],
                "containerStatuses": [{"name": "main", "restartCount": 3}, {"name": "log"}],
            },
        }
    )
    assert (found.restarts, found.containers) == (5, ("fetch", "main", "log"))


def test_why_a_workload_s_pods_are_not_ready() -> None:
    stuck, fine = PodStatus("Unschedulable", LACKING), PodStatus()
    assert why_not_ready([stuck, stuck]) == f"Its pods cannot be scheduled: {LACKING}"
    assert why_not_ready([stuck, fine]) == f"1 of its 2 pods cannot be scheduled: {LACKING}"
    assert why_not_ready([fine, PodStatus("SchedulingGated")]) == ""


def pods_ready(system: System) -> tuple[str, str, str]:
    [found] = [entry for entry in system.workload().conditions if entry["type"] == "PodsReady"]
    return found["status"], found["reason"], found["message"]


@pytest.fixture
def slow_start() -> Iterator[System]:
    """A cluster whose pods take an hour to get ready."""
    with ServerThread(make_simulated(start_seconds=3600.0)) as server:
        yield System(server)


def see(system: System, status: dict[str, Any]) -> None:
    """The watcher sees the one pod with this status."""
    [pod] = system.client.list(PODS).items
    PodSync(system.cluster).apply([Listing(({**pod, "status": status},), "1")], system.now())


@pytest.mark.django_db(transaction=True)
def test_unschedulable_pods_are_reported_in_the_cluster_s_words(slow_start: System) -> None:
    """A workload whose pods could not start looked like one that ran; nothing but `waitForPodsReady` asked."""
    system = slow_start
    system.submit(gpu_job(run_seconds=1000))
    system.turn()
    since = system.workload().conditions[-1]["lastTransitionTime"]
    see(system, {"phase": "Pending", **unscheduled(reason="Unschedulable", message=LACKING)})
    [row] = Pod.objects.all()
    assert (row.phase, row.reason, row.message, row.containers) == ("Pending", "Unschedulable", LACKING, ["main"])
    message = f"Its pods cannot be scheduled: {LACKING}"
    assert pods_ready(system) == ("False", "WaitForStart", message)
    events = WorkloadEvent.objects.filter(reason="PodsNotReady")
    assert list(events.values_list("type", "message")) == [("Warning", message)]
    see(system, {"phase": "Pending", **unscheduled(reason="Unschedulable", message=LACKING)})
    assert events.count() == 1
    see(system, {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}]})
    assert pods_ready(system) == ("False", "WaitForStart", "Not all pods are ready or succeeded")
    assert system.workload().conditions[-1]["lastTransitionTime"] == since
    assert events.count() == 1


@pytest.mark.django_db(transaction=True)
def test_every_workload_with_pods_says_whether_they_are_ready(slow_start: System) -> None:
    """PodsReady was set by those alone that `waitForPodsReady` asked for."""
    slow_start.submit(gpu_job(run_seconds=1000))
    slow_start.turn()
    assert pods_ready(slow_start) == ("False", "WaitForStart", "Not all pods are ready or succeeded")
    assert not WorkloadEvent.objects.filter(reason="PodsNotReady").exists()
    slow_start.advance(3600)
    slow_start.watcher.resync()
    assert pods_ready(slow_start)[:2] == ("True", "Started")
