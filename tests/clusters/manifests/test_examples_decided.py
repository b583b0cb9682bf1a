"""What the scheduler makes of the examples: who runs, and why exactly the others wait."""

from pathlib import Path

import pytest

from accounts.models import Cluster
from clusters.manifests import apply_manifests
from queues.models import Workload
from scheduler.leader.engine import Engine
from tests.manifest_texts import Apply

pytestmark = pytest.mark.django_db(transaction=True)

EXAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "seed-examples").glob("000-*.yaml"))
IGNORE_UNDECLARED = """
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
resources: {quotaCheckStrategy: IgnoreUndeclared}
"""


@pytest.fixture
def cluster() -> Cluster:
    # The examples have one node, of which they say neither how large it is nor that any flavor reaches it: the cluster
    # places pods with devices only, as a new one does.
    cluster = Cluster.objects.create(name="default")
    for path in EXAMPLES:
        apply_manifests(cluster, path.read_bytes(), user=None)
    return cluster


def workload(prefix: str) -> Workload:
    return Workload.objects.get(name__startswith=prefix)


def why_not_reserved(prefix: str) -> tuple[str, str]:
    (condition,) = [found for found in workload(prefix).conditions if found["type"] == "QuotaReserved"]
    assert condition["status"] == "False"
    return condition["reason"], condition["message"]


def test_the_sample_job_and_the_pod_run(cluster: Cluster) -> None:
    Engine(cluster, "test").run()
    assert workload("job-sample-job-").status == "Admitted"
    assert workload("pod-kueue-managed-pod-").status == "Admitted"


def test_the_training_job_waits_since_cpu_and_memory_are_not_covered(cluster: Cluster) -> None:
    Engine(cluster, "test").run()
    reason, message = why_not_reserved("job-llm-training-research-")
    assert reason == "NoMatchingFlavor"
    assert "cpu and memory are not covered" in message


def test_the_inference_job_waits_since_its_namespace_is_not_selected_either(cluster: Cluster) -> None:
    Engine(cluster, "test").run()
    reason, message = why_not_reserved("job-model-inference-prod-")
    assert reason == "Misconfigured"
    assert "workload namespace doesn't match ClusterQueue selector" in message
    assert "cpu and memory are not covered" in message
    assert workload("job-model-inference-prod-").priority == 1000


def test_the_training_job_runs_where_undeclared_resources_are_ignored(cluster: Cluster, apply: Apply) -> None:
    engine = Engine(cluster, "test")
    engine.run()
    apply(IGNORE_UNDECLARED)
    engine.run()
    assert workload("job-llm-training-research-").status == "Admitted"
    assert workload("job-model-inference-prod-").status == "Pending"
    usage = workload("job-llm-training-research-").pod_sets.get().resource_usage
    assert usage == {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 16000, "nvidia.com/gpucores": 50}
