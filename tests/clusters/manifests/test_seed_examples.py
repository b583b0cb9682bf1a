"""Every example manifest applies on a fresh database, alone and after the others; read back, it changes nothing."""

from pathlib import Path

import pytest

from accounts.models import Cluster, Namespace
from clusters.manifests import apply_manifests, get_manifests, to_yaml
from clusters.manifests.kinds import KINDS
from foundation.exceptions import ManifestErrors, UnsupportedKind
from queues.models import Workload

pytestmark = pytest.mark.django_db

EXAMPLES = sorted((Path(__file__).parents[2] / "manifests" / "seed-examples").glob("*.yaml"))
NOT_TAKEN = {
    "003-08-podgroup-pod-group.yaml": "Unsupported value: PodGroup of Volcano",
    "003-12-horizontalpodautoscaler-inference-hpa.yaml": "Unsupported value: HorizontalPodAutoscaler of Kubernetes",
}
HALF_A_DEVICE = "003-11-job-ai-mixed-job.yaml"
TAKEN = [path for path in EXAMPLES if path.name not in {*NOT_TAKEN, HALF_A_DEVICE}]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster.objects.create(name="default")


def read_back(cluster: Cluster) -> str:
    return to_yaml(manifest for kind in KINDS for manifest in get_manifests(cluster, kind))


@pytest.mark.parametrize("path", TAKEN, ids=lambda path: path.name)
def test_an_example_applies_alone_and_reads_back_unchanged(cluster: Cluster, path: Path) -> None:
    result = apply_manifests(cluster, path.read_bytes(), user=None)
    assert {applied.action for applied in result.objects} == {"created"}
    again = apply_manifests(cluster, read_back(cluster), user=None)
    assert {applied.action for applied in again.objects} == {"unchanged"}


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path.name in NOT_TAKEN], ids=lambda path: path.name)
def test_a_kind_that_is_not_taken_is_named_and_nothing_is_stored(cluster: Cluster, path: Path) -> None:
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: beside\n---\n"
    with pytest.raises(UnsupportedKind) as caught:
        apply_manifests(cluster, namespace + path.read_text(), user=None)
    (error,) = caught.value.errors
    assert error.document == 1
    assert error.path == "kind"
    assert error.rule.startswith(NOT_TAKEN[path.name])
    assert not Namespace.objects.exists()


def test_half_a_device_is_refused_with_what_to_write_and_taken_as_that(cluster: Cluster) -> None:
    text = next(path for path in EXAMPLES if path.name == HALF_A_DEVICE).read_text()
    with pytest.raises(ManifestErrors) as caught:
        apply_manifests(cluster, text, user=None)
    (error,) = caught.value.errors
    assert error.path == "spec.tasks[1].template.spec.containers[0].resources.requests[nvidia.com/gpu]"
    assert 'nvidia.com/gpu: "1" with nvidia.com/gpumem-percentage: "50"' in error.remedy
    written = text.replace('gpu: "0.5"', 'gpu: "1"\n                  nvidia.com/gpumem-percentage: "50"')
    (applied,) = apply_manifests(cluster, written, user=None).objects
    assert (applied.kind, applied.action) == ("JobSet", "created")


def test_all_examples_apply_one_after_the_other(cluster: Cluster) -> None:
    for path in TAKEN:
        apply_manifests(cluster, path.read_bytes(), user=None)
    again = apply_manifests(cluster, read_back(cluster), user=None)
    assert {applied.action for applied in again.objects} == {"unchanged"}
    cluster.refresh_from_db()
    assert cluster.device_plugin_configuration["settings"]["split_count"] == 10
    assert cluster.device_plugin_configuration["settings"]["resource_memory_name"] == "nvidia.com/gpumem"
    assert [rule["input"] for rule in cluster.configuration["resources"]["transformations"]] == [
        "nvidia.com/gpucores",
        "nvidia.com/gpumem",
    ]


REFUSED_ELSEWHERE = (
    *("000-01", "000-05", "000-13", "000-18", "003-13", "001-01", "001-02", "001-03", "001-04", "000-19", "003-01"),
    "003-14",
)


@pytest.mark.parametrize("number", REFUSED_ELSEWHERE)
def test_what_kubernetes_or_kueue_refuses_is_not_taken_without_a_word(cluster: Cluster, number: str) -> None:
    [path] = [path for path in EXAMPLES if path.name.startswith(number)]
    assert apply_manifests(cluster, path.read_bytes(), user=None).warnings


def test_what_can_never_run_is_not_queued(cluster: Cluster) -> None:
    """A LocalQueue `default` took the example without containers, which waited and held quota forever."""
    default = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: default, namespace: default}\n"
    apply_manifests(cluster, f"{default}spec: {{clusterQueue: main}}\n", user=None)
    [path] = [path for path in EXAMPLES if path.name.startswith("000-05")]
    with pytest.raises(ManifestErrors, match="at least one container"):
        apply_manifests(cluster, path.read_bytes(), user=None)
    assert not Workload.objects.exists()
