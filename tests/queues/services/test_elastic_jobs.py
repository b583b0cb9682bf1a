"""Elastic jobs: in place while they wait, by a further slice while they hold quota."""

import pytest

from accounts.models import Cluster
from clusters.manifests import ApplyResult, apply_manifests
from foundation.exceptions import ManifestErrors
from queues.models import Job, PodSet, ResourceFlavor, Topology, Workload, WorkloadEvent
from queues.services.workloads import cancel, change_priority, hold, record_stopped, release
from scheduler.leader.engine import Engine
from tests import manifest_texts as texts
from tests.factories import START, make_node

pytestmark = pytest.mark.django_db(transaction=True)


def elastic(parallelism: int, cpu: int = 1) -> str:
    pod = texts.POD.replace("cpu: 1", f"cpu: {cpu}")
    return texts.job(spec=f"parallelism: {parallelism}", pod=pod).replace(
        "name: train,", "name: train, annotations: {kueue.x-k8s.io/elastic-job: 'true'},"
    )


def other(parallelism: int) -> str:
    return texts.job("other", spec=f"parallelism: {parallelism}")


def workload_object(name: str, count: int, annotations: str) -> str:
    return texts.workload(name, count=count).replace(f"name: {name},", f"{annotations}name: {name},")


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
    assert statuses() == [(4, "Pending", "PendingEvaluation")]


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
    assert [count for count, _, _ in statuses()] == [3, 3]
    assert Job.objects.get().manifest["spec"]["parallelism"] == 3


def test_it_shrinks_in_place_while_it_holds_quota(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(4))
    apply(cluster, other(2))
    engine.run()
    assert statuses() == [(4, "Admitted", "Admitted"), (2, "Pending", "WaitingForQuota")]
    apply(cluster, elastic(3))
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(3, "Admitted"), (2, "Admitted")]
    pod_set = PodSet.objects.get(workload__job__name="train")
    assert (pod_set.admitted_count, pod_set.resource_usage, pod_set.flavors) == (3, {"cpu": 3000}, {"cpu": "cpus"})
    assert WorkloadEvent.objects.get(reason="ScaledDown").message.startswith("Scaled down from 4 to 3 pods")
    assert {applied.action for applied in apply(cluster, elastic(3)).objects} == {"unchanged"}


def test_what_it_gave_back_is_still_free_for_the_next_leader(cluster: Cluster) -> None:
    apply(cluster, elastic(4))
    Engine(cluster, "test").run()
    apply(cluster, elastic(2))
    apply(cluster, other(3))
    Engine(cluster, "next").run()
    assert [(count, status) for count, status, _ in statuses()] == [(2, "Admitted"), (3, "Admitted")]


def test_a_slice_that_waits_takes_the_place_of_the_first_when_the_job_shrinks_below_it(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(4))
    engine.run()
    apply(cluster, elastic(9))
    engine.run()
    apply(cluster, elastic(2))
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(4, "Finished"), (2, "Admitted")]
    assert PodSet.objects.order_by("workload_id").values_list("admitted_count", flat=True)[1] == 2
    apply(cluster, elastic(5))
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(4, "Finished"), (2, "Finished"), (5, "Admitted")]


def test_a_job_with_two_slices_that_is_elastic_no_more_keeps_the_one_with_quota(cluster: Cluster) -> None:
    apply(cluster, elastic(3))
    Engine(cluster, "test").run()
    apply(cluster, elastic(9))
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, texts.job(spec="parallelism: 9", pod=texts.POD))
    assert {error.reason for error in caught.value.errors} == {"Immutable"}
    assert [(count, status) for count, status, _ in statuses()] == [(3, "Admitted"), (9, "Pending")]


def test_a_job_that_holds_quota_cannot_become_elastic(cluster: Cluster) -> None:
    apply(cluster, texts.job(spec="parallelism: 3", pod=texts.POD))
    Engine(cluster, "test").run()
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, elastic(4))
    assert [(error.path, error.reason) for error in caught.value.errors] == [("spec.template", "Immutable")]
    assert statuses() == [(3, "Admitted", "Admitted")]


def test_an_evicted_slice_makes_way_for_the_one_that_waits(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(3))
    engine.run()
    holder = Workload.objects.get()
    apply(cluster, elastic(5))
    hold(cluster, [(holder.namespace, holder.name)], actor="admin")
    engine.run()
    assert [status for _, status, _ in statuses()] == ["Evicted", "Pending"]
    release(cluster, [(holder.namespace, holder.name)], actor="admin")
    record_stopped(cluster, [(holder.namespace, holder.name)])
    engine.run()
    assert [(count, status) for count, status, _ in statuses()] == [(3, "Finished"), (5, "Admitted")]
    holder.refresh_from_db()
    assert holder.conditions[-1]["reason"] == "OutOfSync"


def test_what_is_asked_of_one_slice_is_done_to_both(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    apply(cluster, elastic(3))
    engine.run()
    apply(cluster, elastic(9))
    holding, waiting = Workload.objects.order_by("pk")
    slices, key = Workload.objects.order_by("pk"), [(waiting.namespace, waiting.name)]
    assert hold(cluster, key, actor="alice") == key
    assert list(slices.values_list("active", flat=True)) == [False, False]
    assert release(cluster, key, actor="alice") == key
    assert list(slices.values_list("active", flat=True)) == [True, True]
    change_priority(cluster, [(holding.namespace, holding.name)], 7, actor="alice")
    assert list(slices.values_list("priority", flat=True)) == [7, 7]
    assert cancel(cluster, key, actor="alice") == key
    engine.run()
    record_stopped(cluster, [(holding.namespace, holding.name)])
    engine.run()
    assert sorted(slices.values_list("status", "reason")) == [("Finished", "Cancelled"), ("Finished", "Cancelled")]
    assert Job.objects.get().deletion_requested_at is not None


def test_a_workload_object_may_ask_for_fewer_pods_if_it_is_elastic(cluster: Cluster) -> None:
    engine = Engine(cluster, "test")
    for annotations, allowed in (("", False), ("annotations: {kueue.x-k8s.io/elastic-job: 'true'}, ", True)):
        name = "elastic" if allowed else "fixed"
        apply(cluster, workload_object(name, 2, annotations))
        engine.run()
        if allowed:
            apply(cluster, workload_object(name, 1, annotations))
            with pytest.raises(ManifestErrors):
                apply(cluster, workload_object(name, 2, annotations))
        else:
            with pytest.raises(ManifestErrors):
                apply(cluster, workload_object(name, 1, annotations))
    engine.run()
    counts = dict(PodSet.objects.values_list("workload__name", "admitted_count"))
    assert counts == {"fixed": 2, "elastic": 1}


def test_it_does_not_change_its_pods_while_it_holds_quota(cluster: Cluster) -> None:
    apply(cluster, elastic(3))
    Engine(cluster, "test").run()
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, elastic(4, cpu=2))
    assert [error.path for error in caught.value.errors] == ["spec.template"]
    assert [count for count, _, _ in statuses()] == [3]


def with_topology(pods: int, annotation: str) -> str:
    """An elastic job whose pods ask for a topology."""
    metadata = f"{{metadata: {{annotations: {{kueue.x-k8s.io/podset-{annotation}}}}}, spec: {{restart"
    return elastic(pods).replace("{spec: {restart", metadata)


@pytest.mark.parametrize("mode", ["required", "preferred"])
def test_it_asks_for_no_topology_of_its_pods_together(cluster: Cluster, mode: str) -> None:
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, with_topology(3, f"{mode}-topology: rack"))
    (error,) = caught.value.errors
    assert error.path == f"spec.template.metadata.annotations.kueue.x-k8s.io/podset-{mode}-topology"
    assert error.reason == "Forbidden"


def test_it_may_ask_for_any_place_in_a_topology(cluster: Cluster) -> None:
    host = "kubernetes.io/hostname"
    Topology.objects.create(cluster=cluster, name="hosts", levels=[host], created_at=START)
    ResourceFlavor.objects.filter(cluster=cluster).update(topology_name="hosts")
    make_node(cluster, "n1", labels={host: "n1"}, allocatable={"cpu": 2000, "pods": 10})
    make_node(cluster, "n2", labels={host: "n2"}, allocatable={"cpu": 2000, "pods": 10})
    engine = Engine(cluster, "test")
    for pods in (1, 3):
        apply(cluster, with_topology(pods, "unconstrained-topology: 'true'"))
        engine.run()
    *_, newest = PodSet.objects.exclude(topology_assignment=None).order_by("workload_id")
    assert newest.topology_assignment is not None
    assert newest.workload.status == "Admitted"
    assert sum(domain["count"] for domain in newest.topology_assignment["domains"]) == 3


def test_it_has_no_least_parallelism(cluster: Cluster) -> None:
    text = elastic(3).replace("'true'}", "'true', kueue.x-k8s.io/job-min-parallelism: '1'}")
    with pytest.raises(ManifestErrors) as caught:
        apply(cluster, text)
    assert caught.value.errors[0].path == "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]"
