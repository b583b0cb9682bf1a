"""The steps of a workload's life: each changes only those that may take it, and tells of it once."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster, Namespace
from gpus.models import Device, DeviceAllocation, Node
from queues.manifests.workload import JobSpec, PodSetSpec, WorkloadSpec
from queues.models import Job, Pod, Workload, WorkloadEvent
from queues.services import workloads
from queues.services.submission import create_workloads
from scheduler.models import Change
from scheduling.model.vocabulary import FinishedReason

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
LATER = NOW + timedelta(minutes=5)
A, B = ("team-a", "a"), ("team-a", "b")


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = Cluster.objects.create(name="default")
    Namespace.objects.create(cluster=cluster, name="team-a", created_at=NOW)
    pod_sets = (PodSetSpec("main", 1, {}, {"cpu": 1000}),)
    specs = [
        WorkloadSpec("team-a", name, "main", pod_sets, job=JobSpec("Job", name, "team-a", {"kind": "Job"}))
        for name in ("a", "b")
    ]
    create_workloads(cluster, specs, actor="alice", now=NOW)
    Change.objects.all().delete()
    return cluster


def stored(key: tuple[str, str] = A) -> Workload:
    return Workload.objects.get(namespace=key[0], name=key[1])


def events(key: tuple[str, str] = A) -> list[str]:
    rows = WorkloadEvent.objects.filter(namespace=key[0], workload_name=key[1]).exclude(reason="Created")
    return list(rows.values_list("reason", flat=True))


def admit(key: tuple[str, str] = A, **columns: object) -> None:
    """What the engine writes, and notes no change of."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'on'")
    Workload.objects.filter(namespace=key[0], name=key[1]).update(
        status="Admitted",
        quota_reserved_at=NOW,
        admitted_at=NOW,
        conditions=[{"type": "Admitted", "status": "True"}],
        **columns,
    )
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL kueueweb.unnoticed = 'off'")


def test_hold_and_release(cluster: Cluster) -> None:
    generation = stored().generation
    assert workloads.hold(cluster, [A], actor="alice", now=LATER) == [A]
    assert workloads.hold(cluster, [A], actor="alice", now=LATER) == []
    assert not stored().active
    assert stored().generation == generation + 1
    assert list(Change.objects.values_list("kind", "key")) == [("workload", "team-a/a")]
    assert workloads.release(cluster, [A, B, ("team-a", "none")], actor="bob", now=LATER) == [A]
    assert stored().active
    assert events() == ["Held", "Released"]
    assert WorkloadEvent.objects.get(reason="Released").actor == "bob"


def test_priority(cluster: Cluster) -> None:
    assert workloads.change_priority(cluster, [A, B], 7, actor="alice", priority_class_name="seven") == [A, B]
    row = stored(B)
    assert (row.priority, row.priority_class_name, row.priority_class_kind) == (7, "seven", "WorkloadPriorityClass")
    workloads.change_priority(cluster, [B], 8, actor="alice")
    assert (stored(B).priority, stored(B).priority_class_name, stored(B).priority_class_kind) == (8, "", "")


def test_cancelling_one_that_waits_finishes_it(cluster: Cluster) -> None:
    assert workloads.cancel(cluster, [A], actor="alice", now=LATER) == [A]
    row = stored()
    assert (row.status, row.reason, row.finished_at, row.push_sequence) == ("Finished", "Cancelled", LATER, 1)
    assert [(c["type"], c["status"], c["reason"]) for c in row.conditions] == [("Finished", "True", "Cancelled")]
    assert Job.objects.get(name="a").deletion_requested_at == LATER
    assert Job.objects.get(name="b").deletion_requested_at is None
    assert workloads.cancel(cluster, [A], actor="alice") == []


def test_cancelling_one_that_runs_waits_for_its_pods(cluster: Cluster) -> None:
    admit()
    assert workloads.cancel(cluster, [A], actor="alice", now=LATER) == [A]
    row = stored()
    assert (row.status, row.active, row.deletion_requested_at) == ("Admitted", False, LATER)
    assert workloads.release(cluster, [A], actor="alice") == []
    assert workloads.record_stopped(cluster, [A]) == []  # the engine has not evicted it yet

    admit(evicted_at=LATER)
    assert workloads.record_stopped(cluster, [A], now=LATER) == [A]
    row = stored()
    assert (row.status, row.reason, row.pods_stopped_at, row.finished_at) == ("Finished", "Cancelled", LATER, LATER)
    assert [condition["type"] for condition in row.conditions] == ["Admitted", "Finished"]
    assert events() == ["CancelRequested", "Finished"]


def test_stopped_after_an_eviction(cluster: Cluster) -> None:
    admit(evicted_at=NOW)
    assert workloads.record_stopped(cluster, [A, B], now=LATER) == [A]
    assert workloads.record_stopped(cluster, [A], now=LATER) == []
    assert (stored().status, stored().pods_stopped_at) == ("Admitted", LATER)


def test_pods_ready(cluster: Cluster) -> None:
    assert workloads.record_pods_ready(cluster, [A]) == []
    admit()
    assert workloads.record_pods_ready(cluster, [A], now=NOW) == [A]
    assert workloads.record_pods_ready(cluster, [A], now=NOW) == []
    assert stored().pods_ready_at == NOW
    assert workloads.record_pods_ready(cluster, [A], ready=False, recovering=True, now=LATER) == [A]
    row = stored()
    assert row.pods_ready_at is None
    assert row.conditions[-1] == {
        "type": "PodsReady",
        "status": "False",
        "reason": "WaitForRecovery",
        "message": "At least one pod has failed, waiting for recovery",
        "lastTransitionTime": "2026-01-05T09:05:00Z",
    }
    assert [condition["type"] for condition in row.conditions] == ["Admitted", "PodsReady"]


def test_finished(cluster: Cluster) -> None:
    admit()
    assert workloads.record_finished(cluster, [A, B, B], FinishedReason.FAILED, "Exit code 1", now=LATER) == [A, B]
    row = stored()
    assert (row.status, row.reason, row.message, row.finished_at) == ("Finished", "Failed", "Exit code 1", LATER)
    assert [condition["type"] for condition in row.conditions] == ["Admitted", "Finished"]
    assert WorkloadEvent.objects.filter(reason="Finished", type="Warning", actor="watcher").count() == 2
    assert workloads.record_finished(cluster, [A]) == []


def test_no_workload_costs_no_statement(cluster: Cluster, django_assert_num_queries: Callable[..., Any]) -> None:
    """The watcher ends the workloads of lost jobs with each batch of changes, and there are none nearly always."""
    with django_assert_num_queries(0):
        assert workloads.record_finished(cluster, []) == []


def test_another_cluster_is_left_alone(cluster: Cluster) -> None:
    other = Cluster.objects.create(name="other")
    assert workloads.hold(other, [A], actor="alice") == []
    assert stored().active


def test_deleting_takes_what_holds_nothing(cluster: Cluster) -> None:
    admit()
    assert workloads.delete_workloads(cluster, [A, B], actor="alice") == [B]
    assert list(Workload.objects.values_list("name", "active")) == [("a", False)]
    assert events(B) == ["Finished", "Deleted"]


def test_deleting_leaves_what_still_holds_a_slice(cluster: Cluster) -> None:
    node = Node.objects.create(cluster=cluster, name="n1", created_at=NOW)
    device = Device.objects.create(node=node, uuid="GPU-1", index=0, slots=10, memory_mib=1000)
    slice_ = DeviceAllocation.objects.create(
        cluster=cluster,
        node=node,
        device=device,
        device_uuid="GPU-1",
        workload=stored(),
        memory_mib=10,
        cores_percent=0,
        created_at=NOW,
    )
    workloads.record_finished(cluster, [A])
    assert workloads.delete_workloads(cluster, [A], actor="alice") == []
    slice_.delete()
    assert workloads.delete_workloads(cluster, [A], actor="alice") == [A]


def test_of_workloads_that_end_together_those_with_a_live_pod_wait_for_it(cluster: Cluster) -> None:
    admit(A)
    admit(B)
    pod = Pod.objects.create(workload=stored(B), pod_set="main", replica=0, namespace="team-a", name="p", uid="u")
    assert workloads.record_finished(cluster, [B, A], message="over", now=LATER) == [A]
    assert (stored(A).status, stored(A).ending, events(A)) == ("Finished", None, ["Finished"])
    assert (stored(B).status, events(B)) == ("Admitted", ["Ending"])
    assert stored(B).ending == {"reason": "Succeeded", "message": "over", "actor": "watcher"}
    assert workloads.record_finished(cluster, [A, B], now=LATER) == []
    assert events(B) == ["Ending"]
    pod.delete()
    assert workloads.settle_endings(cluster, now=LATER) == [B]
    assert (stored(B).status, events(B)) == ("Finished", ["Ending", "Finished"])
