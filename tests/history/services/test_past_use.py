"""The decayed use of LocalQueues, by which Slurm's fair shares order workloads."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import log

import pytest

from accounts.models import AuditRecord, Cluster
from history.models import UsageRecord
from history.services.past_use import note_past_use
from queues.models import ClusterQueue, Cohort, FlavorQuota, LocalQueue, Workload
from scheduler.leader.engine import Engine
from scheduler.models import Change
from tests.factories import START, make_cluster, make_cluster_queue, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

HOUR = 3600
NOW = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


@pytest.fixture
def cluster() -> Cluster:
    """A ClusterQueue with LocalQueues `heavy` and `light`, ordered by fair share with a half-life of an hour."""
    cluster = make_cluster()
    queue = make_cluster_queue(cluster, local_queue="heavy")
    LocalQueue.objects.create(
        cluster=cluster, namespace="team", name="light", cluster_queue_name=queue.name, created_at=START
    )
    ClusterQueue.objects.update(priority_weights={"fair_share": 1000, "half_life_seconds": HOUR})
    Change.objects.all().delete()
    return cluster


def record(cluster: Cluster, queue: str, begin: float, end: float, **held: int) -> None:
    """A use of `queue` from `begin` to `end`, in hours before NOW."""
    times = [NOW - timedelta(hours=hours) for hours in (begin, end)]
    UsageRecord.objects.create(
        cluster=cluster, workload_uid="00000000-0000-0000-0000-00000000000a", namespace="team", workload_name="w",
        local_queue=queue, cluster_queue="main", priority=0, pods=1, reserved_at=times[0], started_at=times[0],
        ended_at=times[1], outcome="Finished", held={"default": held},
    )  # fmt: skip


def used(name: str) -> dict[str, float]:
    found: dict[str, float] = LocalQueue.objects.get(name=name).past_use["used"]
    return found


def test_use_counts_half_after_its_half_life(cluster: Cluster) -> None:
    record(cluster, "heavy", 1, 0, cpu=2000, memory=2**31)
    record(cluster, "light", 2, 1, cpu=2000)
    assert note_past_use(cluster, NOW) == 2
    whole = 2 * HOUR / log(2) * (1 - 0.5)
    assert used("heavy") == {"cpu": pytest.approx(whole), "memory": pytest.approx(whole)}
    assert used("light") == {"cpu": pytest.approx(whole / 2)}


def test_a_running_workload_counts_until_now(cluster: Cluster) -> None:
    make_workload(cluster, "w", {"cpu": "2"}, queue_name="light", created_at=NOW - timedelta(hours=2))
    Engine(cluster, "test", clock=lambda: (NOW - timedelta(hours=1)).timestamp()).run()
    note_past_use(cluster, NOW)
    assert used("light")["cpu"] == pytest.approx(2 * HOUR / log(2) * 0.5)


@pytest.mark.parametrize("steps", [[0.3, 1.7, 4.0, 25.0], [0.1, 0.2], [12.0]])
def test_use_that_is_noted_in_steps_is_that_of_one_look(cluster: Cluster, steps: list[float]) -> None:
    record(cluster, "heavy", 3, -20, cpu=3000)
    record(cluster, "heavy", 1, -0.5, cpu=500)
    for step in steps:
        note_past_use(cluster, NOW + timedelta(hours=step))
    in_steps = used("heavy")
    LocalQueue.objects.update(past_use={})
    note_past_use(cluster, NOW + timedelta(hours=max(steps)))
    assert in_steps == {name: pytest.approx(amount, rel=1e-6) for name, amount in used("heavy").items()}


def test_another_half_life_reads_all_records_again(cluster: Cluster) -> None:
    record(cluster, "heavy", 2, 1, cpu=1000)
    note_past_use(cluster, NOW)
    before = used("heavy")["cpu"]
    Cohort.objects.create(
        cluster=cluster,
        name="all",
        priority_weights={"fair_share": 1, "half_life_seconds": 100 * HOUR},
        created_at=START,
    )
    ClusterQueue.objects.update(cohort_name="all", priority_weights={})
    note_past_use(cluster, NOW)
    assert before < HOUR / 2 < HOUR * 0.98 < used("heavy")["cpu"] < HOUR


def test_without_fair_share_nothing_is_computed(cluster: Cluster) -> None:
    ClusterQueue.objects.update(priority_weights={"age": 1000})
    record(cluster, "heavy", 1, 0, cpu=2000)
    assert note_past_use(cluster, NOW) == 0
    assert LocalQueue.objects.get(name="heavy").past_use == {}


def test_a_note_is_no_edit_and_reaches_the_scheduler(cluster: Cluster) -> None:
    before = LocalQueue.objects.get(name="heavy").generation, Cluster.objects.get().configuration_generation
    audited = AuditRecord.objects.count()
    note_past_use(cluster, NOW)
    assert (LocalQueue.objects.get(name="heavy").generation, Cluster.objects.get().configuration_generation) == before
    assert AuditRecord.objects.count() == audited
    assert sorted(Change.objects.values_list("kind", "key")) == [
        ("localqueue", "team/heavy"), ("localqueue", "team/light"),
    ]  # fmt: skip


def test_the_user_who_used_less_starts_first(cluster: Cluster) -> None:
    """From the records of use to the decision of a cycle, with a priority class against it."""
    ClusterQueue.objects.update(priority_weights={"fair_share": 1000, "class": 1})
    FlavorQuota.objects.update(nominal_quota=1000)
    engine = Engine(cluster, "test", clock=NOW.timestamp)
    engine.run()
    record(cluster, "heavy", 5, 0, cpu=1000)
    note_past_use(cluster, NOW)
    make_workload(cluster, "a", {"cpu": "1"}, queue_name="heavy", priority=9, created_at=NOW)
    make_workload(cluster, "b", {"cpu": "1"}, queue_name="light", created_at=NOW)
    engine.run()
    assert dict(Workload.objects.values_list("name", "status")) == {"a": "Pending", "b": "Admitted"}
