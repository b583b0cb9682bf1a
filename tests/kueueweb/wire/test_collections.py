"""Deletion of collections in Kubernetes' wire format: with the user's rights, by selectors, in pieces."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from accounts.models import AuditRecord, Cluster, ManagedFields, Namespace
from clusters.manifests import apply_manifests
from clusters.manifests.apply import lock_applies
from kueueweb.wire.resources import RESOURCES
from queues.models import Job, LocalQueue, ResourceFlavor, Workload
from queues.services.owners import ONLY_OWNERS
from scheduler.leader.engine import Engine
from tests.accounts.test_rights_walk import EVERYBODY
from tests.kueueweb.wire.conftest import client_for, names, submit
from tests.kueueweb.wire.test_rights import may
from tests.kueueweb.wire.test_writes import JOBS, KUEUE, MERGE, local_queue, refused, send
from tests.patience import PATIENCE_SECONDS

WORKLOADS: Final = f"{KUEUE}/namespaces/team-a/workloads"


def job_names() -> set[str]:
    return set(Job.objects.filter(deletion_requested_at=None).values_list("name", flat=True))


@pytest.fixture
def jobs(queues: Cluster) -> Cluster:
    """Three jobs of team-a and one of team-b."""
    for name in ("one", "two", "three"):
        submit(queues, name, app="x" if name == "two" else "y")
    submit(queues, "elsewhere", "team-b")
    return queues


def test_all_objects_of_a_namespace(bob: APIClient, jobs: Cluster) -> None:
    answer = send(bob, "DELETE", JOBS)
    assert answer.json()["kind"] == "JobList"
    assert sorted(names(answer)) == ["one", "three", "two"]
    assert job_names() == {"elsewhere"}
    assert set(Workload.objects.values_list("namespace", flat=True)) == {"team-b"}
    assert names(send(bob, "DELETE", JOBS)) == []


def test_selectors_and_pages(bob: APIClient, jobs: Cluster) -> None:
    assert names(send(bob, "DELETE", f"{JOBS}?labelSelector=app%3Dx")) == ["two"]
    assert names(send(bob, "DELETE", f"{JOBS}?fieldSelector=metadata.name%3Dnone")) == []
    assert job_names() == {"one", "three", "elsewhere"}
    first = send(bob, "DELETE", f"{JOBS}?limit=1")
    assert names(first) == ["one"]
    rest = send(bob, "DELETE", f"{JOBS}?limit=1&continue={first.json()['metadata']['continue']}")
    assert names(rest) == ["three"]
    assert "continue" not in rest.json()["metadata"]
    assert job_names() == {"elsewhere"}
    assert refused(send(bob, "DELETE", f"{JOBS}?labelSelector=a%20b")) == (400, "BadRequest")
    assert refused(send(bob, "DELETE", f"{JOBS}?fieldSelector=spec.x%3Da")) == (400, "BadRequest")


@pytest.mark.parametrize(("query", "body"), [("?dryRun=All", None), ("", {"dryRun": ["All"]})])
def test_a_dry_run_deletes_nothing(bob: APIClient, jobs: Cluster, query: str, body: Any) -> None:
    assert sorted(names(send(bob, "DELETE", f"{JOBS}{query}", body))) == ["one", "three", "two"]
    assert len(names(send(bob, "DELETE", f"{WORKLOADS}{query}", body))) == 3
    assert job_names() == {"one", "two", "three", "elsewhere"}
    assert Workload.objects.filter(status="Pending").count() == 4
    assert not AuditRecord.objects.filter(verb="delete").exists()


@pytest.mark.django_db(transaction=True)
def test_workloads_with_quota_stop_first(bob: APIClient, jobs: Cluster) -> None:
    Engine(jobs, "test").run()
    admitted = set(Workload.objects.filter(namespace="team-a", status="Admitted").values_list("name", flat=True))
    assert admitted
    assert len(names(send(bob, "DELETE", WORKLOADS))) == 3
    left = Workload.objects.filter(namespace="team-a")
    assert {row.name for row in left if row.status != "Finished"} == admitted
    assert not left.filter(status="Admitted", deletion_requested_at=None).exists()


def test_objects_in_use_wait(alice: APIClient, jobs: Cluster) -> None:
    apply_manifests(
        jobs, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: spare}\n", user=None
    )
    assert names(send(alice, "DELETE", f"{KUEUE}/resourceflavors")) == ["on-demand", "spare"]
    [left] = ResourceFlavor.objects.all()
    assert (left.name, left.deletion_requested_at is not None) == ("on-demand", True)


@pytest.mark.django_db(transaction=True)
def test_preconditions_hold_for_each(bob: APIClient, jobs: Cluster) -> None:
    uid = bob.get(f"{JOBS}/one").json()["metadata"]["uid"]
    assert refused(send(bob, "DELETE", JOBS, {"preconditions": {"uid": uid}})) == (409, "Conflict")
    assert job_names() == {"one", "two", "three", "elsewhere"}
    version = bob.get(JOBS).json()["metadata"]["resourceVersion"]
    patch = {"metadata": {"labels": {"app": "z", "kueue.x-k8s.io/queue-name": "main"}}}
    assert send(bob, "PATCH", f"{JOBS}/two", patch, MERGE).status_code == 200
    older = {"preconditions": {"resourceVersion": version}}
    assert refused(send(bob, "DELETE", JOBS, older)) == (409, "Conflict")
    assert job_names() == {"one", "two", "three", "elsewhere"}
    selected = f"{JOBS}?fieldSelector=metadata.name%3Done"
    assert names(send(bob, "DELETE", selected, {"preconditions": {"uid": uid, "resourceVersion": version}})) == ["one"]


def test_only_collections_of_a_namespace(alice: APIClient, jobs: Cluster) -> None:
    for path in ("/apis/batch/v1/jobs", f"{KUEUE}/workloads", f"{KUEUE}/localqueues", "/api/v1/namespaces"):
        assert refused(send(alice, "DELETE", path)) == (405, "MethodNotAllowed"), path
    assert len(job_names()) == 4
    assert Namespace.objects.filter(name="team-a").exists()


def test_other_tenants_are_refused(charlie: APIClient, bob: APIClient, jobs: Cluster) -> None:
    for path in (JOBS, WORKLOADS, f"{KUEUE}/namespaces/team-a/localqueues", f"{KUEUE}/clusterqueues"):
        assert refused(send(charlie, "DELETE", path)) == (403, "Forbidden"), path
    assert 'cannot deletecollection resource "jobs"' in send(charlie, "DELETE", JOBS).json()["message"]
    assert refused(send(bob, "DELETE", f"{KUEUE}/namespaces/team-a/localqueues")) == (403, "Forbidden")
    assert len(job_names()) == 4
    assert LocalQueue.objects.exists()


def test_nothing_is_deleted_where_only_owners_may(bob: APIClient, jobs: Cluster) -> None:
    Namespace.objects.filter(name="team-a").update(annotations={ONLY_OWNERS: "true"})
    Workload.objects.filter(job__name="one").update(submitted_by="bob")
    for path in (JOBS, WORKLOADS):
        assert refused(send(bob, "DELETE", path)) == (403, "Forbidden"), path
    assert Workload.objects.filter(status="Pending").count() == 4
    assert names(send(bob, "DELETE", f"{JOBS}?fieldSelector=metadata.name%3Done")) == ["one"]


def test_can_i_and_discovery(clients: dict[str, APIClient]) -> None:
    for resource in RESOURCES:
        namespace = "team-a" if resource.namespaced else ""
        for letter in EVERYBODY:
            one, many = (
                may(clients[letter], verb, resource.group, resource.plural, namespace)
                for verb in ("delete", "deletecollection")
            )
            assert many == (one and resource.kind != "Namespace"), (letter, resource.kind)


def test_deletions_are_audited_and_leave_no_managers(bob: APIClient, alice: APIClient, jobs: Cluster) -> None:
    queues = f"{KUEUE}/namespaces/team-a/localqueues"
    apply = "application/apply-patch+yaml"
    assert send(alice, "PATCH", f"{queues}/more?fieldManager=argo", local_queue(), apply).status_code == 201
    assert ManagedFields.objects.exists()
    assert sorted(names(send(alice, "DELETE", queues))) == ["main", "more"]
    assert not ManagedFields.objects.exists()
    send(bob, "DELETE", JOBS)
    records = AuditRecord.objects.filter(verb="delete", kind="Job")
    assert set(records.values_list("name", flat=True)) == {"one", "two", "three"}


@pytest.mark.parametrize("body", [None, {"preconditions": {"resourceVersion": str(2**62)}}])
def test_the_number_of_queries_does_not_grow_with_the_number_of_workloads(
    bob: APIClient, queues: Cluster, body: Any
) -> None:
    counts = []
    for many in (2, 10):
        for number in range(many):
            submit(queues, f"job-{number}")
        with CaptureQueriesContext(connection) as queries:
            assert len(names(send(bob, "DELETE", WORKLOADS, body))) == many
        counts.append(len(queries))
        Job.objects.all().delete()
    assert counts[0] == counts[1]


@pytest.mark.django_db(transaction=True)
def test_twice_at_once(jobs: Cluster) -> None:
    """Two users who delete the same objects both succeed, and nothing fails or stays."""
    users = [client_for("bob"), client_for("alice")]
    codes: list[int] = []
    start = threading.Barrier(len(users))

    def delete(user: APIClient) -> None:
        start.wait()
        codes.append(send(user, "DELETE", JOBS).status_code)
        connections.close_all()

    threads = [threading.Thread(target=delete, args=(user,)) for user in users]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert codes == [200, 200]
    assert job_names() == {"elsewhere"}


PATCHED: Final = {"metadata": {"labels": {"app": "other", "kueue.x-k8s.io/queue-name": "main"}}}


@pytest.mark.django_db(transaction=True)
def test_a_label_changed_in_between_saves_the_object(bob: APIClient, jobs: Cluster) -> None:
    """The deletion has read its page and waits for another write, which changes the label of one of its objects."""
    user = client_for("alice")
    codes: list[int] = []

    def delete() -> None:
        codes.append(send(user, "DELETE", f"{JOBS}?labelSelector=app%3Dy").status_code)
        connections.close_all()

    deletion = threading.Thread(target=delete)
    with transaction.atomic():
        lock_applies(jobs, against_decisions=False)
        deletion.start()
        wait_for_a_write_that_waits()
        assert send(bob, "PATCH", f"{JOBS}/one", PATCHED, MERGE).status_code == 200
    deletion.join(PATIENCE_SECONDS)
    assert codes == [200]
    assert job_names() == {"one", "two", "elsewhere"}


def wait_for_a_write_that_waits() -> None:
    """Wait until another connection to this database waits for the lock of writes."""
    question = (
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute(question)
            if cursor.fetchone() == (1,):
                return
        time.sleep(0.05)
    raise AssertionError("the deletion did not come to its first piece")
