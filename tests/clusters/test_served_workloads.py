"""Workload objects where they are ours to serve: made from jobs and by hand, held, ended, and their status."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from clusters.client import JsonObject
from queues.models import ServedObject, Workload
from queues.services.workloads import hold, release
from tests.clusters.kueue_cluster import V1BETA1, V1BETA2
from tests.clusters.served_cluster import ServedCluster, configure
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def queued(served: ServedCluster, name: str, cpu: str = "1") -> JsonObject:
    manifest = job(name, run_seconds=6000, suspend=True, requests={"cpu": cpu})
    labels = {"kueue.x-k8s.io/queue-name": "local"}
    manifest["metadata"] = {"name": name, "namespace": "team", "labels": labels}
    return served.send("POST", "/apis/batch/v1/namespaces/team/jobs", manifest)


def conditions(obj: JsonObject) -> dict[str, tuple[str, str]]:
    found = (obj.get("status") or {}).get("conditions") or ()
    return {each["type"]: (each["status"], each["reason"]) for each in found}


@pytest.mark.parametrize("version", [V1BETA2, V1BETA1])
def test_a_job_has_its_workload_object_and_its_status(server: ServerThread, version: str) -> None:
    served = ServedCluster(server, version)
    configure(served)
    served.settle()
    made = queued(served, "runs", "3")
    served.settle()
    queued(served, "waits", "2")
    served.settle(4)
    rows = {row.job.name: row for row in Workload.objects.select_related("job") if row.job}
    runs = served.get("Workload", rows["runs"].name, "team")
    [owner] = runs["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("Job", "runs", made["metadata"]["uid"])
    assert conditions(runs)["Admitted"] == ("True", "Admitted")
    admission = runs["status"]["admission"]
    assert admission["clusterQueue"] == "main"
    [assigned] = admission["podSetAssignments"]
    assert (assigned["flavors"], assigned["resourceUsage"], assigned["count"]) == ({"cpu": "plain"}, {"cpu": "3"}, 1)
    waits = served.get("Workload", rows["waits"].name, "team")
    assert conditions(waits)["QuotaReserved"][0] == "False"
    assert "admission" not in waits["status"]
    queue = served.get("ClusterQueue", "main")["status"]
    assert (queue["pendingWorkloads"], queue["admittedWorkloads"]) == (1, 1)
    local = served.get("LocalQueue", "local", "team")["status"]
    assert (local["pendingWorkloads"], local["admittedWorkloads"]) == (1, 1)
    versions = served.versions()
    served.settle(4)
    assert served.versions() == versions  # nothing happens, and nothing is written


def test_a_workload_is_held_and_released_from_both_sides(server: ServerThread) -> None:
    """`kubectl kueue stop workload` sets spec.active."""
    served = ServedCluster(server)
    configure(served)
    queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    served.patch("Workload", row.name, {"spec": {"active": False}}, "team")
    served.settle(4)
    row.refresh_from_db()
    assert not row.active
    assert conditions(served.get("Workload", row.name, "team"))["Evicted"] == ("True", "Deactivated")
    release(served.cluster, [("team", row.name)], actor="alice")
    served.settle(4)
    there = served.get("Workload", row.name, "team")
    assert there["spec"].get("active", True) is True
    assert conditions(there)["Admitted"][0] == "True"
    hold(served.cluster, [("team", row.name)], actor="alice")
    served.settle()
    assert served.get("Workload", row.name, "team")["spec"]["active"] is False


def test_a_workload_without_a_job_is_made_and_ended_by_kubectl(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    template = {"spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}]}}
    spec = {"queueName": "local", "podSets": [{"name": "main", "count": 2, "template": template}]}
    served.apply("Workload", "mine", {"spec": spec}, "team")
    served.settle(4)
    assert Workload.objects.get().status == "Admitted"
    there = served.get("Workload", "mine", "team")
    assert conditions(there)["Admitted"][0] == "True"
    assert there["status"]["admission"]["podSetAssignments"][0]["resourceUsage"] == {"cpu": "2"}
    versions = served.versions()
    served.settle(3)
    assert served.versions() == versions
    served.delete("Workload", "mine", "team")
    served.settle(4)
    assert [(row.status, row.reason) for row in Workload.objects.all()] == [("Finished", "Cancelled")]
    assert not served.exists("Workload", "mine", "team")
    served.apply("Workload", "mine", {"spec": spec}, "team")
    served.settle(4)
    assert Workload.objects.get().status == "Admitted"


def test_the_object_goes_with_its_job(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    queued(served, "runs")
    served.settle(4)
    name = Workload.objects.get().name
    served.delete("Workload", name, "team")
    served.settle(3)
    assert served.exists("Workload", name, "team")  # its job is there, so it is
    served.send("DELETE", "/apis/batch/v1/namespaces/team/jobs/runs", None)
    for _ in range(4):
        served.turn()
        served.advance(40)
    assert not served.exists("Workload", name, "team")
    assert not ServedObject.objects.filter(kind="Workload").exclude(uid="").exists()
