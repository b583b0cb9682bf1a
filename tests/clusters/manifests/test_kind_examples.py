"""The examples of `docs/examples`: one of each kind of job, taken as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from accounts.models import Cluster
from clusters.jobs.registry import JOB_KINDS
from clusters.manifests import apply_manifests, get_manifests
from queues.models import PodSet
from queues.services.cluster_objects import store_cluster_objects

pytestmark = pytest.mark.django_db

EXAMPLES = sorted((Path(__file__).parents[3] / "docs/examples").glob("*.yaml"))
RUNTIME = {
    "spec": {
        "mlPolicy": {"numNodes": 1, "torch": {}},
        "template": {
            "spec": {
                "replicatedJobs": [
                    {
                        "name": "node",
                        "template": {
                            "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
                            "spec": {"template": {"spec": {"containers": [{"name": "node", "image": "torch"}]}}},
                        },
                    }
                ]
            }
        },
    }
}
PODS = {
    "appwrapper": [2], "cronjob": [], "deployment": [1, 1], "jaxjob": [2], "job": [2], "jobset": [1, 2],
    "leaderworkerset": [1, 2, 1, 2], "mpijob": [1, 2], "paddlejob": [1, 2], "pod": [1], "pod-group": [2],
    "pytorchjob": [1, 2], "raycluster": [1, 2], "rayjob": [1, 2, 1], "rayservice": [1, 2],
    "sparkapplication": [1, 2], "statefulset": [2], "tfjob": [1, 2], "trainjob": [2], "xgboostjob": [1, 2],
}  # fmt: skip
"""The pods of each pod set, workload by workload."""


def test_there_is_one_of_each_kind() -> None:
    kinds = {document["kind"] for path in EXAMPLES for document in yaml.safe_load_all(path.read_text())}
    assert kinds == set(JOB_KINDS)
    assert {path.stem for path in EXAMPLES} == set(PODS)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_taken_and_read_back(cluster: Cluster, path: Path) -> None:
    store_cluster_objects(cluster, "ClusterTrainingRuntime", {("", "torch-distributed"): RUNTIME}, gone=None)
    result = apply_manifests(cluster, path.read_text(), user=None)
    assert {applied.action for applied in result.objects} == {"created"}
    assert [warning for warning in result.warnings if "namespace" not in warning] == []
    counts = PodSet.objects.order_by("workload_id", "position").values_list("count", flat=True)
    assert list(counts) == PODS[path.stem]
    for applied in result.objects:
        (manifest,) = get_manifests(cluster, applied.kind, applied.name, applied.namespace)
        again = apply_manifests(cluster, yaml.safe_dump(manifest), user=None)
        assert [each.action for each in again.objects] == ["unchanged"]
