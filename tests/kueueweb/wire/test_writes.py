"""Writes in Kubernetes' wire format: stored by the services of REST, refused in Kubernetes' words."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest
from django.db import transaction
from rest_framework.test import APIClient

from accounts.models import AuditRecord, Cluster
from kueueweb.wire.resources import RESOURCES
from queues.models import ClusterQueue, Job, LocalQueue, Workload
from tests.accounts.test_rights_walk import ADMIN, EVERYBODY, QUEUES, SUBMITTERS
from tests.kueueweb.wire.conftest import submit
from tests.kueueweb.wire.test_rights import may

KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
JOBS: Final = "/apis/batch/v1/namespaces/team-a/jobs"
QUEUE: Final = f"{KUEUE}/clusterqueues/research"
MERGE: Final = "application/merge-patch+json"
_POD: Final = {
    "restartPolicy": "Never",
    "containers": [{"name": "main", "image": "busybox", "resources": {"requests": {"cpu": "1"}}}],
}


def job(**metadata: Any) -> dict[str, Any]:
    """A Job of one pod."""
    meta = {"name": "made", "labels": {"kueue.x-k8s.io/queue-name": "main"}, **metadata}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": {"template": {"spec": _POD}}}


def local_queue(name: str = "more") -> dict[str, Any]:
    meta = {"name": name, "namespace": "team-a"}
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": meta,
        "spec": {"clusterQueue": "research"},
    }  # fmt: skip


def send(client: APIClient, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
    return client.generic(method, path, "" if body is None else json.dumps(body), content_type=kind)


def refused(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def test_create(bob: APIClient, queues: Cluster) -> None:
    made = send(bob, "POST", JOBS, job())
    assert made.status_code == 201, made.content
    assert made.json()["metadata"]["namespace"] == "team-a"
    row = Job.objects.get(name="made")
    assert Workload.objects.get().submitted_by == "bob"
    assert made.json()["metadata"]["uid"] == str(row.uid)
    assert refused(send(bob, "POST", JOBS, job())) == (409, "AlreadyExists")
    named = send(bob, "POST", JOBS, {**job(), "metadata": {"generateName": "run-"}}).json()["metadata"]["name"]
    assert named.startswith("run-")


def test_mistakes_are_named(bob: APIClient, queues: Cluster) -> None:
    wrong = job()
    wrong["spec"]["template"]["spec"] = {**_POD, "restartPolicy": "Perhaps"}
    answer = send(bob, "POST", JOBS, wrong)
    assert refused(answer) == (422, "Invalid")
    assert answer.json()["details"]["causes"][0]["field"] == "spec.template.spec.restartPolicy"
    assert refused(send(bob, "POST", JOBS, local_queue())) == (400, "BadRequest")
    assert refused(send(bob, "POST", JOBS, job(namespace="team-b"))) == (400, "BadRequest")
    assert refused(send(bob, "POST", JOBS, [])) == (400, "BadRequest")
    assert refused(send(bob, "POST", "/apis/batch/v1/jobs", job())) == (405, "MethodNotAllowed")
    assert refused(send(bob, "POST", JOBS, job(), "application/yaml")) == (415, "UnsupportedMediaType")
    assert not Job.objects.exists()


def test_replace_by_version(alice: APIClient, queues: Cluster) -> None:
    read = alice.get(QUEUE).json()
    first = send(alice, "PUT", QUEUE, {**read, "spec": {**read["spec"], "queueingStrategy": "StrictFIFO"}})
    assert first.status_code == 200, first.content
    assert first.json()["spec"]["queueingStrategy"] == "StrictFIFO"
    stale = send(alice, "PUT", QUEUE, {**read, "spec": {**read["spec"], "stopPolicy": "Hold"}})
    assert refused(stale) == (409, "Conflict")
    assert "please apply your changes to the latest version" in stale.json()["message"]
    again = send(alice, "PUT", QUEUE, first.json())
    assert again.json()["metadata"]["resourceVersion"] == first.json()["metadata"]["resourceVersion"]
    assert refused(send(alice, "PUT", f"{KUEUE}/clusterqueues/none", read)) == (400, "BadRequest")
    missing = {**read, "metadata": {"name": "none"}}
    assert refused(send(alice, "PUT", f"{KUEUE}/clusterqueues/none", missing)) == (404, "NotFound")
    other = {**read, "metadata": {**first.json()["metadata"], "uid": "00000000-0000-0000-0000-000000000000"}}
    assert refused(send(alice, "PUT", QUEUE, other)) == (409, "Conflict")


def test_patch(alice: APIClient, queues: Cluster) -> None:
    before = alice.get(QUEUE).json()["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"tier": None, "area": "ml"}}, "spec": {"stopPolicy": "Hold"}}
    found = send(alice, "PATCH", QUEUE, patch, MERGE).json()
    assert found["metadata"]["labels"] == {"area": "ml"}
    assert (found["spec"]["stopPolicy"], found["spec"]["cohortName"]) == ("Hold", "company")
    stale = {"metadata": {"resourceVersion": before}, "spec": {"stopPolicy": "None"}}
    assert refused(send(alice, "PATCH", QUEUE, stale, MERGE)) == (409, "Conflict")
    for kind in ("application/json", "application/yaml"):
        assert refused(send(alice, "PATCH", QUEUE, {}, kind)) == (415, "UnsupportedMediaType"), kind
    strategic = "application/strategic-merge-patch+json"
    assert send(alice, "PATCH", QUEUE, {"metadata": {"labels": {"a": "b"}}}, strategic).status_code == 200
    lists: dict[str, Any] = {"spec": {"resourceGroups": []}}
    assert refused(send(alice, "PATCH", QUEUE, lists, strategic)) == (415, "UnsupportedMediaType")


def test_the_older_version_is_written_in_its_own_words(alice: APIClient, queues: Cluster) -> None:
    path = QUEUE.replace("v1beta2", "v1beta1")
    found = send(alice, "PATCH", path, {"spec": {"cohort": "other"}}, MERGE).json()
    assert (found["apiVersion"], found["spec"]["cohort"]) == ("kueue.x-k8s.io/v1beta1", "other")
    assert ClusterQueue.objects.get().cohort_name == "other"


def test_a_patch_of_a_workload_holds_it(bob: APIClient, queues: Cluster) -> None:
    submit(queues, "one")
    row = Workload.objects.get()
    path = f"{KUEUE}/namespaces/team-a/workloads/{row.name}"
    answer = send(bob, "PATCH", path, {"spec": {"active": False}}, MERGE)
    assert answer.status_code == 200, answer.content
    assert not Workload.objects.get().active
    assert refused(send(bob, "PATCH", path, {"spec": {"queueName": "other"}}, MERGE)) == (422, "Invalid")
    assert refused(send(bob, "PATCH", f"{path}/status", {"status": {}}, MERGE)) == (405, "MethodNotAllowed")


def test_delete(bob: APIClient, alice: APIClient, queues: Cluster) -> None:
    submit(queues, "one")
    uid = bob.get(f"{JOBS}/one").json()["metadata"]["uid"]
    wrong = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": "other"}}
    assert refused(send(bob, "DELETE", f"{JOBS}/one", wrong)) == (409, "Conflict")
    done = send(bob, "DELETE", f"{JOBS}/one", {"preconditions": {"uid": uid}, "propagationPolicy": "Background"})
    assert (done.status_code, done.json()["status"]) == (200, "Success")
    assert not Workload.objects.exists()
    assert refused(send(bob, "DELETE", f"{JOBS}/one")) == (404, "NotFound")
    assert send(alice, "DELETE", f"{KUEUE}/namespaces/team-a/localqueues/main").json()["status"] == "Success"


def test_what_is_in_use_waits_for_its_deletion(alice: APIClient, queues: Cluster) -> None:
    found = send(alice, "DELETE", f"{KUEUE}/resourceflavors/on-demand").json()
    assert (found["kind"], "deletionTimestamp" in found["metadata"]) == ("ResourceFlavor", True)


@pytest.mark.parametrize("where", ["query", "body"])
def test_a_dry_run_stores_nothing(alice: APIClient, queues: Cluster, where: str) -> None:
    made = send(alice, "POST", f"{KUEUE}/namespaces/team-a/localqueues?dryRun=All", local_queue())
    assert (made.status_code, made.json()["spec"]["clusterQueue"]) == (201, "research")
    patched = send(alice, "PATCH", f"{QUEUE}?dryRun=All", {"spec": {"stopPolicy": "Hold"}}, MERGE)
    assert patched.json()["spec"]["stopPolicy"] == "Hold"
    query, body = ("?dryRun=All", None) if where == "query" else ("", {"dryRun": ["All"]})
    path = f"{KUEUE}/namespaces/team-a/localqueues/main{query}"
    assert send(alice, "DELETE", path, body).json()["status"] == "Success"
    assert LocalQueue.objects.get().name == "main"
    assert ClusterQueue.objects.get().stop_policy == "None"
    assert refused(send(alice, "POST", f"{JOBS}?dryRun=Some", job())) == (400, "BadRequest")


def test_writes_are_audited(queues: Cluster, alice: APIClient) -> None:
    path = f"{KUEUE}/namespaces/team-a/localqueues/main"
    send(alice, "PATCH", path, {"spec": {"stopPolicy": "Hold"}}, MERGE)
    record = AuditRecord.objects.filter(kind="LocalQueue", verb="update").latest("id")
    assert (record.name, record.namespace, record.after) == ("main", "team-a", {"stop_policy": "Hold"})


def test_a_cluster_that_is_only_mirrored_is_not_written(queues: Cluster, alice: APIClient) -> None:
    Cluster.objects.filter(pk=queues.pk).update(mode="observe")
    assert refused(send(alice, "PATCH", QUEUE, {"spec": {"stopPolicy": "Hold"}}, MERGE)) == (409, "Conflict")


def test_each_role_writes_what_rest_lets_it_write(clients: dict[str, APIClient]) -> None:
    queue = {**local_queue("new"), "spec": {"clusterQueue": "mine"}}
    flavor = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "new"}}
    labelled = job(labels={"kueue.x-k8s.io/queue-name": "local"})
    in_team = f"{KUEUE}/namespaces/team-a"
    label = {"metadata": {"labels": {"a": "b"}}}
    table: list[tuple[str, str, str, Any, str]] = [
        (SUBMITTERS, "POST", JOBS, labelled, "application/json"),
        (SUBMITTERS, "DELETE", f"{in_team}/workloads/w", None, "application/json"),
        (QUEUES, "POST", f"{in_team}/localqueues", queue, "application/json"),
        (QUEUES, "PATCH", f"{in_team}/localqueues/local", label, MERGE),
        (QUEUES, "DELETE", f"{in_team}/localqueues/local", None, "application/json"),
        (QUEUES, "PATCH", f"{KUEUE}/clusterqueues/mine", label, MERGE),
        (ADMIN, "POST", f"{KUEUE}/resourceflavors", flavor, "application/json"),
        (ADMIN, "PATCH", f"{KUEUE}/resourceflavors/default-flavor", label, MERGE),
        (ADMIN, "DELETE", f"{KUEUE}/workloadpriorityclasses/class", None, "application/json"),
        (ADMIN, "PATCH", "/api/v1/namespaces/team-a", label, MERGE),
        (QUEUES, "DELETE", f"{KUEUE}/cohorts/sub", None, "application/json"),
    ]
    wrong = []
    for who, method, path, body, kind in table:
        for letter in EVERYBODY:
            with transaction.atomic():
                answer = send(clients[letter], method, path, body, kind)
                transaction.set_rollback(True)
            if (answer.status_code in (200, 201)) != (letter in who) or answer.status_code >= 500:
                wrong.append(f"{letter} {method} {path}: {answer.status_code} {answer.content.decode()[:200]}")
    assert wrong == []


def test_can_i_write(clients: dict[str, APIClient]) -> None:
    assert {letter for letter in EVERYBODY if may(clients[letter], "create", "batch", "jobs", "team-a")} == set(
        SUBMITTERS
    )
    for resource in RESOURCES:
        written = not resource.is_observed
        assert written == may(
            clients["A"], "delete", resource.group, resource.plural, "team-a" if resource.namespaced else ""
        )
        assert not may(clients["V"], "patch", resource.group, resource.plural, "team-a" if resource.namespaced else "")


def test_a_reservation_is_made_patched_and_deleted(alice: APIClient, bob: APIClient, queues: Cluster) -> None:
    address = "/apis/kueueweb.io/v1/reservations"
    spec = {"start": "2030-01-08T08:00:00Z", "end": "2030-01-08T12:00:00Z", "nodes": {"names": ["n1"]}}
    body = {"apiVersion": "kueueweb.io/v1", "kind": "Reservation", "metadata": {"name": "firmware"}, "spec": spec}
    assert send(bob, "POST", address, body).status_code == 403
    made = send(alice, "POST", address, body)
    assert made.status_code == 201, made.content
    assert made.json()["spec"] == spec
    assert refused(send(alice, "POST", address, body)) == (409, "AlreadyExists")
    patched = send(alice, "PATCH", f"{address}/firmware", {"spec": {"ifBusy": "Evict"}}, MERGE)
    assert patched.json()["spec"] == {**spec, "ifBusy": "Evict"}
    wrong = send(alice, "PATCH", f"{address}/firmware", {"spec": {"end": "2030-01-08T08:00:00Z"}}, MERGE)
    assert refused(wrong) == (422, "Invalid")
    assert "spec.end" in wrong.json()["message"]
    accept = "application/json;as=Table;g=meta.k8s.io;v=v1"
    [row] = alice.get(address, headers={"Accept": accept}).json()["rows"]
    assert row["cells"][:3] == ["firmware", "2030-01-08T08:00:00Z", "2030-01-08T12:00:00Z"]
    assert bob.get(address).status_code == 403
    assert send(alice, "DELETE", f"{address}/firmware").status_code == 200
    assert alice.get(f"{address}/firmware").status_code == 404
