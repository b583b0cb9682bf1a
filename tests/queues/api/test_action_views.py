"""What users do with workloads over REST, and what they may not."""

from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster
from queues.models import Workload, WorkloadEvent, WorkloadPriorityClass
from tests.api_client import SchemaClient
from tests.users import EPOCH

URL = "/api/v1/workloads/"


@pytest.fixture
def workloads(alice: SchemaClient) -> list[dict[str, str]]:
    keys = [
        {"namespace": namespace, "name": name}
        for namespace, name in (("team-a", "a"), ("team-a", "b"), ("team-b", "c"))
    ]
    alice.post(URL, [{**key, "pod_sets": [{"requests": {"cpu": 1}}]} for key in keys])
    return keys


def admit(name: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
    Workload.objects.filter(name=name).update(status="Admitted", quota_reserved_at=EPOCH, admitted_at=EPOCH)


def test_hold_and_release(bob: SchemaClient, workloads: Any) -> None:
    assert bob.post(f"{URL}team-a/a/hold/").json()["active"] is False
    again = bob.post(f"{URL}team-a/a/hold/")
    assert (again.status_code, again.json()["reason"]) == (409, "Conflict")
    assert bob.post(f"{URL}team-a/a/release/").json()["active"] is True
    assert bob.post(f"{URL}team-a/a/release/").status_code == 409


def test_cancel(bob: SchemaClient, workloads: Any) -> None:
    assert bob.post(f"{URL}team-a/a/cancel/").json()["status"] == "Finished"
    assert bob.post(f"{URL}team-a/a/cancel/").status_code == 409
    admit("b")
    body = bob.post(f"{URL}team-a/b/cancel/").json()
    assert (body["status"], body["active"]) == ("Admitted", False)
    assert body["deletion_requested_at"] is not None
    deleted = bob.delete(f"{URL}team-a/b/")
    assert (deleted.status_code, deleted.json()["name"]) == (202, "b")


def test_priority(alice: SchemaClient, bob: SchemaClient, cluster: Cluster, workloads: Any) -> None:
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=1000, created_at=EPOCH)
    assert alice.post(f"{URL}team-a/a/priority/", {"priority": -3}).json()["priority"] == -3
    assert alice.post(f"{URL}team-a/a/priority/", {"priority": 10**9 + 1}).status_code == 400
    assert bob.post(f"{URL}team-a/a/priority/", {"priority": 1}).status_code == 403, "S5: numbers are for admins"
    body = bob.post(f"{URL}team-a/a/priority/", {"priority_class": "high"}).json()
    assert (body["priority"], body["priority_class"]) == (1000, "high")
    bodies: list[Any] = [
        {},
        {"priority": 1, "priority_class": "high"},
        {"priority": "x"},
        {"priority_class": "low"},
        [],
        3,
    ]
    for wrong in bodies:
        assert bob.post(f"{URL}team-a/a/priority/", wrong).status_code == 400
    [mistake] = bob.post(f"{URL}team-a/a/priority/", {"priority_class": "low"}).json()["errors"]
    assert (mistake["path"], mistake["value"]) == ("priority_class", "low")


def test_priority_of_many(alice: SchemaClient, bob: SchemaClient, cluster: Cluster, workloads: Any) -> None:
    """One question for all that are selected; numbers are for admins, as for one workload."""
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=1000, created_at=EPOCH)
    keys = [{"namespace": "team-a", "name": name} for name in ("a", "b", "nope")]
    body = bob.post(f"{URL}priority/", {"workloads": keys, "priority_class": "high"}).json()
    assert body["changed"] == keys[:2]
    assert [(key["name"], key["reason"]) for key in body["skipped"]] == [("nope", "NotFound")]
    found = Workload.objects.filter(cluster=cluster, name__in=["a", "b"])
    assert set(found.values_list("priority", "priority_class_name")) == {(1000, "high")}
    assert bob.post(f"{URL}priority/", {"workloads": keys, "priority": 1}).status_code == 403
    assert alice.post(f"{URL}priority/", {"workloads": keys, "priority": -3}).json()["changed"] == keys[:2]
    for wrong in ({}, {"priority": 1, "priority_class": "high"}, {"priority_class": "low"}, {"priority": 10**9 + 1}):
        assert alice.post(f"{URL}priority/", {"workloads": keys} | wrong).status_code == 400


def test_requeue(bob: SchemaClient, cluster: Cluster, workloads: list[dict[str, str]]) -> None:
    """Only what holds quota can stop and wait again, and only once."""
    refused = bob.post(f"{URL}team-a/a/requeue/")
    assert refused.status_code == 409
    assert refused.json()["message"] == (
        "requeue does not apply to workload team-a/a: It holds no quota, or is already stopping."
    )
    Workload.objects.filter(name="a").update(status="Admitted", quota_reserved_at=EPOCH, admitted_at=EPOCH)
    assert bob.post(f"{URL}team-a/a/requeue/").status_code == 200
    row = Workload.objects.get(name="a")
    assert (row.requeue_requested_by, row.active) == ("bob", True)
    event = WorkloadEvent.objects.get(reason="RequeueRequested")
    assert (event.message, event.actor) == ("Requeued by bob", "bob")
    many = bob.post(f"{URL}requeue/", {"workloads": workloads[:2]}).json()
    assert [(key["name"], key["reason"]) for key in many["skipped"]] == [("a", "Conflict"), ("b", "Conflict")]


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "requeue", "priority"])
def test_of_others(bob: SchemaClient, vera: SchemaClient, workloads: Any, verb: str) -> None:
    body = {"priority": 1} if verb == "priority" else None
    foreign = bob.post(f"{URL}team-b/c/{verb}/", body)
    assert foreign.status_code == 404
    assert foreign.json()["message"] == "There is no Workload team-b/c in cluster default."
    assert bob.post(f"{URL}team-a/gone/{verb}/", body).status_code == 404
    assert vera.post(f"{URL}team-b/c/{verb}/", body).status_code == 403


def test_many_at_once(alice: SchemaClient, workloads: list[dict[str, str]]) -> None:
    assert alice.post(f"{URL}hold/", {"workloads": workloads}).json() == {"changed": workloads, "skipped": []}
    assert alice.post(f"{URL}release/", {"workloads": workloads[:2]}).json() == {
        "changed": workloads[:2],
        "skipped": [],
    }
    finished = alice.post(f"{URL}finish/", {"workloads": workloads[:1], "reason": "Failed", "message": "Out of memory"})
    assert finished.json() == {"changed": workloads[:1], "skipped": []}
    row = Workload.objects.get(name="a")
    assert (row.status, row.reason, row.message) == ("Finished", "Failed", "Out of memory")
    cancelled = alice.post(f"{URL}cancel/", {"workloads": workloads}).json()
    assert cancelled["changed"] == workloads[1:]
    assert cancelled["skipped"] == [workloads[0] | {"reason": "Conflict", "message": "It has ended."}]


def test_many_at_once_of_others(bob: SchemaClient, workloads: list[dict[str, str]]) -> None:
    for verb in ("cancel", "hold", "release", "requeue", "finish"):
        assert bob.post(f"{URL}{verb}/", {"workloads": workloads}).status_code == 403
    assert not Workload.objects.exclude(status="Pending", active=True).exists()
    assert bob.post(f"{URL}hold/", {"workloads": "a"}).status_code == 400
    assert bob.post(f"{URL}hold/", []).status_code == 400


def test_keys_that_are_no_names_are_refused_by_their_place(alice: SchemaClient, workloads: Any) -> None:
    for wrong in (7, None, ""):
        answer = alice.post(f"{URL}hold/", {"workloads": [*workloads, {"namespace": "team-a", "name": wrong}]})
        assert answer.status_code == 400
        assert [error["path"] for error in answer.json()["errors"]] == ["workloads[3].name"]
    assert not WorkloadEvent.objects.filter(reason="Held").exists()
    padded = {"namespace": " team-a", "name": "a "}
    assert alice.post(f"{URL}hold/", {"workloads": [padded]}).json()["changed"] == workloads[:1]
