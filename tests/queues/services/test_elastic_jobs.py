"""Elastic jobs: in place while they wait, by a further slice while they hold quota."""

import pytest

from queues.exceptions import ManifestErrors
from queues.models import Cluster, Job, PodSet, Workload
from scheduler.engine import Engine
from scheduler.manifests import ApplyResult, apply_manifests
from tests import manifest_texts as texts

pytestmark = pytest.mark.django_db(transaction=True)


def elastic(parallelism: int, cpu: int = 1) -> str:
    pod = texts.POD.replace("cpu: 1", f"cpu: {cpu}")
    return texts.job(spec=f"parallelism: {parallelism}", pod=pod).replace(
        "name: train,", "name: train, annotations: {kueue.x-k8s.io/elastic-job: 'true'},"
    )


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster.objects.create(name="default")
    queues = texts.joined(
        texts.namespace(), texts.kueue("ResourceFlavor", "cpus"), texts.cluster_queue(cpu=5), texts.local_queue()
    )
    apply_manifests(cluster, queues, user=None)
    return cluster


def apply(cluster: Cluster, text: str) -> ApplyResult:
    return apply_manifests(cluster, text, user=None)


def statuses() -> list[tuple[int, str, str]]:
    rows = PodSet.objects.order_by("workload_id").select_related("workload")
    return [(row.count, row.workload.status, row.workload.reason) for row in rows]


def test_it_grows_in_place_while_it_waits(cluster: Cluster) -> None:
    apply(cluster, elastic(2))
    apply(cluster, elastic(4))
    assert statuses() == [(4, "Pending", "")]


def test_a_further_slice_takes_the_place_of_the_first(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(3))
    engine.run()
    first = Workload.objects.get()
    apply(cluster, elastic(5))
    second = Workload.objects.exclude(pk=first.pk).get()
    assert second.annotations["kueue.x-k8s.io/workload-slice-replacement-for"] == first.key
    assert second.annotations["kueue.x-k8s.io/workload-slice-name"] == first.name
    assert {applied.action for applied in apply(cluster, elastic(5)).objects} == {"unchanged"}
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(3, "Finished"), (5, "Admitted")]
    first.refresh_from_db()
    assert first.conditions[-1]["reason"] == "WorkloadSliceReplaced"
    apply(cluster, elastic(6))
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(3, "Finished"), (5, "Admitted"), (6, "Pending")]
    third = Workload.objects.order_by("pk").last()
    assert third is not None
    assert third.annotations["kueue.x-k8s.io/workload-slice-name"] == first.name


def test_another_size_replaces_the_slice_that_waits(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(3))
    engine.run()
    apply(cluster, elastic(9))
    apply(cluster, elastic(8))
    assert [count for count, _, _ in statuses()] == [3, 8]
    apply(cluster, elastic(3))
    assert [count for count, _, _ in statuses()] == [3]
    assert Job.objects.get().manifest["spec"]["parallelism"] == 3


@pytest.mark.parametrize(("changed", "path"), [(elastic(1), "spec.parallelism"), (elastic(4, cpu=2), "spec.template")])
def test_it_does_not_shrink_nor_change_its_pods_while_it_holds_quota(cluster: Cluster, changed: str, path: str) -> None:
    apply(cluster, elastic(3))
    Engine(cluster, "test").run()
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, changed)
    assert [error.path for error in caught.value.errors] == [path]
    assert [count for count, _, _ in statuses()] == [3]


def test_it_has_no_least_parallelism(cluster: Cluster) -> None:
    text = elastic(3).replace("'true'}", "'true', kueue.x-k8s.io/job-min-parallelism: '1'}")
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, text)
    assert caught.value.errors[0].path == "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"
