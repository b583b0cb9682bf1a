"""A record of what a workload held, from when to when, whoever ends that; in the transaction that does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction

from accounts.models import Cluster
from history.models import UsageRecord
from queues.models import Job, PodSet, Workload
from queues.services.workloads import cancel, record_finished, record_stopped
from scheduler.leader.engine import Engine
from tests.factories import make_cluster, make_cluster_queue, make_node, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

BEGIN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


class Clock:
    """Minutes after BEGIN."""

    def __init__(self) -> None:
        self.minutes = 0.0

    @property
    def now(self) -> datetime:
        return BEGIN + timedelta(minutes=self.minutes)

    def __call__(self) -> float:
        return self.now.timestamp()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster, within_cluster_queue="LowerPriority")
    return cluster


def at(minutes: float) -> datetime:
    return BEGIN + timedelta(minutes=minutes)


def records() -> list[tuple[str, str, str, datetime | None, datetime, datetime]]:
    rows = UsageRecord.objects.order_by("ended_at", "id")
    return list(rows.values_list("workload_name", "outcome", "reason", "queued_at", "started_at", "ended_at"))


def test_a_run_that_ends_by_itself(cluster: Cluster, clock: Clock) -> None:
    make_workload(
        cluster, "one", {"cpu": "2"}, count=3, created_at=BEGIN, submitted_by="bob", priority=7,
        priority_class_name="high",
    )  # fmt: skip
    clock.minutes = 5
    engine = Engine(cluster, "test", clock=clock)
    engine.run()
    assert not UsageRecord.objects.exists()
    record_finished(cluster, [("team", "one")], now=at(35))
    record_finished(cluster, [("team", "one")], now=at(40))
    engine.run()
    Workload.objects.get().delete()
    record = UsageRecord.objects.get()
    assert records() == [("one", "Finished", "Succeeded", at(0), at(5), at(35))]
    assert (record.cluster_queue, record.local_queue, record.submitted_by) == ("main", "queue", "bob")
    assert (record.priority, record.priority_class, record.pods) == (7, "high", 3)
    assert record.held == {"default-flavor": {"cpu": 6000}}


def test_a_rolled_back_end_leaves_none(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one")
    Engine(cluster, "test", clock=clock).run()
    with transaction.atomic():
        record_finished(cluster, [("team", "one")], now=at(1))
        assert UsageRecord.objects.exists()
        transaction.set_rollback(True)
    assert not UsageRecord.objects.exists()


def test_a_preempted_workload_waits_again_from_when_it_gave_its_quota_back(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "low", {"cpu": "10"}, created_at=BEGIN)
    engine = Engine(cluster, "test", clock=clock)
    engine.run()
    make_workload(cluster, "high", {"cpu": "10"}, priority=5, created_at=at(10))
    low = Workload.objects.get(name="low")
    low.job = Job.objects.create(
        cluster=cluster, namespace="team", name="low", kind="Job", manifest={}, created_at=BEGIN
    )
    low.save(update_fields=["job"])
    clock.minutes = 10
    engine.run()
    assert not UsageRecord.objects.exists(), "it holds its quota until its pods have stopped"
    clock.minutes = 12
    record_stopped(cluster, [("team", "low")], now=at(12))
    engine.run()
    assert records() == [("low", "Preempted", "InClusterQueue", at(0), at(0), at(12))]
    record_finished(cluster, [("team", "high")], now=at(30))
    clock.minutes = 30
    engine.run()
    record_finished(cluster, [("team", "low")], now=at(50))
    assert records()[1:] == [
        ("high", "Finished", "Succeeded", at(10), at(12), at(30)),
        ("low", "Finished", "Succeeded", at(12), at(30), at(50)),
    ]


def test_a_workload_that_never_held_quota_leaves_no_record(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "huge", {"cpu": "100"})
    Engine(cluster, "test", clock=clock).run()
    cancel(cluster, [("team", "huge")], actor="bob", now=at(1))
    assert Workload.objects.get().status == "Finished"
    assert not UsageRecord.objects.exists()


def test_a_resized_workload_is_charged_for_each_size(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", {"cpu": "1"}, count=4, created_at=BEGIN)
    Engine(cluster, "test", clock=clock).run()
    PodSet.objects.update(resource_usage={"cpu": 1000}, admitted_count=1)
    resized = UsageRecord.objects.get()
    assert (resized.outcome, resized.pods, resized.held) == ("Resized", 4, {"default-flavor": {"cpu": 4000}})
    end = resized.ended_at + timedelta(minutes=1)
    record_finished(cluster, [("team", "one")], now=end)
    last = UsageRecord.objects.get(outcome="Finished")
    assert (last.queued_at, last.started_at, last.ended_at) == (None, resized.ended_at, end)
    assert (last.pods, last.held) == (1, {"default-flavor": {"cpu": 1000}})


def test_a_workload_that_is_deleted_while_it_runs(cluster: Cluster, clock: Clock) -> None:
    make_workload(cluster, "one", {"cpu": "1"})
    Engine(cluster, "test", clock=clock).run()
    Workload.objects.get().delete()
    record = UsageRecord.objects.get()
    assert (record.outcome, record.held) == ("Deleted", {"default-flavor": {"cpu": 1000}})


def test_a_slice_is_charged_for_the_larger_of_its_shares(clock: Clock) -> None:
    cluster = make_cluster()
    quotas = {"gpu": {"cpu": 8000, "nvidia.com/gpu": 8, "nvidia.com/gpumem": 10**6, "nvidia.com/gpucores": 800}}
    make_cluster_queue(cluster, quotas=quotas)
    make_node(cluster, "n1", [{}, {}])
    asks = {"cpu": "1", "nvidia.com/gpu": "1", "nvidia.com/gpumem": "4000", "nvidia.com/gpucores": "60"}
    make_workload(cluster, "one", asks, count=2)
    Engine(cluster, "test", clock=clock).run()
    record_finished(cluster, [("team", "one")], now=at(1))
    held = UsageRecord.objects.get().held["gpu"]
    assert held["device"] == pytest.approx(1.2)
    assert held["cpu"] == 2000
