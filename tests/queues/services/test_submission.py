"""Storing workloads: whole or not at all, thousands at once."""

import re
import threading
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from django.db import connection, transaction

from accounts.models import Cluster, Namespace
from foundation.exceptions import AlreadyExists, ManifestErrors
from queues.manifests.workload import JobSpec, PodSetSpec, WorkloadSpec
from queues.models import Job, PodSet, PriorityClass, Workload, WorkloadEvent, WorkloadPriorityClass
from queues.services.submission import create_workloads
from scheduler.models import Change
from tests.patience import PATIENCE_SECONDS

NOW = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)
POD_SET = PodSetSpec("main", 2, {"spec": {"containers": []}}, {"cpu": 500, "nvidia.com/gpu": 1})


def spec(name: str, index: int = 0, **fields: object) -> WorkloadSpec:
    return replace(WorkloadSpec("team-a", name, "main", (POD_SET,), document=index), **fields)  # type: ignore[arg-type]  # any field


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = Cluster.objects.create(name="default")
    Namespace.objects.create(cluster=cluster, name="team-a", created_at=NOW)
    return cluster


def test_stores_rows_events_and_a_change_for_each(cluster: Cluster) -> None:
    Change.objects.all().delete()
    specs = [spec(f"train-{index}", index, labels={"tier": "gold"}) for index in range(1000)]
    created = create_workloads(cluster, specs, actor="alice", submitted_by="alice", now=NOW)

    assert [workload.name for workload in created] == [f"train-{index}" for index in range(1000)]
    row = Workload.objects.get(cluster=cluster, namespace="team-a", name="train-7")
    assert (row.pk, row.uid) == (created[7].id, created[7].uid)
    assert (row.status, row.priority, row.active, row.labels) == ("Pending", 0, True, {"tier": "gold"})
    assert (row.submitted_by, row.created_at, row.conditions, row.job_id) == ("alice", NOW, [], None)
    pod_set = row.pod_sets.get()
    assert (pod_set.count, pod_set.requests, pod_set.flavors) == (2, {"cpu": 500, "nvidia.com/gpu": 1}, {})
    assert PodSet.objects.count() == 1000
    event = WorkloadEvent.objects.get(workload_uid=row.uid)
    assert (event.reason, event.actor, event.type, event.at) == ("Created", "alice", "Normal", NOW)
    assert Change.objects.filter(kind="workload", cluster_id=cluster.pk).count() == 1000


def test_takes_the_value_of_the_class_named(cluster: Cluster) -> None:
    WorkloadPriorityClass.objects.create(cluster=cluster, name="high", value=1000, created_at=NOW)
    PriorityClass.objects.create(cluster=cluster, name="usual", value=10, global_default=True, created_at=NOW)
    create_workloads(
        cluster,
        [
            spec("by-class", 0, priority_class_kind="WorkloadPriorityClass", priority_class_name="high"),
            spec("by-default", 1),
            spec("by-value", 2, priority=-5),
        ],
        actor="alice",
    )
    fields = ("name", "priority", "priority_class_kind", "priority_class_name", "priority_class_group")
    assert list(Workload.objects.values_list(*fields)) == [
        ("by-class", 1000, "WorkloadPriorityClass", "high", "kueue.x-k8s.io"),
        ("by-default", 10, "PriorityClass", "usual", "scheduling.k8s.io"),
        ("by-value", -5, "", "", ""),
    ]


def test_makes_up_names(cluster: Cluster) -> None:
    created = create_workloads(cluster, [spec("sweep-", generate_name=True)] * 20, actor="alice")
    names = {workload.name for workload in created}
    assert len(names) == 20
    assert all(re.fullmatch(r"sweep-[a-z0-9]{5}", name) for name in names)


def test_workloads_share_their_job(cluster: Cluster) -> None:
    job = JobSpec("Deployment", "serve", "team-a", {"kind": "Deployment"})
    create_workloads(cluster, [spec("serve-0", job=job), spec("serve-1", job=job)], actor="alice")
    stored = Job.objects.get()
    assert (stored.kind, stored.name, stored.manifest, stored.workloads.count()) == (
        "Deployment",
        "serve",
        job.manifest,
        2,
    )


def test_names_what_is_wrong_and_stores_nothing(cluster: Cluster) -> None:
    with pytest.raises(ManifestErrors) as caught:
        create_workloads(
            cluster,
            [
                spec("fine", 0),
                replace(spec("nowhere", 1), namespace="team-z"),
                spec("classless", 2, priority_class_kind="PriorityClass", priority_class_name="gone"),
            ],
            actor="alice",
        )
    assert [(error.document, error.path, error.value) for error in caught.value.errors] == [
        (1, "namespace", "team-z"),
        (2, "priority_class", "gone"),
    ]
    assert not Workload.objects.exists()


def test_refuses_a_name_used_twice_in_the_call(cluster: Cluster) -> None:
    with pytest.raises(ManifestErrors) as caught:
        create_workloads(cluster, [spec("a", 0), spec("b", 1), spec("a", 2)], actor="alice")
    assert [error.document for error in caught.value.errors] == [0, 2]
    assert not Workload.objects.exists()


def test_refuses_a_name_that_is_taken(cluster: Cluster) -> None:
    create_workloads(cluster, [spec("a")], actor="alice")
    with pytest.raises(AlreadyExists) as caught:
        create_workloads(cluster, [spec("b", 0), spec("a", 1)], actor="alice")
    assert [(error.document, error.value) for error in caught.value.errors] == [(1, "team-a/a")]
    assert Workload.objects.count() == 1


def test_nothing_to_store(cluster: Cluster) -> None:
    assert create_workloads(cluster, [], actor="alice") == []


@pytest.mark.django_db(transaction=True)
def test_two_calls_use_a_name_at_once() -> None:
    """The second waits for the first to commit, and then says whose name is taken."""
    cluster = Cluster.objects.create(name="default")
    Namespace.objects.create(cluster=cluster, name="team-a", created_at=NOW)
    refused: list[AlreadyExists] = []

    def second() -> None:
        try:
            create_workloads(cluster, [spec("other", 0), spec("a", 1)], actor="bob")
        except AlreadyExists as error:
            refused.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        create_workloads(cluster, [spec("a")], actor="alice")
        thread = threading.Thread(target=second)
        thread.start()
        while not _somebody_waits_for_a_lock():
            assert thread.is_alive()
    thread.join(PATIENCE_SECONDS)
    assert "(team-a, a)" in refused[0].message.replace(f"({cluster.pk}, team-a, a)", "(team-a, a)")
    assert list(Workload.objects.values_list("name", "submitted_by")) == [("a", "")]


def _somebody_waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted)")
        return bool(cursor.fetchone()[0])
