"""What is kept, and for how long."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest

from accounts.models import Cluster
from queues.models import Reservation, Workload, WorkloadEvent
from queues.services.workloads import record_finished
from scheduler.housekeeping.retention import delete_expired_workloads, drop_old_history
from scheduler.models import SchedulingCycle
from tests.factories import START, make_cluster, make_workload

pytestmark = pytest.mark.django_db


def policies(**workloads: str) -> Cluster:
    return make_cluster(configuration={"objectRetentionPolicies": {"workloads": workloads}})


def deactivate(name: str, reason: str) -> None:
    evicted = {
        "type": "Evicted",
        "status": "True",
        "reason": reason,
        "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    Workload.objects.filter(name=name).update(active=False, evicted_at=START, conditions=[evicted])


def test_without_a_policy_everything_stays() -> None:
    cluster = make_cluster()
    make_workload(cluster, "one")
    record_finished(cluster, [("team", "one")], now=START)
    assert delete_expired_workloads(cluster, START + timedelta(days=1000)) == 0
    assert Workload.objects.exists()


def test_finished_workloads_go_and_their_events_stay() -> None:
    cluster = policies(afterFinished="1h")
    for name in ("old", "new", "running"):
        make_workload(cluster, name)
    record_finished(cluster, [("team", "old")], now=START)
    record_finished(cluster, [("team", "new")], now=START + timedelta(minutes=30))
    assert delete_expired_workloads(cluster, START + timedelta(hours=1)) == 1
    assert set(Workload.objects.values_list("name", flat=True)) == {"new", "running"}
    assert list(WorkloadEvent.objects.filter(workload_name="old").values_list("reason", flat=True)) == [
        "Finished",
        "Deleted",
    ]


def test_only_what_kueue_deactivated_is_ended() -> None:
    cluster = policies(afterDeactivatedByKueue="10m")
    for name in ("by-kueue", "by-user"):
        make_workload(cluster, name)
    deactivate("by-kueue", "DeactivatedDueToRequeuingLimitExceeded")
    deactivate("by-user", "Deactivated")
    assert delete_expired_workloads(cluster, START + timedelta(minutes=9)) == 0
    assert delete_expired_workloads(cluster, START + timedelta(minutes=10)) == 1
    assert dict(Workload.objects.values_list("name", "status")) == {"by-kueue": "Finished", "by-user": "Pending"}


def test_history_beyond_the_retention_goes() -> None:
    cluster = make_cluster()
    for days in (1, 400):
        at = START - timedelta(days=days)
        WorkloadEvent.objects.create(
            cluster=cluster,
            workload_uid=uuid.uuid4(),
            namespace="team",
            workload_name=f"{days}",
            at=at,
            reason="Created",
        )
        SchedulingCycle.objects.create(
            cluster=cluster, epoch=1, number=days, started_at=at, duration_seconds=0.1, heads=1, admitted=1,
            preempted=0, inadmissible=0,
        )  # fmt: skip
    drop_old_history(START)
    assert WorkloadEvent.objects.get().workload_name == "1"
    assert SchedulingCycle.objects.get().number == 1


def test_reservations_that_ended_long_ago_are_deleted_and_recurring_ones_stay() -> None:
    cluster = make_cluster()
    for name, days, recurrence in (("old", 181, "None"), ("young", 179, "None"), ("weekly", 181, "Weekly")):
        end = START - timedelta(days=days)
        Reservation.objects.create(
            cluster=cluster, name=name, node_names=["a"], starts_at=end - timedelta(hours=1), ends_at=end,
            recurrence=recurrence, created_at=end,
        )  # fmt: skip
    drop_old_history(START)
    assert set(Reservation.objects.values_list("name", flat=True)) == {"young", "weekly"}
