"""Mode observe: what a Kueue runs is mirrored, every page works from it, and nothing is written there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from accounts.models import Namespace
from queues.models import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Job,
    LocalQueue,
    PodSet,
    ResourceFlavor,
    Topology,
    Workload,
    WorkloadEvent,
    WorkloadPriorityClass,
)
from queues.models import Pod as PodRow
from scheduler.leader.observer import Observer
from scheduler.models import Decision
from tests.acceptance.processes import wait_for
from tests.clusters.kueue_cluster import (
    AT,
    PENDING,
    RACK,
    V1BETA1,
    V1BETA2,
    KueueCluster,
    admitted,
    configure,
    workload,
)
from tests.simulated_cluster import ServerThread, job, make_simulated, pod
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db(transaction=True)

UID = "11111111-1111-1111-1111-111111111111"


@pytest.fixture
def server() -> Iterator[ServerThread]:
    with ServerThread(make_simulated()) as server:
        yield server


@pytest.mark.parametrize("version", [V1BETA2, V1BETA1])
def test_kueues_objects_become_rows_as_they_are(server: ServerThread, version: str) -> None:
    kueue = KueueCluster(server, version)
    configure(kueue)
    runs = workload(kueue, "runs", admitted(kueue))
    workload(kueue, "waits", PENDING)
    kueue.look()

    assert Namespace.objects.get(name="team").labels["cost"] == "a"
    assert ResourceFlavor.objects.get().node_labels == {"gpu": "on"}
    assert ClusterQueue.objects.get().cohort_name == Cohort.objects.get().name == "company"
    assert LocalQueue.objects.get().cluster_queue_name == "main"
    assert Topology.objects.get().levels == [RACK, "kubernetes.io/hostname"]
    assert WorkloadPriorityClass.objects.get().value == 1000
    assert not AdmissionCheck.objects.get().active

    row = Workload.objects.get(name="runs")
    assert (str(row.uid), row.status, row.cluster_queue_name) == (runs["metadata"]["uid"], "Admitted", "main")
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    assert {row.quota_reserved_at, row.admitted_at, row.pods_ready_at} == {moment}
    assert (row.requeue_count, row.requeue_at) == (2, datetime(2026, 1, 1, 0, 5, tzinfo=UTC))
    assert row.admission_check_states[0]["state"] == "Ready"
    assert [each["type"] for each in row.conditions][-1] == "FromTheFuture"
    assert (row.priority_class_kind, row.priority) == ("WorkloadPriorityClass", 1000)
    given = PodSet.objects.get(workload=row)
    assert (given.admitted_count, given.flavors, given.resource_usage) == (2, {"cpu": "plain"}, {"cpu": 2000})
    assert given.topology_assignment is not None
    assert given.topology_assignment["domains"] == [
        {"values": ["r1", "node-1"], "count": 1},
        {"values": ["r1", "node-2"], "count": 1},
    ]
    waits = Workload.objects.get(name="waits")
    assert (waits.status, waits.reason, waits.cluster_queue_name) == ("Pending", "WaitingForQuota", "main")
    assert "1 more needed" in waits.message
    assert server.guard.refused == []


def test_rows_follow_what_changes_and_what_goes(server: ServerThread) -> None:
    kueue = KueueCluster(server)
    configure(kueue)
    waits = workload(kueue, "waits", PENDING)
    kueue.look()
    workload(kueue, "waits", admitted(kueue, "2026-01-01T00:01:00Z", with_topology=False))
    kueue.look()
    row = Workload.objects.get()
    assert (row.status, row.admitted_at) == ("Admitted", datetime(2026, 1, 1, 0, 1, tzinfo=UTC))
    kueue.kueue("Workload", "waits", waits["spec"], "team", status={"admission": None, **PENDING})
    kueue.look()
    row.refresh_from_db()
    assert (row.status, row.quota_reserved_at, PodSet.objects.get().admitted_count) == ("Pending", None, None)

    kueue.delete(waits)
    kueue.delete({"apiVersion": V1BETA2, "kind": "ClusterQueue", "metadata": {"name": "main"}})
    spec = {"clusterQueue": "elsewhere"}
    kueue.delete({"apiVersion": V1BETA2, "kind": "LocalQueue", "metadata": {"name": "local", "namespace": "team"}})
    kueue.kueue("LocalQueue", "local", spec, "team")
    kueue.look()
    assert not Workload.objects.exists()
    assert not ClusterQueue.objects.exists()
    assert LocalQueue.objects.get().cluster_queue_name == "elsewhere"


def test_a_workload_made_anew_under_its_name_is_another_one(server: ServerThread) -> None:
    kueue = KueueCluster(server)
    configure(kueue)
    first = workload(kueue, "again", admitted(kueue))
    kueue.look()
    kueue.delete(first)
    second = workload(kueue, "again", PENDING)
    kueue.look()
    assert str(Workload.objects.get().uid) == second["metadata"]["uid"] != first["metadata"]["uid"]


def test_jobs_pods_and_events_belong_to_their_workload(server: ServerThread) -> None:
    """By owners alone: Kueue's pods do not bear our labels, and name their workload only in a topology."""
    kueue = KueueCluster(server)
    configure(kueue)
    manifest = job("train", parallelism=2, completions=2)
    manifest["metadata"] |= {"namespace": "team", "labels": {"kueue.x-k8s.io/queue-name": "local"}}
    made = kueue.write(manifest)
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": made["metadata"]["uid"],
        "controller": True,
    }
    found = workload(
        kueue,
        "job-train",
        admitted(kueue, with_topology=False),
        metadata={"ownerReferences": [owner], "labels": {"kueue.x-k8s.io/job-uid": owner["uid"]}},
    )
    about = {"kind": "Workload", "namespace": "team", "name": "job-train", "uid": found["metadata"]["uid"]}
    event = {
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "job-train.1", "namespace": "team"},
        "involvedObject": about, "reason": "QuotaReserved", "message": "Quota reserved in ClusterQueue main",
        "type": "Normal", "lastTimestamp": AT, "source": {"component": "kueue-admission"},
    }  # fmt: skip
    kueue.write(event)
    kueue.write(
        {**event, "metadata": {"name": "other", "namespace": "team"}, "involvedObject": {**about, "kind": "Pod"}}
    )
    stray = pod("stray")
    kueue.write(stray)
    for _ in range(2):  # lists come again
        kueue.look()
    row = Workload.objects.get()
    assert row.job == Job.objects.get()
    assert (row.job.kind, row.job.manifest["spec"]["parallelism"]) == ("Job", 2)
    assert {each.pod_set for each in PodRow.objects.filter(workload=row)} == {"main"}
    assert PodRow.objects.count() == 2
    told = WorkloadEvent.objects.get()
    assert (told.reason, told.actor, told.workload_name) == ("QuotaReserved", "kueue-admission", "job-train")
    assert server.guard.refused == []


def test_a_kind_that_is_missing_or_unreadable_is_named_and_stops_nothing(server: ServerThread, caplog: Any) -> None:
    kueue = KueueCluster(server)
    kueue.delete(
        {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "cohorts.kueue.x-k8s.io"},
        }
    )
    kueue.write({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    kueue.kueue("ClusterQueue", "odd", {"queueingStrategy": "Lottery"})
    kueue.kueue("ClusterQueue", "newer", {"namespaceSelector": {}, "fieldOfANewerKueue": 1})
    workload(kueue, "waits", PENDING)
    kueue.look()
    kueue.cluster.refresh_from_db()
    assert "Cohort" in kueue.cluster.missing_kinds
    assert "ClusterQueue" not in kueue.cluster.missing_kinds
    assert [row.name for row in ClusterQueue.objects.all()] == ["newer"]
    assert "ClusterQueue odd of cluster default can't be stored" in caplog.text
    assert Workload.objects.exists()


def has_published(kueue: KueueCluster, get: Callable[[str], Any]) -> bool:
    """Frames of numbers have a pause between them: the leader publishes when it is over."""
    kueue.look()
    return bool(get("cluster-queues/main/")["pending"])


def test_every_page_works_from_what_is_mirrored(server: ServerThread) -> None:
    kueue = KueueCluster(server)
    configure(kueue)
    kueue.look()
    workload(kueue, "runs", admitted(kueue, with_topology=False))
    workload(kueue, "waits", PENDING)
    kueue.look()
    client = client_of(make_user("alice"))

    def get(path: str) -> Any:
        answer = client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, (path, answer.content)
        return answer.json()

    listed = {row["name"]: row["status"] for row in get("workloads/")["results"]}
    assert listed == {"runs": "Admitted", "waits": "Pending"}
    assert get("workloads/team/runs/")["pod_sets"][0]["flavors"] == {"cpu": "plain"}
    why = get("workloads/team/waits/explanation/")
    assert (why["cluster_queue"], why["waiting"], why["position"]) == ("main", 1, 1)
    wait_for("the next frame of numbers", partial(has_published, kueue, get))
    queue = get("cluster-queues/main/")
    assert (queue["cohort"], queue["pending"], queue["admitted"]) == ("company", 1, 1)
    overview = get("overview/")
    assert {key: overview["totals"][key] for key in ("pending", "admitted", "nodes", "devices")} == {
        "pending": 1, "admitted": 1, "nodes": 2, "devices": 4,
    }  # fmt: skip
    assert overview["health"]["scheduler"]["alive"]
    assert overview["pending_by_reason"] == [{"reason": "WaitingForQuota", "count": 1}]
    assert len(get("nodes/")["results"]) == 2
    decision = get("decisions/")["results"][0]
    assert (decision["action"], decision["reason"]) == ("Admit", "Admitted")
    assert get("resource-flavors/plain/")["name"] == "plain"
    assert get("cohorts/tree/")
    assert get("local-queues/team/local/")["pending"] == 1
    assert server.guard.refused == []


def test_what_was_decided_before_the_leader_looked_is_not_told_as_new(server: ServerThread) -> None:
    kueue = KueueCluster(server)
    configure(kueue)
    workload(kueue, "runs", admitted(kueue, with_topology=False))
    kueue.watcher.resync()
    Observer(kueue.cluster, "next", clock=kueue.now).run()
    assert not Decision.objects.exists()


def test_variants_of_a_workload_are_known_as_such_and_what_they_hold_counts_once(server: ServerThread) -> None:
    kueue = KueueCluster(server)
    configure(kueue)
    labels = {"kueue.x-k8s.io/concurrent-admission-parent": "true"}
    parent = workload(kueue, "job", admitted(kueue), metadata={"labels": labels})
    owner = {"apiVersion": V1BETA2, "kind": "Workload", "name": "job", "uid": parent["metadata"]["uid"]}
    workload(kueue, "job-variant-plain", admitted(kueue), metadata={"ownerReferences": [owner]})
    kueue.look()
    rows = dict(Workload.objects.values_list("name", "parent_name"))
    assert rows == {"job": "", "job-variant-plain": "job"}
    assert Workload.objects.get(name="job").has_variants
    assert PodSet.objects.get(workload__name="job").resource_usage == {}
    assert PodSet.objects.get(workload__name="job-variant-plain").resource_usage == {"cpu": 2000}
