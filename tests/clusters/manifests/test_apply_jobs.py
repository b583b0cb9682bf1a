"""Jobs, Pods, Deployments and Workload objects: their workloads, their priority, and what may still change."""

import hashlib

import pytest
from django.db.models import F
from django.utils import timezone

from accounts.models import Cluster
from clusters.manifests import get_manifests
from foundation.exceptions import ManifestErrors
from queues.models import Job, PodSet, Workload, WorkloadEvent
from queues.services.jobs import delete_jobs
from queues.services.workloads import cancel
from scheduling.manifest import MistakeReason
from tests import manifest_texts as texts
from tests.manifest_texts import Apply, actions, joined


def hold_quota(**filters: object) -> None:
    Workload.objects.filter(**filters).update(
        quota_reserved_at=timezone.now(), admitted_at=timezone.now(), status="Admitted", cluster_queue_name="main"
    )


def refusals(caught: pytest.ExceptionInfo[ManifestErrors]) -> list[tuple[str, str]]:
    return [(error.path, error.reason) for error in caught.value.errors]


def test_a_job_has_one_workload_with_kueues_name(apply: Apply) -> None:
    apply(texts.job(spec="parallelism: 3, completions: 2"))
    (workload,), (job,) = Workload.objects.all(), Job.objects.all()
    digest = hashlib.sha1(f"Job\nbatch\ntrain\n{job.uid}".encode()).hexdigest()
    assert workload.name == f"job-train-{digest[:5]}"
    assert workload.labels == {"kueue.x-k8s.io/job-uid": str(job.uid)}
    (pod_set,) = workload.pod_sets.all()
    assert (pod_set.name, pod_set.count, pod_set.min_count, pod_set.requests) == ("main", 2, None, {"cpu": 1000})


def test_a_job_without_a_queue_is_kept_and_left_alone(apply: Apply) -> None:
    apply(texts.job(queue=""))
    assert Job.objects.get().managed is False
    assert not Workload.objects.exists()


def test_a_local_queue_named_default_takes_jobs_that_name_none(apply: Apply) -> None:
    apply(joined(texts.local_queue(name="default"), texts.job(queue="")))
    assert Job.objects.get().managed is True
    assert Workload.objects.get().queue_name == "default"


def test_a_queue_that_does_not_exist_is_a_warning(apply: Apply) -> None:
    """A dry run said nothing of it."""
    says = "LocalQueue queue doesn't exist in namespace team: no workload starts until it does"
    for dry_run in (True, False):
        (warning,) = [said for said in apply(texts.job(), dry_run=dry_run).objects[0].warnings if "LocalQueue" in said]
        assert warning == f"metadata.labels[kueue.x-k8s.io/queue-name]: {says}"
    assert not any("LocalQueue" in said for said in apply(joined(texts.local_queue(), texts.job())).warnings)


def test_a_generated_name_is_new_each_time(apply: Apply) -> None:
    text = texts.job().replace("name: train", "generateName: train-")
    first, second = apply(text).objects[0], apply(text).objects[0]
    assert first.name != second.name
    assert first.name.startswith("train-")
    assert Job.objects.count() == Workload.objects.count() == 2


@pytest.mark.parametrize(
    ("labels", "pod", "priority", "kind"),
    [
        ("kueue.x-k8s.io/priority-class: label", ", priorityClassName: pods", 1, "WorkloadPriorityClass"),
        ("kueue.x-k8s.io/priority-class: missing", ", priorityClassName: pods", 0, "WorkloadPriorityClass"),
        ("", ", priorityClassName: pods", 2, "PriorityClass"),
        ("", ", priorityClassName: missing", 0, "PriorityClass"),
        ("", "", 3, "PriorityClass"),
    ],
)
def test_a_jobs_priority_comes_from_kueues_sources_in_order(
    apply: Apply, labels: str, pod: str, priority: int, kind: str
) -> None:
    apply(
        joined(
            texts.workload_priority_class("label", 1),
            texts.priority_class("pods", 2),
            texts.priority_class("every", 3, default=True),
            texts.job(labels=labels, pod=texts.POD + pod),
        )
    )
    workload = Workload.objects.get()
    assert (workload.priority, workload.priority_class_kind) == (priority, kind)


def test_a_class_named_default_is_that_of_every_job_without_one(apply: Apply) -> None:
    apply(joined(texts.workload_priority_class("default", 7), texts.job()))
    assert Workload.objects.get().priority == 7


def test_a_class_that_comes_later_counts_then(apply: Apply) -> None:
    result = apply(texts.job(labels="kueue.x-k8s.io/priority-class: late"))
    assert any("there is no WorkloadPriorityClass late yet" in warning for warning in result.objects[0].warnings)
    apply(texts.workload_priority_class("late", 9))
    assert Workload.objects.get().priority == 9


def test_a_waiting_workload_follows_its_job(apply: Apply) -> None:
    apply(joined(texts.workload_priority_class("high", 5), texts.job()))
    name = Workload.objects.get().name
    changed = texts.job(queue="other", spec="parallelism: 4", labels="kueue.x-k8s.io/priority-class: high")
    assert actions(apply(changed)) == ["Job team/train configured"]
    workload = Workload.objects.get()
    assert (workload.name, workload.queue_name, workload.priority) == (name, "other", 5)
    assert [pod_set.count for pod_set in PodSet.objects.all()] == [4]
    assert WorkloadEvent.objects.filter(reason="UpdatedWorkload").exists()


def test_a_waiting_workload_goes_when_its_job_names_no_queue_any_more(apply: Apply) -> None:
    apply(texts.job())
    apply(texts.job(queue=""))
    assert not Workload.objects.exists()
    assert Job.objects.get().managed is False
    apply(texts.job())
    assert Workload.objects.count() == 1


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        (texts.job(queue="other"), "metadata.labels[kueue.x-k8s.io/queue-name]"),
        (texts.job(queue=""), "metadata.labels[kueue.x-k8s.io/queue-name]"),
        (texts.job(spec="parallelism: 4"), "spec.parallelism"),
        (texts.job(pod=texts.POD.replace("cpu: 1", "cpu: 2")), "spec.template"),
        (
            texts.job(labels="kueue.x-k8s.io/max-exec-time-seconds: '5'"),
            "metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]",
        ),
        (texts.job(labels="kueue.x-k8s.io/priority-class: high"), "metadata.labels[kueue.x-k8s.io/priority-class]"),
    ],
)
def test_what_is_frozen_while_quota_is_held_is_refused(apply: Apply, changed: str, path: str) -> None:
    apply(texts.job())
    hold_quota()
    before = Workload.objects.values().get()
    with pytest.raises(ManifestErrors) as caught:
        apply(changed)
    assert refusals(caught) == [(path, MistakeReason.IMMUTABLE)]
    assert Workload.objects.values().get() == before


def test_admission_gates_may_be_taken_away_and_none_added(apply: Apply) -> None:
    gate = "kueue.x-k8s.io/admission-gated-by"
    apply(texts.job(annotations=f"{gate}: 'example.com/budget, example.com/audit'"))
    assert Workload.objects.get().annotations[gate] == "example.com/budget, example.com/audit"
    for more in ("example.com/more", "example.com/budget,example.com/audit,example.com/more"):
        with pytest.raises(ManifestErrors) as caught:
            apply(texts.job(annotations=f"{gate}: '{more}'"))
        assert refusals(caught) == [(f"metadata.annotations[{gate}]", MistakeReason.IMMUTABLE)]
    apply(texts.job(annotations=f"{gate}: example.com/audit"))
    assert Workload.objects.get().annotations[gate] == "example.com/audit"
    apply(texts.job())
    assert gate not in Workload.objects.get().annotations


def test_a_class_may_be_swapped_and_other_labels_change_while_quota_is_held(apply: Apply) -> None:
    label = "kueue.x-k8s.io/priority-class: "
    apply(
        joined(
            texts.workload_priority_class("low", 1),
            texts.workload_priority_class("high", 5),
            texts.job(labels=f"{label}low"),
        )
    )
    hold_quota()
    apply(texts.job(labels=f"{label}high, team: blue"))
    assert Workload.objects.get().priority == 5
    assert Job.objects.get().labels["team"] == "blue"


def test_a_default_class_that_comes_later_changes_nothing_for_jobs_that_are_there(apply: Apply) -> None:
    apply(texts.job())
    hold_quota()
    apply(joined(texts.priority_class("every", 3, default=True), texts.job(labels="team: blue")))
    workload = Workload.objects.get()
    assert (workload.priority, workload.priority_class_name) == (0, "")


def test_each_pod_of_a_deployment_is_a_workload(apply: Apply) -> None:
    apply(texts.deployment(3))
    workloads = Workload.objects.all()
    assert len(workloads) == 3
    assert all(workload.name.startswith("pod-web-") for workload in workloads)
    assert {pod_set.count for pod_set in PodSet.objects.all()} == {1}


def test_a_deployment_scales_and_keeps_the_pods_that_stay(apply: Apply) -> None:
    apply(texts.deployment(2))
    first = set(Workload.objects.values_list("name", flat=True))
    apply(texts.deployment(4))
    assert first < set(Workload.objects.values_list("name", flat=True))
    assert Workload.objects.count() == 4
    apply(texts.deployment(1))
    assert Workload.objects.count() == 1
    assert set(Workload.objects.values_list("name", flat=True)) < first


def test_a_deployment_that_scales_down_gives_up_waiting_pods_first(apply: Apply) -> None:
    apply(texts.deployment(3))
    last = Workload.objects.order_by("pk").last()
    assert last is not None
    hold_quota(pk=last.pk)
    apply(texts.deployment(1))
    assert [workload.pk for workload in Workload.objects.all()] == [last.pk]
    apply(texts.deployment(3))
    assert Workload.objects.filter(active=True).count() == 3


def test_a_deployment_that_scales_down_cancels_pods_with_quota(apply: Apply) -> None:
    apply(texts.deployment(2))
    hold_quota()
    apply(texts.deployment(1))
    assert sorted(Workload.objects.values_list("active", flat=True)) == [False, True]
    assert Job.objects.get().deletion_requested_at is None


def test_another_template_makes_other_pods(apply: Apply) -> None:
    apply(texts.deployment(2))
    first = set(Workload.objects.values_list("name", flat=True))
    apply(texts.deployment(2, cpu=2))
    assert first.isdisjoint(Workload.objects.values_list("name", flat=True))
    assert [pod_set.requests for pod_set in PodSet.objects.all()] == [{"cpu": 2000}] * 2


def test_a_pod_is_a_workload(apply: Apply) -> None:
    apply(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: team, labels: {kueue.x-k8s.io/queue-name: queue}}\n"
        "spec: {containers: [{name: c, image: busybox, resources: {limits: {nvidia.com/gpu: 1}}}]}\n"
    )
    workload = Workload.objects.get()
    assert workload.name.startswith("pod-p-")
    assert workload.pod_sets.get().requests == {"nvidia.com/gpu": 1}


def test_topology_annotations_are_the_pod_sets_request(apply: Apply) -> None:
    pod = texts.POD + "}, metadata: {annotations: {kueue.x-k8s.io/podset-required-topology: rack}"
    apply(texts.job(pod=pod))
    assert PodSet.objects.get().topology_request == {
        "required": "rack",
        "podIndexLabel": "batch.kubernetes.io/job-completion-index",
    }


def test_a_cancelled_job_makes_way_for_one_of_its_name_once_the_cluster_has_heard(
    apply: Apply, cluster: Cluster
) -> None:
    apply(texts.job())
    first = Workload.objects.get()
    Workload.objects.update(push_sequence=1, pushed_sequence=1)
    cancel(cluster, [(first.namespace, first.name)], actor="alice")
    with pytest.raises(ManifestErrors) as caught:
        apply(texts.job())
    assert refusals(caught) == [("metadata.name", MistakeReason.IN_USE)]
    Workload.objects.update(pushed_sequence=F("push_sequence"))
    assert actions(apply(texts.job())) == ["Job team/train created"]
    first.refresh_from_db()
    assert (first.status, first.job) == ("Finished", None)
    assert Workload.objects.exclude(pk=first.pk).get().status == "Pending"


def test_a_deleted_job_that_the_cluster_never_heard_of_is_gone_at_once(apply: Apply, cluster: Cluster) -> None:
    apply(texts.job())
    assert delete_jobs(cluster, Job.objects.prefetch_related("workloads"), actor="alice", now=timezone.now()) == {}
    assert not Job.objects.exists()
    assert not Workload.objects.exists()


def test_a_deleted_job_that_the_cluster_knows_is_to_be_withdrawn_there(apply: Apply, cluster: Cluster) -> None:
    apply(texts.job())
    Workload.objects.update(push_sequence=1, pushed_sequence=1)
    jobs = Job.objects.prefetch_related("workloads")
    assert "cluster has deleted it" in delete_jobs(cluster, jobs, actor="alice", now=timezone.now())[jobs[0].pk]
    workload = Workload.objects.get()
    assert (workload.status, workload.push_sequence > workload.pushed_sequence) == ("Finished", True)
    assert get_manifests(cluster, "jobs") == []


# --- Workload objects -------------------------------------------------------------------------------------------------


def test_a_waiting_workload_object_may_change(apply: Apply) -> None:
    apply(texts.workload())
    apply(texts.workload(queue="other", cpu=2, count=3, more="active: false"))
    workload = Workload.objects.get()
    assert (workload.queue_name, workload.active) == ("other", False)
    assert [(pod_set.count, pod_set.requests) for pod_set in workload.pod_sets.all()] == [(3, {"cpu": 2000})]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        (texts.workload(queue="other"), "spec.queueName"),
        (texts.workload(count=2), "spec.podSets"),
        (texts.workload(more="maximumExecutionTimeSeconds: 5"), "spec.maximumExecutionTimeSeconds"),
        (
            texts.workload(
                more="priority: 1, priorityClassRef: {group: scheduling.k8s.io, kind: PriorityClass, name: p}"
            ),
            "spec.priorityClassRef",
        ),
    ],
)
def test_a_workload_object_with_quota_keeps_what_it_holds_it_for(apply: Apply, changed: str, path: str) -> None:
    apply(texts.workload())
    hold_quota()
    with pytest.raises(ManifestErrors) as caught:
        apply(changed)
    assert refusals(caught) == [(path, MistakeReason.IMMUTABLE)]


def test_a_workload_object_with_quota_may_be_held_and_get_another_priority(apply: Apply) -> None:
    apply(texts.workload())
    hold_quota()
    apply(texts.workload(more="active: false, priority: 8"))
    workload = Workload.objects.get()
    assert (workload.active, workload.priority) == (False, 8)


def test_a_workload_that_a_job_owns_follows_the_job(apply: Apply) -> None:
    apply(texts.job())
    name = Workload.objects.get().name
    with pytest.raises(ManifestErrors) as caught:
        apply(texts.workload(name=name, queue="other"))
    assert ("spec.queueName", MistakeReason.FORBIDDEN) in refusals(caught)
