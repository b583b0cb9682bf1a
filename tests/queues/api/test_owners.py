"""Whose a workload is, and what others of its namespace may do with it."""

from __future__ import annotations

from typing import Any

import pytest

from accounts.models import Cluster, Namespace, Role, RoleBinding
from queues.models import Job, LocalQueue, Workload
from queues.services.owners import ONLY_OWNERS
from tests.api_client import SchemaClient
from tests.users import EPOCH, client_of, make_user

URL = "/api/v1/workloads/"
JOB = """apiVersion: batch/v1
kind: Job
metadata: {name: train, namespace: team-a, labels: {kueue.x-k8s.io/queue-name: main}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: %s}]}}}
"""
WORKLOAD = """apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata: {name: alone, namespace: team-a}
spec: {queueName: main, podSets: [{name: main, count: %d, template: {spec: {containers: [{name: c, image: i}]}}}]}
"""
POD = """apiVersion: v1
kind: Pod
metadata:
  name: %s
  namespace: team-a
  labels: {kueue.x-k8s.io/queue-name: main, kueue.x-k8s.io/pod-group-name: g}
  annotations: {kueue.x-k8s.io/pod-group-total-count: "2"}
spec: {restartPolicy: Never, containers: [{name: c, image: i}]}
"""


def apply(client: SchemaClient, text: str) -> Any:
    return client.post("/api/v1/manifests/", text.encode(), content_type="application/yaml")


@pytest.fixture
def queue(cluster: Cluster) -> None:
    LocalQueue.objects.create(cluster=cluster, namespace="team-a", name="main", created_at=EPOCH)


@pytest.fixture
def dora(queue: None) -> SchemaClient:
    """Another submitter of team-a."""
    user = make_user("dora")
    RoleBinding.objects.create(username=user.username, role=Role.SUBMITTER, namespace="team-a")
    return client_of(user)


@pytest.fixture
def owned(cluster: Cluster) -> None:
    """team-a has chosen that workloads are their owners'."""
    Namespace.objects.filter(name="team-a").update(annotations={ONLY_OWNERS: "true"})


def test_by_default_the_last_writer_is_the_owner(bob: SchemaClient, dora: SchemaClient) -> None:
    for text in (JOB % "first", WORKLOAD % 1, POD % "a"):
        assert apply(bob, text).status_code == 200
    assert set(Workload.objects.values_list("submitted_by", flat=True)) == {"bob"}
    for text in (JOB % "first", WORKLOAD % 1):
        assert apply(dora, text).json()["objects"][0]["outcome"] == "unchanged"
    assert set(Workload.objects.values_list("submitted_by", flat=True)) == {"bob"}
    for text in (JOB % "second", WORKLOAD % 2):
        assert apply(dora, text).status_code == 200
    assert dict(Workload.objects.exclude(name="g").values_list("submitted_by", "active")) == {"dora": True}
    assert dora.post(f"{URL}team-a/g/cancel/").status_code == 200


def test_the_image_of_another_one_is_not_to_be_replaced(bob: SchemaClient, dora: SchemaClient, owned: None) -> None:
    for text in (JOB % "first", WORKLOAD % 1, POD % "a"):
        assert apply(bob, text).status_code == 200
    for text, name in ((JOB % "second", "train"), (WORKLOAD % 2, "alone"), (POD % "b", "g")):
        refused = apply(dora, text)
        assert (refused.status_code, refused.json()["reason"]) == (403, "NotPermitted")
        [error] = refused.json()["errors"]
        assert (error["path"], error["reason"]) == ("metadata.name", "NotPermitted")
        assert "was submitted by bob" in error["rule"], name
    assert apply(bob, JOB % "third").status_code == 200
    assert set(Workload.objects.values_list("submitted_by", flat=True)) == {"bob"}


def test_nor_is_a_pod_to_be_added_to_the_group_of_another_one(
    alice: SchemaClient, bob: SchemaClient, dora: SchemaClient, owned: None
) -> None:
    def submit(client: SchemaClient, name: str) -> Any:
        return client.post(URL, (POD % name).encode(), content_type="application/yaml")

    assert submit(bob, "a").status_code == 201
    refused = submit(dora, "b")
    assert (refused.status_code, refused.json()["reason"]) == (403, "NotPermitted")
    [error] = refused.json()["errors"]
    assert (error["path"], error["value"]) == ("metadata.name", "team-a/g")
    assert "was submitted by bob" in error["rule"]
    assert set(Job.objects.values_list("kind", "name")) == {("PodGroup", "g"), ("Pod", "a")}
    assert submit(alice, "b").status_code == 201
    assert set(Workload.objects.values_list("name", "submitted_by")) == {("g", "bob")}


@pytest.mark.parametrize("others", [POD.replace("pod-group-name: g", "pod-group-name: h") % "b", WORKLOAD % 1])
def test_one_document_of_a_group_of_another_one_refuses_all(
    bob: SchemaClient, dora: SchemaClient, owned: None, others: str
) -> None:
    assert apply(bob, POD % "a").status_code == 200
    text = f"{others}---\n{POD % 'c'}"
    refused = dora.post(URL, text.encode(), content_type="application/yaml")
    assert refused.status_code == 403
    assert [error["document"] for error in refused.json()["errors"]] == [1]
    assert Workload.objects.count() == 1
    assert dora.post(URL, others.encode(), content_type="application/yaml").status_code == 201


@pytest.mark.parametrize("verb", ["cancel", "hold", "release", "requeue", "priority", "delete", "finish"])
def test_nor_is_it_to_be_ended(
    alice: SchemaClient, bob: SchemaClient, dora: SchemaClient, owned: None, verb: str
) -> None:
    assert apply(bob, WORKLOAD % 1).status_code == 200
    key = {"namespace": "team-a", "name": "alone"}

    def attempt(client: SchemaClient) -> Any:
        if verb == "delete":
            return client.delete(f"{URL}team-a/alone/")
        if verb == "finish":
            return client.post(f"{URL}finish/", {"workloads": [key]})
        if verb == "priority":
            return client.post(f"{URL}team-a/alone/priority/", {"priority": 1})
        bulk = client.post(f"{URL}{verb}/", {"workloads": [key]})
        one = client.post(f"{URL}team-a/alone/{verb}/")
        assert (bulk.status_code == 403) == (one.status_code == 403)
        return one

    refused = attempt(dora)
    assert (refused.status_code, refused.json()["reason"]) == (403, "NotPermitted")
    assert Workload.objects.get().status == "Pending"
    allowed = alice if verb == "priority" else bob
    assert attempt(allowed).status_code in (200, 204, 409)


def test_an_admin_of_the_namespace_may(alice: SchemaClient, bob: SchemaClient, dora: SchemaClient, owned: None) -> None:
    assert apply(bob, WORKLOAD % 1).status_code == 200
    RoleBinding.objects.filter(username="dora").update(role=Role.ADMIN)
    assert apply(dora, WORKLOAD % 2).status_code == 200
    assert Workload.objects.get().submitted_by == "dora"
    assert alice.post(f"{URL}team-a/alone/cancel/").status_code == 200
