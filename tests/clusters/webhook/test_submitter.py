"""The owner of a job of kubectl: the user that the API server named, and never one that a tenant names."""

from __future__ import annotations

import pytest

from clusters.client import REPLICA_SETS, JsonObject
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.submitter import submitter_of
from clusters.webhook.admission import MUTATE_JOBS, MUTATE_OWNERS, Admission
from clusters.webhook.reviews import CREATE, UPDATE, AdmissionRequest
from clusters.webhook.surroundings import ClusterSurroundings
from queues.models import Workload
from tests.clusters.group_pods import gpu_pod
from tests.clusters.system import gpu_job
from tests.clusters.webhook.conftest import GuardedSystem

pytestmark = pytest.mark.django_db(transaction=True)

NOTE, SIGNATURE = "kueueweb.io/submitted-by", "kueueweb.io/submitted-by-signature"
QUEUE = "kueue.x-k8s.io/queue-name"
USER = "kubectl"
"""The account by which the simulated cluster knows who is not us."""


def annotated(job: JsonObject, **annotations: str) -> JsonObject:
    return {**job, "metadata": {**job["metadata"], "annotations": {**annotations}}}


def notes_of(guarded: GuardedSystem, name: str = "train") -> dict[str, str]:
    found = guarded.kubectl.get(JOB_KINDS["Job"].resource, name)["metadata"].get("annotations") or {}
    return {key: found[key] for key in (NOTE, SIGNATURE) if key in found}


def submitters(guarded: GuardedSystem) -> dict[str, str]:
    guarded.watcher.resync()
    return {row.job.name: row.submitted_by for row in Workload.objects.select_related("job") if row.job is not None}


def test_a_job_is_of_the_user_who_made_it(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_job())
    guarded.kubectl.create(gpu_pod("alone"))
    assert notes_of(guarded)[NOTE] == USER
    assert submitters(guarded) == {"train": USER, "alone": USER}


def test_what_a_tenant_writes_there_is_written_over(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(annotated(gpu_job(), **{NOTE: "alice", SIGNATURE: "1:x"}))
    assert submitters(guarded) == {"train": USER}
    changed = guarded.kubectl.patch("Job", "train", {"metadata": {"annotations": {NOTE: "alice"}}})
    assert (changed.code, changed.body["details"]["causes"][0]["field"]) == (403, f"metadata.annotations[{NOTE}]")


def test_a_note_that_no_webhook_saw_names_nobody_when_the_job_is_queued(guarded: GuardedSystem) -> None:
    """Made while the webhook was down, where nothing is refused without a queue's name; queued when it is back."""
    guarded.kubectl.create(gpu_job("theirs"))
    copied = {**notes_of(guarded, "theirs"), NOTE: "alice"}
    guarded.take_down()
    forged = annotated(gpu_job(suspend=True), **copied)
    queue = forged["metadata"]["labels"].pop(QUEUE)
    assert guarded.kubectl.create(forged).code == 201
    guarded.bring_up()
    named = guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {QUEUE: queue}}})
    assert named.code == 403
    clean = {"labels": {QUEUE: queue}, "annotations": {NOTE: None, SIGNATURE: None}}
    assert guarded.kubectl.patch("Job", "train", {"metadata": clean}).code == 200
    assert submitters(guarded) == {"theirs": USER, "train": ""}


@pytest.mark.parametrize("change", ["name", "user", "late"])
def test_a_copied_note_says_nothing_where_no_webhook_is_asked(guarded: GuardedSystem, change: str) -> None:
    guarded.kubectl.create(gpu_job("first"))
    notes = notes_of(guarded, "first")
    jobs = JOB_KINDS["Job"].resource
    guarded.client.delete(jobs, "team", "first")
    if change == "late":
        guarded.advance(600)
    if change == "user":
        notes[NOTE] = "alice"
    # As an account that the webhook trusts: it lets everything in as it is.
    made = annotated(gpu_job("second" if change == "name" else "first"), **notes)
    guarded.client.create(jobs, made)
    assert set(submitters(guarded).values()) == {""}


CONTROLLER = "system:serviceaccount:kube-system:cronjob-controller"


def cron_job(**annotations: str) -> JsonObject:
    template = gpu_job("made")
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly", "namespace": "team", "annotations": annotations},
        "spec": {
            "schedule": "0 3 * * *",
            "jobTemplate": {"metadata": {"labels": template["metadata"]["labels"]}, "spec": template["spec"]},
        },
    }


def reviewed(
    guarded: GuardedSystem, path: str, user: str, made: JsonObject, old: JsonObject | None = None
) -> JsonObject:
    """The annotations that the webhook leaves on an object of this user."""
    surroundings = ClusterSurroundings(
        guarded.cluster, guarded.client, frozenset(), cached_seconds=0.0, now=guarded.now
    )
    request = AdmissionRequest(
        "uid", UPDATE if old else CREATE, made["apiVersion"], made["kind"], made["metadata"]["namespace"],
        made["metadata"]["name"], user, made, old or {},
    )  # fmt: skip
    verdict = Admission(surroundings).review(path, request)
    assert verdict.allowed
    found = dict(made["metadata"].get("annotations") or {})
    for each in verdict.patch:
        where = each["path"].removeprefix("/metadata/annotations")
        if where == each["path"]:
            continue
        if not where:
            found = dict(each.get("value") or {})
        elif each["op"] == "remove":
            found.pop(where[1:].replace("~1", "/"), None)
        else:
            found[where[1:].replace("~1", "/")] = each["value"]
    return found


def owned_job(owner: JsonObject, name: str = "nightly-1") -> JsonObject:
    made = gpu_job(name)
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    made["metadata"]["ownerReferences"] = [
        {**reference, "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
    ]
    return made


def noted_cron_job(guarded: GuardedSystem, user: str) -> JsonObject:
    made = cron_job()
    made["metadata"]["annotations"] = reviewed(guarded, MUTATE_OWNERS, user, made)
    return guarded.client.create(JOB_KINDS["CronJob"].resource, made)


def test_jobs_of_a_cron_job_are_of_the_user_who_made_it(guarded: GuardedSystem) -> None:
    owner = noted_cron_job(guarded, "bob")
    assert submitter_of(guarded.cluster.name, owner) == "bob"
    made = owned_job(owner)
    made["metadata"]["annotations"] = reviewed(guarded, MUTATE_JOBS, CONTROLLER, made)
    guarded.client.create(JOB_KINDS["Job"].resource, made)
    assert submitters(guarded) == {"nightly-1": "bob"}


def test_a_user_who_names_the_owner_of_another_user_charges_nothing_to_them(guarded: GuardedSystem) -> None:
    owner = noted_cron_job(guarded, "bob")
    assert reviewed(guarded, MUTATE_JOBS, "mallory", owned_job(owner))[NOTE] == "mallory"
    between: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {**owned_job(owner)["metadata"], "name": "between"},
        "spec": {
            "selector": {"matchLabels": gpu_job()["metadata"]["labels"]},
            "template": {**gpu_job()["spec"]["template"], "metadata": {"labels": gpu_job()["metadata"]["labels"]}},
        },
    }
    between["metadata"]["annotations"] = reviewed(guarded, MUTATE_OWNERS, "mallory", between)
    made = guarded.client.create(REPLICA_SETS, between)
    assert submitter_of(guarded.cluster.name, made) == "mallory"
    assert reviewed(guarded, MUTATE_JOBS, CONTROLLER, owned_job(made))[NOTE] == "mallory", "the nearest owner's"
    elsewhere = owned_job(owner)
    elsewhere["metadata"]["ownerReferences"][0]["uid"] = "of-another-object"
    assert NOTE not in reviewed(guarded, MUTATE_JOBS, CONTROLLER, elsewhere)


def test_the_note_of_an_owner_stays(guarded: GuardedSystem) -> None:
    owner = noted_cron_job(guarded, "bob")
    for written in ({}, {NOTE: "alice"}, {NOTE: "alice", SIGNATURE: "1:x"}):
        edited = {**owner, "metadata": {**owner["metadata"], "annotations": written}}
        assert reviewed(guarded, MUTATE_OWNERS, "bob", edited, owner)[NOTE] == "bob"
    assert NOTE not in reviewed(guarded, MUTATE_OWNERS, CONTROLLER, cron_job(**{NOTE: "alice"}))


def test_an_owner_whose_jobs_are_queued_later_is_of_the_user_who_queues_them(guarded: GuardedSystem) -> None:
    plain = cron_job()
    del plain["spec"]["jobTemplate"]["metadata"]
    assert reviewed(guarded, MUTATE_OWNERS, "alice", plain) == {}
    there = guarded.client.create(JOB_KINDS["CronJob"].resource, plain)
    guarded.advance(3600)
    queued = {**there, "spec": cron_job()["spec"]}
    notes = reviewed(guarded, MUTATE_OWNERS, "bob", queued, there)
    stored = {**queued, "metadata": {**queued["metadata"], "annotations": notes}}
    assert submitter_of(guarded.cluster.name, stored) == "bob"
