"""Lists and objects in Kubernetes' wire format: what is in them, in which order, form and version."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.kueueweb.wire.conftest import TABLE, names, submit

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
OLD = "/apis/kueue.x-k8s.io/v1beta1"
JOBS = "/apis/batch/v1"


def rows(answer: Any) -> list[list[Any]]:
    """The cells of a table."""
    body = answer.json()
    assert (body["kind"], body["apiVersion"]) == ("Table", "meta.k8s.io/v1")
    return [row["cells"] for row in body["rows"]]


def schedule(cluster: Cluster) -> None:
    """Let the scheduler decide."""
    Engine(cluster, "test").run()


def test_an_object_is_kueues_with_its_status(alice: APIClient, queues: Cluster) -> None:
    found = alice.get(f"{KUEUE}/clusterqueues/research").json()
    assert (found["apiVersion"], found["kind"]) == ("kueue.x-k8s.io/v1beta2", "ClusterQueue")
    assert found["spec"]["cohortName"] == "company"
    assert found["status"]["pendingWorkloads"] == 0
    assert int(found["metadata"]["resourceVersion"]) % 2 == 1
    assert alice.get(f"{KUEUE}/clusterqueues/research/status").json() == found


def test_the_older_version_has_its_own_fields(alice: APIClient, queues: Cluster) -> None:
    found = alice.get(f"{OLD}/clusterqueues/research").json()
    assert found["apiVersion"] == "kueue.x-k8s.io/v1beta1"
    assert found["spec"]["cohort"] == "company"
    assert "cohortName" not in found["spec"]


def test_a_list_has_its_kind_and_its_version(alice: APIClient, queues: Cluster) -> None:
    found = alice.get(f"{KUEUE}/localqueues").json()
    assert (found["kind"], found["apiVersion"]) == ("LocalQueueList", "kueue.x-k8s.io/v1beta2")
    assert int(found["metadata"]["resourceVersion"]) % 2 == 0
    assert [item["metadata"]["name"] for item in found["items"]] == ["main"]


def test_a_list_comes_in_pages(alice: APIClient, queues: Cluster) -> None:
    for name in ("c", "a", "b"):
        submit(queues, name)
    submit(queues, "first", "team-b")
    address = f"{JOBS}/jobs"
    first = alice.get(address, {"limit": "2"}).json()
    assert [item["metadata"]["name"] for item in first["items"]] == ["a", "b"]
    rest = alice.get(address, {"limit": "2", "continue": first["metadata"]["continue"]}).json()
    assert [item["metadata"]["name"] for item in rest["items"]] == ["c", "first"]
    assert "continue" not in rest["metadata"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


@pytest.mark.parametrize("token", ["x", "W10=", "WzEsMixudWxsXQ=="])
def test_a_token_of_another_server_is_refused(alice: APIClient, token: str) -> None:
    answer = alice.get(f"{JOBS}/jobs", {"limit": "2", "continue": token})
    assert answer.status_code in (400, 410)
    assert answer.json()["kind"] == "Status"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({"labelSelector": "app=x"}, ["one"]),
        ({"labelSelector": "app in (x,y)"}, ["one", "two"]),
        ({"labelSelector": "app!=x"}, ["two"]),
        ({"labelSelector": "!app"}, []),
        ({"fieldSelector": "metadata.name=two"}, ["two"]),
        ({"fieldSelector": "metadata.name!=two"}, ["one"]),
        ({"fieldSelector": "metadata.namespace=team-b"}, []),
    ],
)
def test_selectors_choose(alice: APIClient, queues: Cluster, query: dict[str, str], expected: list[str]) -> None:
    submit(queues, "one", app="x")
    submit(queues, "two", app="y")
    assert names(alice.get(f"{JOBS}/namespaces/team-a/jobs", query)) == expected


@pytest.mark.parametrize("query", [{"labelSelector": "a=b=c"}, {"fieldSelector": "spec.x=1"}, {"limit": "many"}])
def test_a_query_that_cannot_be_read_is_refused(alice: APIClient, query: dict[str, str]) -> None:
    answer = alice.get(f"{JOBS}/jobs", query)
    assert (answer.status_code, answer.json()["reason"]) == (400, "BadRequest")


@pytest.mark.django_db(transaction=True)
def test_workloads_are_selected_by_the_queue_that_holds_their_quota(alice: APIClient, queues: Cluster) -> None:
    for name in ("one", "two", "three"):
        submit(queues, name)
    schedule(queues)
    chosen = alice.get(f"{KUEUE}/workloads", {"fieldSelector": "status.admission.clusterQueue=research"}).json()
    holding = Workload.objects.filter(quota_reserved_at__isnull=False)
    assert {item["metadata"]["name"] for item in chosen["items"]} == {row.name for row in holding}
    assert len(chosen["items"]) == 2
    assert rows(alice.get(f"{KUEUE}/clusterqueues", headers={"Accept": TABLE})) == [
        ["research", "company", "BestEffortFIFO", 1, 2]
    ]
    jobs = {cells[0]: cells[1:3] for cells in rows(alice.get(f"{JOBS}/jobs", headers={"Accept": TABLE}))}
    assert sorted(jobs.values()) == [["Running", "0/2"], ["Running", "0/2"], ["Suspended", "0/2"]]


def test_a_table_has_kueues_columns(alice: APIClient, queues: Cluster) -> None:
    submit(queues, "one")
    body = alice.get(f"{KUEUE}/namespaces/team-a/workloads", headers={"Accept": TABLE}).json()
    columns = [(column["name"], column["priority"]) for column in body["columnDefinitions"]]
    assert columns == [("Name", 0), ("Queue", 0), ("Reserved in", 0), ("Admitted", 0), ("Finished", 0), ("Age", 0)]
    [row] = body["rows"]
    assert row["cells"][1:5] == ["main", None, None, None]
    assert row["object"]["kind"] == "PartialObjectMetadata"
    assert row["object"]["metadata"]["ownerReferences"][0]["name"] == "one"
    whole = alice.get(f"{KUEUE}/workloads", {"includeObject": "Object"}, headers={"Accept": TABLE}).json()
    assert whole["rows"][0]["object"]["spec"]["queueName"] == "main"


def test_metadata_alone(alice: APIClient, queues: Cluster) -> None:
    accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
    body = alice.get(f"{KUEUE}/clusterqueues", headers={"Accept": accept}).json()
    assert body["kind"] == "PartialObjectMetadataList"
    assert [set(item) for item in body["items"]] == [{"kind", "apiVersion", "metadata"}]


def test_another_cluster_has_its_own_address(alice: APIClient, queues: Cluster) -> None:
    Cluster.objects.create(name="west")
    assert names(alice.get(f"/kubernetes/west{KUEUE}/clusterqueues")) == []
    assert names(alice.get(f"/kubernetes/default{KUEUE}/clusterqueues")) == ["research"]
    missing = alice.get(f"/kubernetes/north{KUEUE}/clusterqueues")
    assert (missing.status_code, missing.json()["reason"]) == (404, "NotFound")


def test_what_is_not_there_is_a_status(alice: APIClient, queues: Cluster) -> None:
    answer = alice.get(f"{KUEUE}/clusterqueues/none")
    assert answer.status_code == 404
    assert answer.json()["message"] == 'clusterqueues.kueue.x-k8s.io "none" not found'
    assert answer.json()["details"] == {"name": "none", "group": "kueue.x-k8s.io", "kind": "clusterqueues"}
    assert APIClient().get(f"{KUEUE}/clusterqueues").json()["reason"] == "Unauthorized"
    assert alice.get("/apis/apps/v1/deployments").json()["kind"] == "Status"
    assert alice.delete(f"{KUEUE}/localqueues").json()["reason"] == "MethodNotAllowed"


@pytest.mark.django_db(transaction=True)
def test_an_object_keeps_its_version_until_it_changes(alice: APIClient, queues: Cluster) -> None:
    submit(queues, "one")
    address = f"{KUEUE}/clusterqueues/research"
    first, again = (alice.get(address).json()["metadata"]["resourceVersion"] for _ in range(2))
    assert first == again
    schedule(queues)
    changed = alice.get(address).json()
    assert changed["status"]["reservingWorkloads"] == 1
    assert int(changed["metadata"]["resourceVersion"]) > int(first)


@pytest.mark.django_db(transaction=True)
def test_rests_filters_select_in_a_field_selector(alice: APIClient, queues: Cluster) -> None:
    submit(queues, "first")
    schedule(queues)
    submit(queues, "other")
    address = f"{KUEUE}/workloads"
    for selector, count in (
        ("kueueweb.io/status=Admitted", 1),
        ("kueueweb.io/status!=Admitted,kueueweb.io/status!=Finished", 1),
        ("kueueweb.io/cluster-queue=research", 2),
        ("kueueweb.io/cluster-queue=none", 0),
        ("kueueweb.io/submitted-by=nobody", 0),
    ):
        found = alice.get(address, {"fieldSelector": selector}).json()
        assert len(found["items"]) == count, selector
    queue = {"fieldSelector": "spec.clusterQueue=research"}
    assert [item["metadata"]["name"] for item in alice.get(f"{KUEUE}/localqueues", queue).json()["items"]] == ["main"]
    assert alice.get(f"{KUEUE}/clusterqueues", queue).status_code == 400
