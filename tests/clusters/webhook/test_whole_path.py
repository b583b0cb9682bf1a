"""The whole path: kubectl, an API server that asks the webhook, watcher, scheduler, push, operators, pods."""

from __future__ import annotations

import pytest

from clusters.api_objects import JsonObject
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import annotations_of
from clusters.jobs.registry import JOB_KINDS
from queues.models import Workload
from scheduling.model.vocabulary import WorkloadStatus
from tests.clusters.group_pods import gpu_pod
from tests.clusters.operated_jobs import KINDS, operated_job
from tests.clusters.system import deployment, gpu_job
from tests.clusters.test_pods_that_wait import leader_worker_set, stateful_set
from tests.clusters.webhook.conftest import GuardedSystem

pytestmark = pytest.mark.django_db(transaction=True)

QUEUE = "kueue.x-k8s.io/queue-name"
GROUP = "kueue.x-k8s.io/pod-group-name"
PRIORITY_CLASS = "kueue.x-k8s.io/priority-class"
EXECUTION_SECONDS = "kueue.x-k8s.io/max-exec-time-seconds"


def gates(pod: JsonObject) -> set[str]:
    return {gate["name"] for gate in pod["spec"].get("schedulingGates") or ()}


@pytest.mark.parametrize("kind", ["Job", *KINDS])
def test_a_job_that_is_created_running_waits_for_its_admission_and_runs(guarded: GuardedSystem, kind: str) -> None:
    rules, job = JOB_KINDS[kind], gpu_job() if kind == "Job" else operated_job(kind)
    if kind != "Job":
        guarded.install_operator(kind)
    assert guarded.kubectl.create(job).code == 201
    assert rules.is_suspended(guarded.kubectl.get(rules.resource, "train"))
    guarded.advance(5)
    assert guarded.pods() == [], "no pod before the admission"
    refuse_to_start(guarded, rules)
    guarded.watcher.resync()
    guarded.turn()
    guarded.turn()
    assert not rules.is_suspended(guarded.kubectl.get(rules.resource, "train"))
    workload = guarded.workload("train")
    assert workload.status == WorkloadStatus.ADMITTED
    assert len(guarded.pods()) == sum(pod_set.count for pod_set in workload.pod_sets.all())
    for _ in range(9):
        guarded.turn(10)
    workload.refresh_from_db()
    assert (workload.status == WorkloadStatus.FINISHED) is not rules.serves


def refuse_to_start(guarded: GuardedSystem, rules: JobKind) -> None:
    """Nobody but its admission starts a job."""
    started = guarded.kubectl.get(rules.resource, "train")
    rules.resume(started)
    refusal = guarded.kubectl.call("PUT", rules.resource.path("team", "train"), started)
    assert (refusal.code, refusal.body["reason"]) == (403, "Forbidden")
    [cause] = refusal.body["details"]["causes"]
    assert (cause["reason"], cause["field"]) == ("FieldValueForbidden", ".".join(rules.suspend_path))


def test_taking_the_queue_away_is_no_way_around_the_admission(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_job())
    guarded.watcher.resync()
    assert guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {QUEUE: None}}}).code == 200
    refusal = guarded.kubectl.patch("Job", "train", {"spec": {"suspend": False}})
    assert (refusal.code, guarded.pods()) == (403, [])


def test_an_edit_that_breaks_a_rule_of_kueue_is_forbidden_with_its_fields(guarded: GuardedSystem) -> None:
    """The answer that clients of Kueue's own webhooks look for."""
    job = gpu_job()
    job["metadata"]["labels"][PRIORITY_CLASS] = "low"
    guarded.kubectl.create(job)
    denied = 'admission webhook "queued.jobs.admission.kueueweb.io" denied the request: '
    priority = f'metadata.labels[{PRIORITY_CLASS}]: Invalid value: "": WorkloadPriorityClass cannot be removed'
    refusal = guarded.kubectl.patch("Job", "train", {"metadata": {"labels": {PRIORITY_CLASS: None}}})
    assert (refusal.code, refusal.body["reason"]) == (403, "Forbidden")
    assert refusal.message == f"{denied}{priority} from a workload"
    labels = {PRIORITY_CLASS: None, EXECUTION_SECONDS: "soon"}
    both = guarded.kubectl.patch("Job", "train", {"metadata": {"labels": labels}})
    assert both.message.startswith(f'{denied}[metadata.labels[{EXECUTION_SECONDS}]: Invalid value: "soon": ')
    assert both.message.endswith(f", {priority} from a workload]")


def test_a_job_that_is_admitted_may_be_resumed_by_its_owner(guarded: GuardedSystem) -> None:
    guarded.kubectl.create(gpu_job())
    guarded.watcher.resync()
    guarded.turn()
    assert guarded.kubectl.patch("Job", "train", {"spec": {"suspend": True}}).code == 200
    assert guarded.kubectl.patch("Job", "train", {"spec": {"suspend": False}}).code == 200


def test_a_pod_waits_at_its_gates_and_is_completed_as_hami_does(guarded: GuardedSystem) -> None:
    manifest = gpu_pod("alone")
    manifest["spec"]["containers"][0]["resources"]["limits"] = {"nvidia.com/gpumem": "4000"}
    assert guarded.kubectl.create(manifest).code == 201
    [pod] = guarded.pods()
    assert gates(pod) == {"kueue.x-k8s.io/admission", "kueue.x-k8s.io/topology"}
    assert pod["spec"]["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] == 1
    assert pod["metadata"]["labels"]["hami.io/webhook"] == "ignore"
    freed = guarded.kubectl.patch("Pod", "alone", {"spec": {"schedulingGates": []}})
    assert freed.code == 403
    assert freed.body["details"]["causes"][0]["field"] == "spec.schedulingGates"
    guarded.watcher.resync()
    for _ in range(3):
        guarded.turn()
    [pod] = guarded.pods()
    assert (gates(pod), pod["status"]["phase"]) == (set(), "Running")


def test_a_privileged_pod_with_devices_is_refused_with_the_field(guarded: GuardedSystem) -> None:
    manifest = gpu_pod("greedy")
    manifest["spec"]["containers"][0]["securityContext"] = {"privileged": True}
    refusal = guarded.kubectl.create(manifest)
    assert (refusal.code, guarded.pods()) == (403, [])
    assert "privileged" in refusal.body["details"]["causes"][0]["field"]


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet"])
def test_no_pod_of_a_serving_kind_runs_before_its_admission(guarded: GuardedSystem, kind: str) -> None:
    manifest = deployment(2) if kind == "Deployment" else stateful_set(2)
    assert guarded.kubectl.create(manifest).code == 201
    guarded.advance(5)
    pods = guarded.pods()
    assert pods
    assert all("kueue.x-k8s.io/admission" in gates(pod) for pod in pods)
    assert not any(pod["spec"].get("nodeName") for pod in pods)
    for _ in range(8):
        guarded.watcher.resync()
        guarded.turn()
    assert [pod["status"]["phase"] for pod in guarded.pods()] == ["Running", "Running"]
    assert {row.status for row in Workload.objects.exclude(status=WorkloadStatus.FINISHED)} == {WorkloadStatus.ADMITTED}


@pytest.mark.parametrize("kind", ["StatefulSet", "LeaderWorkerSet"])
def test_pods_of_a_submitted_set_that_its_owner_edits_name_its_workload(guarded: GuardedSystem, kind: str) -> None:
    """The webhook marks the set when kubectl edits it; its workload was named before the cluster gave it a uid."""
    manifest = stateful_set(2) if kind == "StatefulSet" else leader_worker_set(2)
    if kind == "LeaderWorkerSet":
        guarded.install_operator(kind)
    guarded.apply(manifest)
    for _ in range(4):
        guarded.turn()
    names = set(Workload.objects.values_list("name", flat=True))
    edited = guarded.kubectl.patch(kind, manifest["metadata"]["name"], {"metadata": {"annotations": {"note": "seen"}}})
    assert edited.code == 200
    for _ in range(10):
        guarded.turn()
    assert {annotations_of(pod).get(GROUP) for pod in guarded.pods()} == names
    assert {pod["status"]["phase"] for pod in guarded.pods()} == {"Running"}


def test_a_job_without_a_queue_gets_the_default_one(guarded: GuardedSystem) -> None:
    guarded.apply(
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue",
            "metadata": {"name": "default", "namespace": "team"},
            "spec": {"clusterQueue": "team-queue"},
        }
    )
    job = gpu_job()
    del job["metadata"]["labels"]
    assert guarded.kubectl.create(job).code == 201
    kept = guarded.kubectl.get(JOB_KINDS["Job"].resource, "train")
    assert (kept["metadata"]["labels"][QUEUE], kept["spec"]["suspend"]) == ("default", True)


def test_while_the_webhook_is_down_what_names_a_queue_is_refused_and_the_rest_is_let_through(
    guarded: GuardedSystem,
) -> None:
    guarded.kubectl.create(gpu_job("before"))
    guarded.take_down()
    refusal = guarded.kubectl.create(gpu_job("meanwhile"))
    assert (refusal.code, refusal.body["reason"]) == (500, "InternalError")
    assert 'failed calling webhook "queued.jobs.admission.kueueweb.io"' in refusal.message
    free = gpu_job("free")
    del free["metadata"]["labels"]
    assert guarded.kubectl.create(free).code == 201
    assert guarded.kubectl.patch("Job", "before", {"spec": {"suspend": False}}).code == 500
    assert {pod["metadata"]["labels"]["job-name"] for pod in guarded.pods()} == {"free"}
    guarded.bring_up()
    assert guarded.kubectl.create(gpu_job("meanwhile")).code == 201
    guarded.watcher.resync()
    for _ in range(9):
        guarded.turn(10)
    ends = {row.job.name: row.reason for row in Workload.objects.select_related("job") if row.job is not None}
    assert ends == {"before": "Succeeded", "meanwhile": "Succeeded"}


def test_pods_that_a_controller_could_not_make_meanwhile_come_when_the_webhook_is_back(guarded: GuardedSystem) -> None:
    assert guarded.kubectl.create(deployment(1)).code == 201
    [pod] = guarded.pods()
    path = JOB_KINDS["Pod"].resource.path("team", pod["metadata"]["name"])
    guarded.client.patch(JOB_KINDS["Pod"].resource, "team", pod["metadata"]["name"], {"metadata": {"finalizers": []}})
    guarded.take_down()
    assert guarded.kubectl.call("DELETE", path).code == 200
    guarded.advance(30)
    assert guarded.pods() == [], "closed: a pod with a queue's name is not made"
    guarded.bring_up()
    guarded.advance(30)
    [pod] = guarded.pods()
    assert "kueue.x-k8s.io/admission" in gates(pod)


def test_nothing_is_asked_of_what_we_write_and_of_where_others_decide(guarded: GuardedSystem) -> None:
    assert guarded.client.create(JOB_KINDS["Job"].resource, gpu_job("ours"))["spec"].get("suspend") is not True
    guarded.cluster.mode = "observe"
    guarded.cluster.save()
    guarded.kubectl.create(gpu_job("theirs"))
    assert guarded.kubectl.get(JOB_KINDS["Job"].resource, "theirs")["spec"].get("suspend") is not True
