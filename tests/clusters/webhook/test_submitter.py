"""The owner of a job of kubectl: the user that the API server named, and never one that a tenant names."""

from __future__ import annotations

from typing import Any

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.registry import JOB_KINDS
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
    notes = notes_of(guarded)
    assert guarded.kubectl.patch("Job", "train", {"metadata": {"annotations": {NOTE: "alice"}}}).code == 200
    assert notes_of(guarded) == notes


def test_an_operator_may_give_a_job_the_annotations_of_another(guarded: GuardedSystem) -> None:
    """KubeRay copies the annotations of a RayService to its RayCluster. The note of another job is dropped."""
    for name in ("service", "cluster"):
        guarded.kubectl.create(gpu_job(name))
    guarded.client.create(JOB_KINDS["Job"].resource, gpu_job("of-before", suspend=True))
    copied, own = notes_of(guarded, "service"), notes_of(guarded, "cluster")
    for name in ("cluster", "of-before"):
        assert guarded.kubectl.patch("Job", name, {"metadata": {"annotations": copied}}).code == 200
    assert (notes_of(guarded, "cluster"), notes_of(guarded, "of-before")) == (own, {})


def test_a_job_is_of_the_user_who_queues_it_later(guarded: GuardedSystem) -> None:
    """Such a user is not spared the limits by user."""
    unqueued = gpu_job(suspend=True)
    queue = unqueued["metadata"]["labels"].pop(QUEUE)
    guarded.kubectl.create(unqueued)
    assert notes_of(guarded) == {}
    guarded.advance(600)
    assert guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {QUEUE: queue}}}).code == 200
    assert submitters(guarded) == {"train": USER}


def test_a_note_that_no_webhook_saw_is_written_over_when_the_job_is_queued(guarded: GuardedSystem) -> None:
    """Made while the webhook was down, where nothing is refused without a queue's name; queued when it is back."""
    guarded.kubectl.create(gpu_job("theirs"))
    copied = {**notes_of(guarded, "theirs"), NOTE: "alice"}
    guarded.take_down()
    forged = annotated(gpu_job(suspend=True), **copied)
    queue = forged["metadata"]["labels"].pop(QUEUE)
    assert guarded.kubectl.create(forged).code == 201
    guarded.bring_up()
    assert guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {QUEUE: queue}}}).code == 200
    assert submitters(guarded) == {"theirs": USER, "train": USER}


def test_a_note_that_an_edit_leaves_out_is_put_back(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_job())
    notes = notes_of(guarded)
    for gone in ({NOTE: None}, {SIGNATURE: None}, {NOTE: None, SIGNATURE: None}):
        assert guarded.kubectl.patch("Job", "train", {"metadata": {"annotations": gone}}).code == 200
        assert notes_of(guarded) == notes
    jobs = JOB_KINDS["Job"].resource
    replaced = guarded.kubectl.get(jobs, "train")
    del replaced["metadata"]["annotations"], replaced["metadata"]["uid"]
    assert guarded.kubectl.call("PUT", jobs.path("team", "train"), replaced).code == 200
    assert submitters(guarded) == {"train": USER}


def test_a_job_of_before_the_webhook_stays_without_a_user(guarded: GuardedSystem) -> None:
    """Its editor did not submit it."""
    guarded.client.create(JOB_KINDS["Job"].resource, gpu_job(suspend=True))
    assert guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {"example.com/edited": "true"}}}).code == 200
    assert notes_of(guarded) == {}
    assert submitters(guarded) == {"train": ""}


@pytest.mark.parametrize("label", [{}, {"labels": {QUEUE: None}}], ids=["queued", "taken-out"])
def test_a_pod_keeps_its_note(guarded: GuardedSystem, label: JsonObject) -> None:
    guarded.kubectl.create(gpu_pod("alone"))
    changed = guarded.kubectl.patch("Pod", "alone", {"metadata": {"annotations": {NOTE: None}, **label}})
    assert (changed.code, changed.body["details"]["causes"][0]["field"]) == (403, f"metadata.annotations[{NOTE}]")
    assert submitters(guarded) == {"alone": USER}


def test_a_pod_that_waits_is_put_into_a_queue_by_its_submitter_only(guarded: GuardedSystem) -> None:
    pod = gpu_pod("alone")
    queue = pod["metadata"]["labels"].pop(QUEUE)
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    assert guarded.kubectl.create(pod).code == 201
    queued = {"metadata": {"labels": {QUEUE: queue}}}
    refused = guarded.kubectl.as_user("bob").patch("Pod", "alone", queued)
    assert (refused.code, refused.body["details"]["causes"][0]["field"]) == (403, f"metadata.labels[{QUEUE}]")
    assert submitters(guarded) == {}
    assert guarded.kubectl.patch("Pod", "alone", queued).code == 200
    assert submitters(guarded) == {"alone": USER}


def test_a_pod_that_waits_enters_no_queue_without_a_user(guarded: GuardedSystem) -> None:
    """Such a user would evade the limits by user. The webhook did not see the pod's creation."""
    pod = gpu_pod("alone")
    queue = pod["metadata"]["labels"].pop(QUEUE)
    pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
    guarded.client.create(JOB_KINDS["Pod"].resource, pod)
    named = guarded.kubectl.patch("Pod", "alone", {"metadata": {"labels": {QUEUE: queue}}})
    assert (named.code, named.body["details"]["causes"][0]["field"]) == (403, f"metadata.labels[{QUEUE}]")
    assert submitters(guarded) == {}


def test_a_pod_may_leave_a_queue_and_return(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_pod("alone"))
    queue = guarded.kubectl.get(JOB_KINDS["Pod"].resource, "alone")["metadata"]["labels"][QUEUE]
    for name in (None, queue):
        guarded.kubectl.patch("Pod", "alone", {"metadata": {"labels": {QUEUE: name}}})
    assert submitters(guarded) == {"alone": USER}


def test_a_pod_takes_no_note_of_another_pod(guarded: GuardedSystem) -> None:
    """Notes of new objects are signed for the prefix of their name: a pod of the same prefix could use a copy."""
    pods = JOB_KINDS["Pod"].resource
    made = []
    for gated in (False, True):
        pod = gpu_pod("alone")
        pod["metadata"]["generateName"] = pod["metadata"].pop("name") + "-"
        if gated:
            del pod["metadata"]["labels"][QUEUE]
            pod["spec"]["schedulingGates"] = [{"name": "kueue.x-k8s.io/admission"}]
        answer = guarded.kubectl.create(pod)
        assert answer.code == 201, answer.body
        made.append(answer.body["metadata"]["name"])
    notes = guarded.kubectl.get(pods, made[0])["metadata"]["annotations"]
    copied = {key: notes[key] for key in (NOTE, SIGNATURE)}
    assert guarded.kubectl.patch("Pod", made[1], {"metadata": {"annotations": copied}}).code == 403


def test_an_invalid_note_can_be_removed(guarded: GuardedSystem) -> None:
    guarded.client.create(JOB_KINDS["Job"].resource, annotated(gpu_job(), **{NOTE: "alice", SIGNATURE: "1:x"}))
    gone = {"metadata": {"annotations": {NOTE: None, SIGNATURE: None}}}
    assert guarded.kubectl.patch("Job", "train", gone).code == 200
    assert notes_of(guarded) == {}


def test_a_note_by_uid_on_another_job_says_nothing(guarded: GuardedSystem) -> None:
    unqueued = gpu_job("first", suspend=True)
    queue = unqueued["metadata"]["labels"].pop(QUEUE)
    guarded.kubectl.create(unqueued)
    guarded.kubectl.patch("Job", "first", {"metadata": {"labels": {QUEUE: queue}}})
    made = annotated(gpu_job("second"), **notes_of(guarded, "first"))
    guarded.client.create(JOB_KINDS["Job"].resource, made)
    assert submitters(guarded) == {"first": USER, "second": ""}


def test_a_note_of_before_the_key_changed_counts(guarded: GuardedSystem, settings: Any) -> None:
    guarded.kubectl.create(gpu_job())
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "another", [settings.SECRET_KEY]
    assert submitters(guarded) == {"train": USER}


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
