"""`integrations.frameworks`, `manageJobsWithoutQueueName` and `managedJobsNamespaceSelector` of the Configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping

import pytest
from django.contrib.auth.models import User

from accounts.kinds.frameworks import FRAMEWORKS, SPARK, disabled_frameworks, framework_name
from clusters.api_objects import NAMESPACES
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.jobs.registry import KINDS
from clusters.webhook.admission import MUTATE_JOBS, Admission
from clusters.webhook.reviews import AdmissionRequest
from foundation.exceptions import ManifestErrors
from queues.manifests.kueue_keys import QUEUE_NAME
from queues.models import LocalQueue, Workload
from tests.clusters.group_pods import gpu_pod
from tests.clusters.system import System, gpu_job
from tests.clusters.webhook.served import FixedSurroundings
from tests.users import client_of

CONFIGURATION = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team", "labels": {"managed": "yes"}}}


def unnamed_job() -> dict[str, object]:
    job = gpu_job()
    job["metadata"]["labels"] = {}
    return job


def suspends(configuration: Mapping[str, object], job: dict[str, object]) -> bool:
    """Whether the webhook suspends a new job."""
    admission = Admission(FixedSurroundings(job_context(configuration, ObjectStore([NAMESPACE]))))
    request = AdmissionRequest("1", "CREATE", "batch/v1", "Job", "team", "train", "alice", copy.deepcopy(job), {})
    return {"op": "add", "path": "/spec/suspend", "value": True} in admission.review(MUTATE_JOBS, request).patch


def test_every_kind_with_an_integration_has_the_name_that_the_configuration_knows() -> None:
    assert {framework_name(*key) for key in KINDS} == FRAMEWORKS
    assert {"batch/job", "pod", "kubeflow.org/pytorchjob", "ray.io/rayjob", SPARK} <= FRAMEWORKS


def test_the_webhook_leaves_kinds_alone_that_are_switched_off() -> None:
    assert suspends({}, gpu_job())
    assert suspends({"integrations": {"frameworks": ["batch/job"]}}, gpu_job())
    assert not suspends({"integrations": {"frameworks": ["pod"]}}, gpu_job())


def test_jobs_without_a_queue_are_suspended_where_that_is_asked_for_and_the_namespace_is_managed() -> None:
    asked = {"manageJobsWithoutQueueName": True}
    assert not suspends({}, unnamed_job())
    assert suspends(asked, unnamed_job())
    assert suspends({**asked, "managedJobsNamespaceSelector": {"matchLabels": {"managed": "yes"}}}, unnamed_job())
    others = {"matchExpressions": [{"key": "managed", "operator": "NotIn", "values": ["yes"]}]}
    assert not suspends({**asked, "managedJobsNamespaceSelector": others}, unnamed_job())


@pytest.mark.parametrize("kind", ["statefulset", "deployment", "leaderworkerset.x-k8s.io/leaderworkerset"])
def test_a_kind_whose_pods_are_gated_switches_the_gating_of_pods_on(kind: str) -> None:
    """As in Kueue, whose Configuration need not name `pod` then."""
    configuration = {"integrations": {"frameworks": [kind]}}
    context = job_context(configuration, ObjectStore([NAMESPACE]))
    assert context.is_enabled({"apiVersion": "v1", "kind": "Pod"})
    assert not context.is_enabled({"apiVersion": "batch/v1", "kind": "Job"})
    assert "pod" not in disabled_frameworks(configuration)


def test_a_job_of_a_framework_that_others_manage_is_left_to_them() -> None:
    """Its owner has the Workload, which another controller makes."""
    owner = {"apiVersion": "example.com/v1", "kind": "Foo", "name": "foo", "uid": "f", "controller": True}
    child = gpu_job()
    child["metadata"]["ownerReferences"] = [owner]
    foo = {
        "apiVersion": "example.com/v1",
        "kind": "Foo.v1.example.com",
        "metadata": {"name": "foo", "namespace": "team", "uid": "f", "labels": {QUEUE_NAME: "queue"}},
    }

    def suspended(configuration: Mapping[str, object]) -> bool:
        admission = Admission(FixedSurroundings(job_context(configuration, ObjectStore([NAMESPACE, foo]))))
        request = AdmissionRequest("1", "CREATE", "batch/v1", "Job", "team", "train", "alice", copy.deepcopy(child), {})
        return {"op": "add", "path": "/spec/suspend", "value": True} in admission.review(MUTATE_JOBS, request).patch

    assert suspended({})
    assert not suspended({"integrations": {"externalFrameworks": ["Foo.v1.example.com"]}})


def test_without_a_list_nothing_is_switched_off() -> None:
    assert disabled_frameworks({}) == []
    assert "batch/job" in disabled_frameworks({"integrations": {"frameworks": ["pod"]}})


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("frameworks", "rule"),
    [
        ("[batch/jobs]", 'Unsupported value: "batch/jobs"'),
        (
            "[sparkoperator.k8s.io/sparkapplication]",
            f'"{SPARK}" requires the feature gate SparkApplicationIntegration, which is off',
        ),
    ],
)
def test_a_wrong_list_is_refused_at_its_field(system: System, frameworks: str, rule: str) -> None:
    with pytest.raises(ManifestErrors) as refusal:
        system.apply_text(f"{CONFIGURATION}integrations: {{frameworks: {frameworks}}}\n")
    [mistake] = refusal.value.errors
    assert (mistake.path, mistake.rule) == ("integrations.frameworks", rule)


@pytest.mark.django_db(transaction=True)
def test_apply_rest_and_watcher_take_no_job_of_a_kind_that_is_switched_off(system: System) -> None:
    system.apply_text(f"{CONFIGURATION}integrations: {{frameworks: [pod]}}\n")
    system.cluster.refresh_from_db()
    with pytest.raises(ManifestErrors) as refusal:
        system.apply(gpu_job())
    assert 'does not name "batch/job"' in refusal.value.errors[0].rule
    answer = client_of(User.objects.create_user("root", is_superuser=True)).post(
        "/api/v1/workloads/", [gpu_pod("alone"), gpu_job()], format="json"
    )
    [mistake] = answer.json()["errors"]
    assert (answer.status_code, mistake["document"], mistake["path"], mistake["reason"]) == (
        400, 1, "kind", "NotSupported",
    )  # fmt: skip
    assert 'does not name "batch/job"' in mistake["rule"]
    system.client.create(NAMESPACES, NAMESPACE)
    system.client.create(KINDS["batch/v1", "Job"].resource, gpu_job())
    system.watcher.resync()
    assert not Workload.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_the_watcher_finds_what_the_webhook_missed(system: System) -> None:
    """A job without a queue, made while the webhook was down in a namespace with a default queue, is suspended; one
    from before the queue goes on."""
    jobs = KINDS["batch/v1", "Job"].resource
    system.client.create(NAMESPACES, NAMESPACE)
    system.client.create(jobs, unnamed_job() | {"metadata": {"name": "older", "namespace": "team"}})
    system.advance(60)
    system.apply_text(
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: default, namespace: team}\n"
        "spec: {clusterQueue: team-queue}\n"
    )
    LocalQueue.objects.filter(name="default").update(created_at=system.moment())
    system.advance(1)
    system.client.create(jobs, unnamed_job())
    system.watcher.resync()
    assert [row.job.name for row in Workload.objects.select_related("job") if row.job] == ["train"]
    system.push()
    there = {job["metadata"]["name"]: job for job in system.client.list(jobs).items}
    assert there["older"]["spec"].get("suspend") is not True
    assert there["train"]["spec"]["suspend"] is True
