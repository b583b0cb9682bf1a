"""Workload objects where they are ours to serve: made from jobs and by hand, held, ended, and their status."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
from queues.models import AdmissionCheck, ServedObject, Workload
from queues.services.admission_checks import WEBHOOK_CONTROLLER
from queues.services.workloads import hold, record_finished, release
from tests.clusters.kueue_cluster import V1BETA1, V1BETA2
from tests.clusters.served_cluster import ServedCluster, configure
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


def queued(served: ServedCluster, name: str, cpu: str = "1", **spec: Any) -> JsonObject:
    manifest = job(name, run_seconds=6000, suspend=True, requests={"cpu": cpu}, **spec)
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


def test_the_queue_and_the_size_of_a_workload_follow_its_job(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    queued(served, "waits", "50", parallelism=1, completions=3)
    served.settle(3)
    row = Workload.objects.get()
    path = "/apis/batch/v1/namespaces/team/jobs/waits"
    labels = {"kueue.x-k8s.io/queue-name": "elsewhere"}
    change = {"metadata": {"labels": labels}, "spec": {"parallelism": 2}}
    served.send("PATCH", path, change, "application/merge-patch+json")
    served.settle(4)
    there = served.get("Workload", row.name, "team")
    assert (there["spec"]["queueName"], there["spec"]["podSets"][0]["count"]) == ("elsewhere", 2)
    served.patch("Workload", row.name, {"spec": {"queueName": "mine"}}, "team")
    served.settle(4)
    assert served.get("Workload", row.name, "team")["spec"]["queueName"] == "elsewhere"
    row.refresh_from_db()
    assert row.queue_name == "elsewhere"


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


def test_a_finished_workload_loses_the_finalizer_that_held_it(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    queued(served, "runs")
    served.settle(3)
    row = Workload.objects.get()
    served.patch("Workload", row.name, {"metadata": {"finalizers": ["kueue.x-k8s.io/resource-in-use", "a/b"]}}, "team")
    served.settle(2)
    assert len(served.get("Workload", row.name, "team")["metadata"]["finalizers"]) == 2
    record_finished(served.cluster, [("team", row.name)])
    served.settle(3)
    there = served.get("Workload", row.name, "team")
    assert conditions(there)["Finished"][0] == "True"
    assert there["metadata"]["finalizers"] == ["a/b"]


def test_an_entry_that_the_push_made_meanwhile_gets_what_the_watcher_saw(server: ServerThread) -> None:
    served = ServedCluster(server)
    name = {"cluster": served.cluster, "kind": "Workload", "namespace": "team", "name": "mine"}
    seen = ServedObject(**name, uid="1", resource_version="7", content="seen")
    ServedObject.objects.create(**name, uid="1", resource_version="5", content="told")
    seen.keep_seen()
    [kept] = ServedObject.objects.filter(**name)
    assert (kept.resource_version, kept.content) == ("7", "seen")


def test_a_stop_that_meets_a_status_write_is_followed(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    served.patch("Workload", row.name, {"spec": {"active": False}}, "team")
    Workload.objects.update(eviction_counts=[{"reason": "Preempted", "underlyingCause": "", "count": 1}])
    served.advance(2)
    served.push()
    served.settle(4)
    row.refresh_from_db()
    assert not row.active
    there = served.get("Workload", row.name, "team")
    assert there["spec"]["active"] is False
    assert conditions(there)["Evicted"] == ("True", "Deactivated")


def test_what_kueue_wrote_of_a_status_is_taken_away_when_it_is_so_no_more(server: ServerThread) -> None:
    """An apply removes its own fields only: a Kueue's, and those of an earlier version of ours, have another writer."""
    served = ServedCluster(server)
    configure(served)
    queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    path = f"{served.path('Workload', row.name, 'team')}/status?fieldManager=kueue"
    admission = served.get("Workload", row.name, "team")["status"]["admission"]
    assert admission["clusterQueue"] == "main"
    served.send("PATCH", path, {"status": {"admission": None}}, "application/merge-patch+json")
    served.send("PATCH", path, {"status": {"admission": admission}}, "application/merge-patch+json")
    served.settle()
    served.patch("Workload", row.name, {"spec": {"active": False}}, "team")
    served.settle(4)
    status = served.get("Workload", row.name, "team")["status"]
    assert "admission" not in status
    assert conditions({"status": status})["QuotaReserved"][0] == "False"


def checked(served: ServedCluster) -> None:
    """The queue asks a check whose controller is somebody's own, and one that we answer."""
    configure(served)
    served.apply("AdmissionCheck", "budget", {"spec": {"controllerName": "example.com/budget"}})
    checks = {"admissionChecks": [{"name": "budget"}]}
    served.patch("ClusterQueue", "main", {"spec": {"admissionChecksStrategy": checks}})
    active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "observedGeneration": 1}
    active["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    path = f"{served.path('AdmissionCheck', 'budget')}/status?fieldManager=budget"
    served.send("PATCH", path, {"status": {"conditions": [active]}}, "application/merge-patch+json")
    served.settle()


def answer(served: ServedCluster, name: str, state: str, **more: Any) -> None:
    """As the controller of the check `budget` writes it: the whole list, as it has read it."""
    there = served.get("Workload", name, "team")["status"]["admissionChecks"]
    states = [
        {**each, "state": state, "message": "asked", "lastTransitionTime": "2026-01-02T00:00:00Z", **more}
        if each["name"] == "budget"
        else each
        for each in there
    ]
    path = f"{served.path('Workload', name, 'team')}/status?fieldManager=budget"
    served.send("PATCH", path, {"status": {"admissionChecks": states}}, "application/merge-patch+json")


def state_there(served: ServedCluster, name: str) -> JsonObject:
    [found] = served.get("Workload", name, "team")["status"]["admissionChecks"]
    return dict(found)


def test_a_check_is_answered_by_its_controller_in_the_cluster(server: ServerThread) -> None:
    served = ServedCluster(server)
    checked(served)
    queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    assert (row.status, state_there(served, row.name)["state"]) == ("QuotaReserved", "Pending")
    updates = [{"name": "main", "nodeSelector": {"pool": "paid"}}]
    answer(served, row.name, "Ready", podSetUpdates=updates)
    # A status write of ours that meets the answer does not put the state back.
    Workload.objects.update(eviction_counts=[{"reason": "Preempted", "underlyingCause": "", "count": 1}])
    served.advance(2)
    served.push()
    served.settle(4)
    row.refresh_from_db()
    assert row.status == "Admitted"
    there = served.get("Workload", row.name, "team")
    assert conditions(there)["Admitted"][0] == "True"
    found = state_there(served, row.name)
    assert (found["state"], found["message"], found["podSetUpdates"]) == ("Ready", "asked", updates)
    assert found["lastTransitionTime"] == "2026-01-02T00:00:00Z"
    started = served.send("GET", "/apis/batch/v1/namespaces/team/jobs/runs", None)
    assert started["spec"]["template"]["spec"]["nodeSelector"]["pool"] == "paid"
    versions = served.versions()
    served.settle()
    assert served.versions() == versions


def test_a_check_that_says_retry_evicts_and_is_asked_anew(server: ServerThread) -> None:
    served = ServedCluster(server)
    checked(served)
    queued(served, "runs")
    served.settle(4)
    name = Workload.objects.get().name
    answer(served, name, "Retry", requeueAfterSeconds=600)
    served.settle(4)
    row = Workload.objects.get()
    assert (row.status, row.eviction_counts[0]["reason"]) == ("Pending", "AdmissionCheck")
    assert row.requeue_at is not None
    assert state_there(served, name)["state"] == "Pending"  # for the next reservation


def test_the_state_of_a_check_that_we_answer_is_ours(server: ServerThread) -> None:
    served = ServedCluster(server)
    checked(served)
    AdmissionCheck.objects.update(controller_name=WEBHOOK_CONTROLLER)
    served.push()
    queued(served, "runs")
    served.settle(4)
    row = Workload.objects.get()
    answer(served, row.name, "Ready")
    served.settle(4)
    row.refresh_from_db()
    assert (row.status, state_there(served, row.name)["state"]) == ("QuotaReserved", "Pending")


def test_what_starts_is_admitted_before_however_fast(server: ServerThread) -> None:
    served = ServedCluster(server)
    configure(served)
    served.settle()
    queued(served, "runs")
    served.watch()
    served.push()
    row = Workload.objects.get()
    assert "Admitted" not in conditions(served.get("Workload", row.name, "team"))
    served.engine.run()
    served.push()  # within the second in which the object got its first status
    assert conditions(served.get("Workload", row.name, "team"))["Admitted"] == ("True", "Admitted")
    started = served.client.get(JOB_KINDS["Job"].resource, "team", "runs")
    assert started is not None
    assert not started["spec"].get("suspend")
