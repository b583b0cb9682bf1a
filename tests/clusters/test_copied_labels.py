"""Labels and annotations that workloads take over from jobs and pods, as the Configuration names them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.manifests import apply_manifests
from queues.models import Workload
from tests.clusters.served_cluster import ServedCluster, configure
from tests.simulated_cluster import ServerThread, job, make_simulated

pytestmark = pytest.mark.django_db(transaction=True)

CONFIGURATION = """apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
featureGates: {CustomMetricLabels: true}
integrations: {labelKeysToCopy: [team]}
metrics:
  customLabels:
  - {name: cost, sourceLabelKey: cost-center, sourceKind: Workload, trackedValues: [r-and-d]}
  - {name: grant, sourceAnnotationKey: example.com/grant, sourceKind: Workload, trackedValues: [dfg]}
"""
QUEUE = {"kueue.x-k8s.io/queue-name": "local"}
GROUP = "kueue.x-k8s.io/pod-group-name"
GROUP_SIZE = "kueue.x-k8s.io/pod-group-total-count"


@pytest.fixture
def served() -> Iterator[ServedCluster]:
    with ServerThread(make_simulated()) as server:
        cluster = ServedCluster(server)
        configure(cluster)
        apply_manifests(Cluster.objects.get(pk=cluster.cluster.pk), CONFIGURATION.encode(), user=None)
        cluster.settle()
        yield cluster


def create_pod(served: ServedCluster, name: str, labels: dict[str, str], annotations: dict[str, str]) -> None:
    """A pod of a group of two, as Kueue's webhook leaves it."""
    metadata = {
        "name": name,
        "namespace": "team",
        "labels": {**QUEUE, GROUP: "group", "kueue.x-k8s.io/managed": "true", "ignored": name, **labels},
        "annotations": {GROUP_SIZE: "2", "ignored": name, **annotations},
    }
    spec: JsonObject = {
        "containers": [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}],
        "schedulingGates": [{"name": "kueue.x-k8s.io/admission"}],
    }
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    served.send("POST", "/api/v1/namespaces/team/pods", pod)


def test_a_workload_has_the_labels_and_annotations_of_its_job_that_are_named(served: ServedCluster) -> None:
    manifest = job("train", run_seconds=600, suspend=True, requests={"cpu": "1"})
    manifest["metadata"] = {
        "name": "train",
        "namespace": "team",
        "labels": {**QUEUE, "team": "vision", "cost-center": "r-and-d", "ignored": "yes"},
        "annotations": {"example.com/grant": "dfg", "ignored": "yes"},
    }
    served.send("POST", "/apis/batch/v1/namespaces/team/jobs", manifest)
    served.settle()
    metadata = served.get("Workload", Workload.objects.get().name, "team")["metadata"]
    labels, annotations = metadata["labels"], metadata["annotations"]
    assert (labels["team"], labels["cost-center"], annotations["example.com/grant"]) == ("vision", "r-and-d", "dfg")
    assert "ignored" not in labels
    assert "ignored" not in annotations


def test_a_stateful_set_hands_nothing_over(served: ServedCluster) -> None:
    """Kueue copies no keys to the workloads of StatefulSets."""
    metadata = {
        "name": "serve",
        "namespace": "team",
        "labels": {**QUEUE, "team": "vision"},
        "annotations": {"example.com/grant": "dfg"},
    }
    served.send("POST", "/apis/apps/v1/namespaces/team/statefulsets", serving("StatefulSet", metadata, {}))
    served.settle()
    metadata = served.get("Workload", Workload.objects.get().name, "team")["metadata"]
    assert "team" not in metadata["labels"]
    assert "example.com/grant" not in metadata["annotations"]


def test_a_submitted_deployment_hands_over_what_its_pods_have(served: ServedCluster) -> None:
    """In Kueue each pod is the job."""
    metadata = {"name": "serve", "namespace": "team", "labels": {**QUEUE, "team": "vision", "cost-center": "none"}}
    deployment = serving("Deployment", metadata, {"team": "speech"})
    cluster = Cluster.objects.get(pk=served.cluster.pk)
    apply_manifests(cluster, json.dumps(deployment).encode(), user=None)
    labels = Workload.objects.get().labels
    assert labels["team"] == "speech"
    assert "cost-center" not in labels


def serving(kind: str, metadata: JsonObject, labels: dict[str, str]) -> JsonObject:
    """One pod, which has these labels besides its own."""
    app = {"app": "serve"}
    containers = [{"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}}}]
    template = {"metadata": {"labels": {**app, **labels}}, "spec": {"containers": containers}}
    spec = {"replicas": 1, "selector": {"matchLabels": app}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_group_has_what_any_of_its_pods_hands_over(served: ServedCluster) -> None:
    create_pod(served, "one", {}, {"example.com/grant": "dfg"})
    served.settle()
    create_pod(served, "two", {"team": "vision"}, {"example.com/grant": "dfg"})
    served.settle()
    metadata = served.get("Workload", "group", "team")["metadata"]
    assert (metadata["labels"]["team"], metadata["annotations"]["example.com/grant"]) == ("vision", "dfg")
    assert "ignored" not in metadata["labels"]


def test_pods_of_a_group_that_disagree_make_no_workload(served: ServedCluster) -> None:
    create_pod(served, "one", {}, {"example.com/grant": "dfg"})
    create_pod(served, "two", {}, {"example.com/grant": "other"})
    served.settle(4)
    assert not served.exists("Workload", "group", "team")
