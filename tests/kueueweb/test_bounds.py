"""Sizes and sums are bounded as Kubernetes bounds them, whichever way an object comes in."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from accounts.models import Cluster
from queues.models import Workload
from tests.api_client import SchemaClient
from tests.simulated_cluster import job

QUEUE = {"kueue.x-k8s.io/queue-name": "main"}
WORKLOADS = "/api/v1/workloads/"


def send(client: SchemaClient, *documents: dict[str, Any]) -> Any:
    text = "---\n".join(json.dumps(document) + "\n" for document in documents)  # YAML without anchors
    return client.generic("POST", "/api/v1/manifests/", text, content_type="application/yaml")


def a_job(**fields: Any) -> dict[str, Any]:
    found = job("j") | fields
    return found | {"metadata": {"name": "j", "namespace": "team-a", "labels": QUEUE}}


def refusals(answer: Any) -> list[tuple[str, str]]:
    assert answer.status_code == 400, answer.content[:500]
    return [(error["path"], error["reason"]) for error in answer.json()["errors"]]


CPU = "4611686018427387904m"  # 2^62 thousandths: one fits into 64 bits, two do not
CONTAINER = {"name": "c", "image": "i", "resources": {"requests": {"cpu": CPU}}}
POD = {"metadata": {}, "spec": {"restartPolicy": "Never", "containers": [CONTAINER]}}
TOO_MUCH = [
    ("batch/v1", "Job", {"parallelism": 2, "completions": 2, "template": POD}),
    (
        "kubeflow.org/v1",
        "PyTorchJob",
        {
            "pytorchReplicaSpecs": {
                "Master": {"replicas": 1, "template": POD},
                "Worker": {"replicas": 1, "template": POD},
            }
        },
    ),
    (
        "jobset.x-k8s.io/v1alpha2",
        "JobSet",
        {"replicatedJobs": [{"name": "a", "replicas": 2, "template": {"spec": {"template": POD}}}]},
    ),
    (
        "kueue.x-k8s.io/v1beta2",
        "Workload",
        {
            "queueName": "main",
            "podSets": [{"name": "a", "count": 2, "template": {"spec": {"containers": [CONTAINER]}}}],
        },
    ),
]


@pytest.mark.parametrize(
    ("api_version", "kind", "spec"), TOO_MUCH, ids=lambda value: value if isinstance(value, str) else ""
)
def test_no_workload_asks_for_more_than_64_bits(
    bob: SchemaClient, api_version: str, kind: str, spec: dict[str, Any]
) -> None:
    meta = {"name": "j", "namespace": "team-a", "labels": QUEUE}
    answer = send(bob, {"apiVersion": api_version, "kind": kind, "metadata": meta, "spec": spec})
    assert refusals(answer) == [("pod_sets.requests[cpu]", "Invalid")]
    assert not Workload.objects.exists()


def test_nor_over_json(bob: SchemaClient) -> None:
    pod_sets = [{"count": 2**31 - 1, "requests": {"cpu": "9223372036854775"}}]
    body = {"namespace": "team-a", "name": "w", "local_queue": "main", "pod_sets": pod_sets}
    assert refusals(bob.post(WORKLOADS, body)) == [("pod_sets.requests[cpu]", "Invalid")]


def test_nor_by_a_change(bob: SchemaClient) -> None:
    one = a_job(spec={"parallelism": 1, "completions": 1, "template": POD})
    assert send(bob, one).status_code == 200
    two = a_job(spec={"parallelism": 2, "completions": 2, "template": POD})
    assert refusals(send(bob, two)) == [("pod_sets.requests[cpu]", "Invalid")]
    assert Workload.objects.get().pod_sets.get().count == 1


def test_a_deployment_has_so_many_replicas_and_no_more(bob: SchemaClient) -> None:
    """Two billion names of workloads filled the memory before anything was checked."""
    template = {
        "metadata": {"labels": {"app": "x"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    }  # fmt: skip
    spec = {"replicas": 2**31 - 1, "selector": {"matchLabels": {"app": "x"}}, "template": template}
    meta = {"name": "d", "namespace": "team-a", "labels": QUEUE}
    answer = send(bob, {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": spec})
    assert refusals(answer) == [("spec.replicas", "Invalid")]


@pytest.mark.parametrize("value", ["x" * 262_144, "ä" * 131_072])
def test_annotations_are_256_kib_in_all(bob: SchemaClient, alice: SchemaClient, value: str) -> None:
    annotated = a_job()
    annotated["metadata"]["annotations"] = {"a": value}
    inside = a_job()
    inside["spec"]["template"].setdefault("metadata", {})["annotations"] = {"a": value}
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "q", "annotations": {"a": value}},
        "spec": {},
    }
    workload = {
        "namespace": "team-a", "name": "w", "local_queue": "main", "annotations": {"a": value},
        "pod_sets": [{"count": 1, "requests": {"cpu": "1"}}],
    }  # fmt: skip
    assert refusals(send(bob, annotated)) == [("metadata.annotations", "TooLong")]
    assert refusals(send(bob, inside)) == [("spec.template.metadata.annotations", "TooLong")]
    assert refusals(send(alice, queue)) == [("metadata.annotations", "TooLong")]
    assert refusals(bob.post(WORKLOADS, workload)) == [("annotations", "TooLong")]


def test_an_object_has_a_mebibyte_and_a_half(bob: SchemaClient) -> None:
    large = a_job()
    large["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * (3 * 2**19)]
    assert refusals(send(bob, large)) == [("", "TooLong")]
    answer = bob.generic("POST", WORKLOADS, orjson.dumps([a_job(), large]).decode(), content_type="application/json")
    assert refusals(answer) == [("", "TooLong")]
    assert answer.json()["errors"][0]["document"] == 1
    large["spec"]["template"]["spec"]["containers"][0]["args"] = ["x" * 2**20]
    assert send(bob, large).status_code == 200


@pytest.mark.parametrize(
    ("where", "value", "path"),
    [
        ("name", "x" * 254, "metadata.name"),
        ("labels", QUEUE | {"a": "x" * 64}, "metadata.labels[a]"),
        ("labels", QUEUE | {"x" * 64: "a"}, f"metadata.labels[{'x' * 64}]"),
        ("annotations", {"x" * 64: "a"}, f"metadata.annotations[{'x' * 64}]"),
    ],
)
def test_names_and_labels_are_short(bob: SchemaClient, where: str, value: Any, path: str) -> None:
    long = a_job()
    long["metadata"][where] = value
    assert [found for found, _ in refusals(send(bob, long))] == [path]


def test_what_fits_is_taken(bob: SchemaClient, cluster: Cluster) -> None:
    assert send(bob, a_job(spec={"parallelism": 1, "completions": 1, "template": POD})).status_code == 200
