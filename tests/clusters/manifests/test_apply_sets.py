"""Sets that are submitted again over REST: the controller's pass decides about their workloads."""

from __future__ import annotations

from copy import deepcopy

import orjson
import pytest

from clusters.api_objects import JsonObject
from foundation.exceptions import ManifestErrors
from queues.models import Workload
from scheduling.manifest import MistakeReason
from tests.clusters.manifests.test_apply_jobs import hold_quota, refusals
from tests.clusters.test_pods_that_wait import leader_worker_set, stateful_set
from tests.manifest_texts import Apply

pytestmark = pytest.mark.django_db

ON_HOLD = "StatefulSet scaled to zero; workload on hold"


def text_of(manifest: JsonObject) -> str:
    return orjson.dumps(manifest).decode()


def counts() -> list[int]:
    rows = Workload.objects.order_by("pk").prefetch_related("pod_sets")
    return [sum(pod_set.count for pod_set in row.pod_sets.all()) for row in rows]


def indexes() -> list[str]:
    rows = Workload.objects.order_by("annotations__kueue.x-k8s.io/component-workload-index")
    return [row.annotations["kueue.x-k8s.io/component-workload-index"] for row in rows]


@pytest.mark.parametrize("holds", [False, True], ids=["waiting", "with quota"])
def test_a_stateful_set_of_no_replicas_holds_its_workload_until_it_wants_pods_again(apply: Apply, holds: bool) -> None:
    apply(text_of(stateful_set(2)))
    if holds:
        hold_quota()
    first = Workload.objects.get()
    apply(text_of(stateful_set(0)))
    assert (Workload.objects.get().pk, Workload.objects.get().on_hold, counts()) == (first.pk, ON_HOLD, [2])
    apply(text_of(stateful_set(0)))
    apply(text_of(stateful_set(2)))
    assert (Workload.objects.get().pk, Workload.objects.get().on_hold, counts()) == (first.pk, "", [2])


def test_a_waiting_stateful_set_gets_another_size_and_one_with_quota_does_not(apply: Apply) -> None:
    apply(text_of(stateful_set(2)))
    apply(text_of(stateful_set(5)))
    assert counts() == [5]
    hold_quota()
    apply(text_of(stateful_set(0)))
    with pytest.raises(ManifestErrors) as caught:
        apply(text_of(stateful_set(6)))  # its quota is not given back yet
    assert refusals(caught) == [("spec.replicas", MistakeReason.IMMUTABLE)]
    assert counts() == [5]


def test_a_stateful_set_that_begins_with_no_replicas_gets_its_workload_when_it_grows(apply: Apply) -> None:
    apply(text_of(stateful_set(0)))
    assert not Workload.objects.exists()
    apply(text_of(stateful_set(3)))
    assert counts() == [3]
    assert Workload.objects.get().name.startswith("statefulset-db-")


def test_a_leader_worker_set_keeps_the_groups_that_stay(apply: Apply) -> None:
    apply(text_of(leader_worker_set(2)))
    first = {*Workload.objects.values_list("pk", flat=True)}
    apply(text_of(leader_worker_set(4)))
    assert indexes() == ["0", "1", "2", "3"]
    apply(text_of(leader_worker_set(2)))
    assert (indexes(), {*Workload.objects.values_list("pk", flat=True)}) == (["0", "1"], first)
    apply(text_of(leader_worker_set(0)))
    assert not Workload.objects.exists()


def test_a_leader_worker_set_cancels_groups_with_quota_and_keeps_the_size_of_others(apply: Apply) -> None:
    apply(text_of(leader_worker_set(2)))
    hold_quota()
    apply(text_of(leader_worker_set(1)))
    assert [*Workload.objects.order_by("pk").values_list("active", flat=True)] == [True, False]
    larger = deepcopy(leader_worker_set(1))
    larger["spec"]["leaderWorkerTemplate"]["size"] = 4
    with pytest.raises(ManifestErrors) as caught:
        apply(text_of(larger))
    assert [reason for _, reason in refusals(caught)] == [MistakeReason.IMMUTABLE]
    assert counts() == [3, 3]


def test_a_group_that_is_being_stopped_is_wanted_again_once_it_has_stopped(apply: Apply) -> None:
    apply(text_of(leader_worker_set(2)))
    hold_quota()
    apply(text_of(leader_worker_set(1)))
    with pytest.raises(ManifestErrors) as caught:
        apply(text_of(leader_worker_set(2)))
    assert refusals(caught) == [("spec.replicas", MistakeReason.IN_USE)]
    old = Workload.objects.get(active=False)
    Workload.objects.filter(pk=old.pk).update(quota_reserved_at=None, admitted_at=None, status="Finished")
    apply(text_of(leader_worker_set(2)))
    assert (indexes(), Workload.objects.filter(active=True).count()) == (["0", "1"], 2)
    assert not Workload.objects.filter(pk=old.pk).exists()


def test_a_set_may_go_to_another_queue_while_it_waits(apply: Apply) -> None:
    for made in (stateful_set(1), leader_worker_set(1)):
        apply(text_of(made))
        moved = deepcopy(made)
        moved["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "other"
        apply(text_of(moved))
    assert {*Workload.objects.values_list("queue_name", flat=True)} == {"other"}
    assert Workload.objects.count() == 2


def test_a_set_whose_priority_class_does_not_exist_still_follows(apply: Apply) -> None:
    """REST has chosen the priority, as it does for a new job."""
    made = leader_worker_set(1)
    apply(text_of(made))
    made = deepcopy(leader_worker_set(2))
    made["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "gone"
    apply(text_of(made))
    assert indexes() == ["0", "1"]
