"""Groups of plain pods, applied: one workload, composed when all its pods are there."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Cluster
from clusters.manifests import get_manifests
from foundation.exceptions import ManifestErrors
from queues.models import Job, PodSet, Workload, WorkloadEvent
from queues.services.pod_groups.life import MemberPhase, record_phases
from queues.services.workloads import cancel
from tests import manifest_texts as texts
from tests.manifest_texts import Apply, actions, joined

_KUEUE = "kueue.x-k8s.io"


def pod(
    name: str, total: int = 3, *, group: str = "ring", cpu: int = 1, queue: str = "queue", annotations: str = ""
) -> str:
    """A pod of a group in namespace `team`."""
    labels = f"{{{_KUEUE}/queue-name: {queue}, {_KUEUE}/pod-group-name: {group}}}"
    notes = f"{{{_KUEUE}/pod-group-total-count: '{total}', {annotations}}}"
    metadata = f"{{name: {name}, namespace: team, labels: {labels}, annotations: {notes}}}"
    container = f"{{name: main, image: busybox, resources: {{requests: {{cpu: {cpu}}}}}}}"
    spec = f"{{restartPolicy: Never, containers: [{container}]}}"
    return f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {spec}\n"


def pod_sets() -> dict[str, int]:
    """Requests in milli-cpu -> number of pods."""
    return {str(row.requests["cpu"]): row.count for row in PodSet.objects.all()}


def waits_for_pods() -> tuple[str, str]:
    row = Workload.objects.get()
    found = [entry for entry in row.conditions if entry["type"] == "WaitingForReplacementPods"]
    return (found[0]["status"], found[0]["reason"]) if found else ("", "")


def hold_quota() -> None:
    now = timezone.now()
    Workload.objects.update(quota_reserved_at=now, admitted_at=now, status="Admitted", cluster_queue_name="main")


def refusals(caught: pytest.ExceptionInfo[ManifestErrors]) -> list[tuple[str, str]]:
    return [(error.path, error.reason) for error in caught.value.errors]


def end(name: str, phase: MemberPhase) -> None:
    row = Job.objects.get(kind="Pod", name=name)
    record_phases(row.cluster, {row.pk: phase})


def test_a_group_is_one_workload_with_a_pod_set_for_each_shape(apply: Apply) -> None:
    result = apply(joined(pod("a"), pod("b", cpu=2), pod("c")))
    assert actions(result) == ["Pod team/a created", "Pod team/b created", "Pod team/c created"]
    workload = Workload.objects.get()
    assert (workload.name, workload.queue_name, workload.annotations) == (
        "ring", "queue", {f"{_KUEUE}/is-group-workload": "true"},
    )  # fmt: skip
    assert pod_sets() == {"1000": 2, "2000": 1}
    assert waits_for_pods() == ("", "")
    assert all(len(row.name) == 8 for row in PodSet.objects.all())
    assert list(PodSet.objects.values_list("name", flat=True)) == sorted(PodSet.objects.values_list("name", flat=True))


def test_t70_a_group_is_not_composed_before_all_its_pods_are_there(apply: Apply) -> None:
    apply(joined(pod("a"), pod("b")))
    assert waits_for_pods() == ("True", "PodGroupIncomplete")
    event = WorkloadEvent.objects.get(reason="ErrWorkloadCompose")
    assert (event.type, event.message) == ("Warning", "Pod group ring is not complete: 2 of its 3 pods exist")
    before = Workload.objects.get().created_at
    apply(pod("c", cpu=2))
    assert waits_for_pods() == ("", "")
    assert pod_sets() == {"1000": 2, "2000": 1}
    assert Workload.objects.get().created_at > before


def test_t70_fast_admission_asks_for_all_pods_when_the_first_is_there(apply: Apply) -> None:
    apply(pod("a", 5, annotations=f"{_KUEUE}/pod-group-fast-admission: 'true'"))
    assert pod_sets() == {"1000": 5}
    assert waits_for_pods() == ("", "")


def test_a_stated_role_counts_instead_of_the_shape(apply: Apply) -> None:
    apply(joined(pod("a", 2, annotations=f"{_KUEUE}/role-hash: worker"), pod("b", 2)))
    assert set(PodSet.objects.values_list("name", flat=True)) > {"worker"}


def test_the_same_again_changes_nothing(apply: Apply) -> None:
    text = joined(pod("a", 2), pod("b", 2))
    apply(text)
    events = WorkloadEvent.objects.count()
    assert actions(apply(text)) == ["Pod team/a unchanged", "Pod team/b unchanged"]
    assert WorkloadEvent.objects.count() == events
    assert [found["metadata"]["name"] for found in get_manifests(Cluster.objects.get(), "pods")] == ["a", "b"]


def test_a_waiting_group_follows_its_pods(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    apply(pod("b", 2, cpu=3))
    assert pod_sets() == {"1000": 1, "3000": 1}
    apply(joined(pod("a", 2, queue="other"), pod("b", 2, queue="other")))
    assert Workload.objects.get().queue_name == "other"


def test_the_pods_of_a_group_say_the_same_of_it(apply: Apply) -> None:
    with pytest.raises(ManifestErrors) as caught:
        apply(joined(pod("a", 2), pod("b", 3, queue="other")))
    assert refusals(caught) == [
        (f"metadata.labels[{_KUEUE}/queue-name]", "Invalid"),
        (f"metadata.annotations[{_KUEUE}/pod-group-total-count]", "Invalid"),
    ]
    assert not Job.objects.exists()


def test_a_pod_too_many_is_refused(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("c", 2))
    assert refusals(caught) == [(f"metadata.annotations[{_KUEUE}/pod-group-total-count]", "TooMany")]


def test_pods_with_generated_names_have_places_of_their_own(apply: Apply) -> None:
    generated = pod("a", 3).replace("name: a,", "generateName: a,")
    apply(pod("a0", 3))
    with pytest.raises(ManifestErrors) as caught:
        apply(joined(*[generated] * 3))
    assert refusals(caught) == [(f"metadata.annotations[{_KUEUE}/pod-group-total-count]", "TooMany")]
    apply(joined(*[generated] * 2))
    assert (pod_sets(), waits_for_pods()) == ({"1000": 3}, ("", ""))


def test_a_pod_stays_in_its_group(apply: Apply) -> None:
    apply(joined(pod("a", 1), texts.job()))
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("a", 1, group="other"))
    assert refusals(caught) == [(f"metadata.labels[{_KUEUE}/pod-group-name]", "Immutable")]


def test_a_group_may_not_take_the_name_of_another_workload(apply: Apply) -> None:
    apply(texts.workload("ring"))
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("a", 1))
    assert refusals(caught) == [(f"metadata.labels[{_KUEUE}/pod-group-name]", "InUse")]


def test_while_quota_is_held_only_a_pod_of_the_same_shape_takes_a_failed_ones_place(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    hold_quota()
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("c", 2))
    assert refusals(caught) == [("metadata.name", "TooMany")]
    end("a", MemberPhase.FAILED)
    assert waits_for_pods() == ("True", "PodsFailed")
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("c", 2, cpu=2))
    assert refusals(caught) == [("spec", "Invalid")]
    apply(pod("c", 2))
    assert waits_for_pods() == ("False", "PodsReady")
    assert list(Job.objects.filter(kind="Pod").values_list("name", flat=True)) == ["b", "c"]
    assert pod_sets() == {"1000": 2}


def test_what_succeeded_is_reclaimed_and_all_of_it_ends_the_group(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    hold_quota()
    end("a", MemberPhase.SUCCEEDED)
    assert PodSet.objects.get().reclaimable_count == 1
    end("b", MemberPhase.SUCCEEDED)
    row = Workload.objects.get()
    assert (row.status, row.reason, row.message) == ("Finished", "Succeeded", "Pods succeeded: 2/2.")


def test_a_group_that_waits_for_no_other_pods_ends_when_none_is_at_work(apply: Apply) -> None:
    apply(joined(pod("a", 2, annotations=f"{_KUEUE}/retriable-in-group: 'false'"), pod("b", 2)))
    hold_quota()
    end("a", MemberPhase.FAILED)
    assert Workload.objects.get().status == "Admitted"
    end("b", MemberPhase.SUCCEEDED)
    row = Workload.objects.get()
    # Kueue's reason: its message counts the pods.
    assert (row.status, row.reason, row.message) == ("Finished", "Succeeded", "Pods succeeded: 1/2.")


def test_a_serving_group_does_not_end_by_success(apply: Apply) -> None:
    apply(pod("a", 1, annotations=f"{_KUEUE}/pod-group-serving: 'true'"))
    hold_quota()
    end("a", MemberPhase.SUCCEEDED)
    assert (Workload.objects.get().status, PodSet.objects.get().reclaimable_count) == ("Admitted", 0)


def test_a_group_that_has_ended_takes_no_pod_until_its_workload_is_deleted(apply: Apply) -> None:
    apply(pod("a", 1))
    hold_quota()
    end("a", MemberPhase.SUCCEEDED)
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("b", 1))
    assert refusals(caught) == [(f"metadata.labels[{_KUEUE}/pod-group-name]", "InUse")]
    Workload.objects.all().delete()
    assert actions(apply(joined(pod("a", 2), pod("b", 2)))) == ["Pod team/a created", "Pod team/b created"]


def test_a_cancelled_group_frees_its_names(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    cancel(Cluster.objects.get(), [("team", "ring")], actor="alice")
    Workload.objects.update(push_sequence=0)
    assert actions(apply(pod("a", 1, group="other"))) == ["Pod team/a created"]
    assert not Job.objects.filter(name="ring").exists()
    apply(pod("b", 1))
    assert Workload.objects.get(name="ring").status == "Pending"


def test_pruning_takes_pods_out_of_a_group_and_the_group_with_the_last(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2), texts.namespace()), applied_set="ours")
    apply(joined(pod("a", 2), texts.namespace()), applied_set="ours", prune=True)
    assert waits_for_pods() == ("True", "PodsFailed")
    apply(texts.namespace(), applied_set="ours", prune=True)
    assert not Job.objects.exists()
    assert not Workload.objects.exists()


def test_pods_of_a_group_without_a_queue_are_kept_and_left_alone(apply: Apply) -> None:
    apply(pod("a").replace(f"{_KUEUE}/queue-name: queue, ", ""))
    assert (Job.objects.get().kind, Job.objects.get().group_id) == ("Pod", None)
    assert not Workload.objects.exists()


def test_a_group_takes_over_the_labels_of_its_pods_that_the_configuration_names(apply: Apply, cluster: Cluster) -> None:
    cluster.configuration = {"integrations": {"labelKeysToCopy": ["team"]}}
    cluster.save()
    apply(joined(pod("a", 2), pod("b", 2).replace("pod-group-name: ring", "pod-group-name: ring, team: vision")))
    assert Workload.objects.get().labels == {"team": "vision"}


def test_a_group_of_a_class_that_is_not_there_yet_is_queued_without_priority(apply: Apply) -> None:
    label = f"pod-group-name: ring, {_KUEUE}/priority-class: soon"
    apply(joined(*(pod(name, 2).replace("pod-group-name: ring", label) for name in "ab")))
    row = Workload.objects.get()
    assert (row.priority, row.priority_class_name, waits_for_pods()) == (0, "soon", ("", ""))


def test_another_pod_leaves_a_waiting_group_its_place_and_the_priority_that_it_was_given(apply: Apply) -> None:
    apply(joined(pod("a", 2), pod("b", 2)))
    Workload.objects.update(priority=7)
    before = Workload.objects.get().created_at
    apply(pod("b", 2, cpu=3))
    row = Workload.objects.get()
    assert (row.priority, row.created_at, pod_sets()) == (7, before, {"1000": 1, "3000": 1})


def test_the_prebuilt_workload_that_pods_of_a_group_name_is_not_used(apply: Apply) -> None:
    label = f"pod-group-name: ring, {_KUEUE}/prebuilt-workload-name: ring"
    apply(joined(*(pod(name, 2).replace("pod-group-name: ring", label) for name in "ab")))
    assert (Workload.objects.get().name, pod_sets(), waits_for_pods()) == ("ring", {"1000": 2}, ("", ""))


def test_the_index_of_a_pod_ranks_it_in_its_topology(apply: Apply) -> None:
    apply(pod("a", 1, annotations=f"{_KUEUE}/podset-required-topology: cloud.com/rack"))
    assert PodSet.objects.get().topology_request == {
        "required": "cloud.com/rack",
        "podIndexLabel": f"{_KUEUE}/pod-group-pod-index",
    }


def test_roles_that_are_placed_together_are_two_and_one_is_a_single_pod(apply: Apply) -> None:
    together = f"{_KUEUE}/podset-required-topology: rack, {_KUEUE}/podset-group-name: pair"
    pods = [pod(name, 4, cpu=cpu, annotations=together) for name, cpu in (("a", 1), ("b", 1), ("c", 2))]
    apply(joined(*pods))
    with pytest.raises(ManifestErrors) as caught:
        apply(pod("d", 4, cpu=2, annotations=together))
    assert refusals(caught) == [(f"metadata.annotations[{_KUEUE}/podset-group-name]", "Invalid")]
    apply(pod("d", 4, annotations=together))
    assert pod_sets() == {"1000": 3, "2000": 1}


def test_workloads_of_groups_and_of_other_jobs_are_locked_at_once(apply: Apply) -> None:
    """Each in the order of the documents, they were locked against the order of a batch of the scheduler."""
    apply(joined(texts.job("first"), pod("a", group="one"), pod("b", group="other"), texts.job("second")))
    changed = (
        texts.job("second", spec="backoffLimit: 1"), pod("c", group="other"), pod("d", group="one"),
        texts.job("first", spec="backoffLimit: 1"),
    )  # fmt: skip
    with CaptureQueriesContext(connection) as captured:
        apply(joined(*changed))
    found = [query["sql"] for query in captured]
    locking = [sql for sql in found if sql.startswith('SELECT "queues_workload"') and "FOR UPDATE" in sql]
    jobs = set(Workload.objects.values_list("job_id", flat=True))
    assert len(jobs) == 4
    named = re.search(r'"job_id" IN \(([0-9, ]+)\) ORDER BY .*"id" ASC\s+FOR UPDATE', locking[0])
    assert named is not None
    assert {int(key) for key in named[1].split(", ")} == jobs
    writes = [sql for sql in found if sql.lstrip().startswith('UPDATE "queues_workload"')]
    assert found.index(locking[0]) < found.index(writes[0])
