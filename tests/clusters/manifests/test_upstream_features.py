"""What the examples of Kueue, HAMi and Volcano use, in examples of our own: taken, or refused with what to do."""

from __future__ import annotations

from typing import Any, Final

import orjson
import pytest

from clusters.api_objects import JsonObject
from clusters.manifests.read import read_objects
from foundation.exceptions import ManifestErrors
from queues.manifests.documents import read_documents
from tests.clusters.every_kind import jobs_of, with_values
from tests.clusters.operated_jobs import operated_job, template

KUEUE: Final = "kueue.x-k8s.io"
BLOCK, RACK = "cloud.provider.com/topology-block", "cloud.provider.com/topology-rack"


def noted(kind: str, **annotations: str) -> JsonObject:
    """A job of the kind; its pods have these annotations of Kueue."""
    (job,) = jobs_of(kind, "train")
    told = {f"{KUEUE}/{name.replace('_', '-')}": value for name, value in annotations.items()}
    found: JsonObject = with_values(job, {"annotations": told})
    return found


def wrapped(*components: JsonObject) -> JsonObject:
    """An AppWrapper of these."""
    return {**operated_job("AppWrapper"), "spec": {"components": list(components)}}


def elastic(kind: str, **spec: Any) -> JsonObject:
    """A job that may scale."""
    job = operated_job(kind)
    job["metadata"]["annotations"] = {f"{KUEUE}/elastic-job": "true"}
    return {**job, "spec": {**job["spec"], **spec}}


def lws_component() -> JsonObject:
    """With the pod sets that its author counts."""
    (lws,) = jobs_of("LeaderWorkerSet", "llm")
    under = "template.spec.leaderWorkerTemplate"
    pod_sets = [
        {"path": f"{under}.leaderTemplate", "replicas": 1}, {"path": f"{under}.workerTemplate", "replicas": 2},
    ]  # fmt: skip
    return {"podSets": pod_sets, "template": {**lws, "metadata": {"name": "llm"}}}


def scaling_ray_job() -> JsonObject:
    cluster = {**operated_job("RayJob")["spec"]["rayClusterSpec"], "enableInTreeAutoscaling": True}
    workers = [{**group, "minReplicas": 1, "maxReplicas": 5} for group in cluster["workerGroupSpecs"]]
    return elastic("RayJob", rayClusterSpec={**cluster, "workerGroupSpecs": workers})


TAKEN: Final[dict[str, JsonObject]] = {
    "a JobSet in one rack": noted("JobSet", podset_required_topology=RACK),
    "a JobSet in slices": noted("JobSet", podset_slice_required_topology=RACK, podset_slice_size="1"),
    "a JobSet in slices of one block": noted(
        "JobSet", podset_required_topology=BLOCK, podset_slice_required_topology=RACK, podset_slice_size="1"
    ),
    "a leader beside its workers": noted(
        "LeaderWorkerSet", podset_required_topology=RACK, podset_group_name="group-of-one-rack"
    ),
    "an MPIJob in one block": noted("MPIJob", podset_preferred_topology=BLOCK),
    "a wrapped PyTorchJob": wrapped({"template": {**operated_job("PyTorchJob"), "metadata": {"name": "inner"}}}),
    "a wrapped Deployment": wrapped(
        {
            "podSets": [{"path": "template.spec.template", "replicas": 2}],
            "template": {
                "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "inner"},
                "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "train"}}, "template": template()},
            },
        }
    ),
    "a wrapped LeaderWorkerSet": wrapped(lws_component()),
    "an elastic RayCluster": elastic("RayCluster"),
    "a RayJob that scales itself": scaling_ray_job(),
    "a CronJob": jobs_of("CronJob", "nightly")[0],
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_a_feature_is_taken(name: str) -> None:
    (found,) = read_objects(read_documents(orjson.dumps(TAKEN[name]).decode()))[0]
    assert found.kind.name == TAKEN[name]["kind"]


REFUSED: Final = {
    ("batch.volcano.sh/v1alpha1", "CronJob"): ("CronJob of Volcano", "CronJob of batch/v1"),
    ("scheduling.volcano.sh/v1beta1", "PodGroup"): ("PodGroup of Volcano", "pod-group-total-count"),
    ("flow.volcano.sh/v1alpha1", "JobTemplate"): ("JobTemplate of Volcano", "together with a JobFlow"),
    ("apps/v1", "ReplicaSet"): ("ReplicaSet of Kubernetes", "Deployment"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"): ("HorizontalPodAutoscaler of Kubernetes", "kubectl"),
    ("argoproj.io/v1alpha1", "Workflow"): ("argoproj.io/v1alpha1 Workflow", "label its pods"),
    ("tekton.dev/v1", "PipelineRun"): ("tekton.dev/v1 PipelineRun", "label its pods"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"): ("ValidatingAdmissionPolicy", "Leave it out"),
    ("kind.x-k8s.io/v1alpha4", "Cluster"): ("kind.x-k8s.io/v1alpha4 Cluster", "Leave it out"),
}


@pytest.mark.parametrize(("api_version", "kind"), REFUSED)
def test_a_kind_that_is_not_ours_is_refused_with_what_to_do(api_version: str, kind: str) -> None:
    text = orjson.dumps({"apiVersion": api_version, "kind": kind, "metadata": {"name": "theirs"}, "spec": {}}).decode()
    with pytest.raises(ManifestErrors) as refusal:
        read_objects(read_documents(text))
    (mistake,) = refusal.value.errors
    rule, remedy = REFUSED[api_version, kind]
    assert mistake.path == "kind"
    assert mistake.rule.startswith("Unsupported value: ")
    assert rule in mistake.rule
    assert remedy in mistake.remedy


@pytest.mark.parametrize("part", ["metadata.name", "spec.containers[0].name"])
def test_a_name_that_kubernetes_refuses_is_refused_at_its_field(part: str) -> None:
    """As in HAMi's examples of one vendor."""
    (pod,) = jobs_of("Pod", "BI-V150" if part == "metadata.name" else "pod")
    if part != "metadata.name":
        pod["spec"]["containers"][0]["name"] = "BI-V150"
    with pytest.raises(ManifestErrors) as refusal:
        read_objects(read_documents(orjson.dumps(pod).decode()))
    assert part in {mistake.path for mistake in refusal.value.errors}


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [("v1", "PersistentVolumeClaim"), ("v1", "ConfigMap"), ("resource.k8s.io/v1", "ResourceClaimTemplate")],
)
def test_what_stands_beside_a_job_is_passed_by_and_named(api_version: str, kind: str) -> None:
    """A claim of storage in one file with its Deployment."""
    claim = {"apiVersion": api_version, "kind": kind, "metadata": {"name": "models"}}
    (deployment,) = jobs_of("Deployment", "serve")
    objects, skipped = read_objects(read_documents(b"\n---\n".join(map(orjson.dumps, (claim, deployment))).decode()))
    assert [found.kind.name for found in objects] == ["Deployment"]
    assert [mistake.value for mistake in skipped] == [kind]
