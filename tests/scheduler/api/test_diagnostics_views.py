"""How the scheduler, the push and the watcher of a cluster are doing."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import AuditFinding, Cluster
from accounts.services.watcher_health import beat
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import ServedObject, Workload
from queues.services.submission import create_workloads
from scheduler.models import Change, Lease, SchedulingCycle
from tests.api_client import SchemaClient

URL = "/api/v1/diagnostics/"


def make_cycle(cluster: Cluster, number: int, seconds: float, minutes_ago: float) -> None:
    SchedulingCycle.objects.create(
        cluster=cluster, epoch=3, number=number, started_at=timezone.now() - timedelta(minutes=minutes_ago),
        duration_seconds=seconds, heads=4, admitted=2, preempted=1, inadmissible=1,
    )  # fmt: skip


def test_of_a_cluster_where_nothing_runs(alice: SchemaClient) -> None:
    body = alice.get(URL).json()
    assert body["leader"] == {"alive": False, "holder": "", "epoch": 0, "acquired_at": None, "renewed_at": None}
    assert body["cycles"]["count"] == 0
    assert (body["cycles"]["p90_seconds"], body["cycles"]["last"]) == (None, None)
    assert body["push"] == {"waiting": 0, "oldest_at": None, "refused": 0, "held_off_by": ""}
    assert body["broken_rules"] == []


def test_what_each_part_does_and_what_waits(alice: SchemaClient, cluster: Cluster) -> None:
    for number, seconds in enumerate((0.1, 0.2, 0.3)):
        make_cycle(cluster, number, seconds, minutes_ago=50 - number)
    make_cycle(cluster, 9, 0.2, minutes_ago=1)
    Lease.objects.create(cluster=cluster, epoch=3, holder="host:1", renewed_at=timezone.now())
    specs = [WorkloadSpec("team-a", f"w{index}", "main", (PodSetSpec("main", 1, {}, {"cpu": 1}),)) for index in (0, 1)]
    create_workloads(cluster, specs, actor="alice")
    Workload.objects.filter(name="w0").update(push_sequence=2, push_error="pods is forbidden")
    Change.objects.all().delete()
    Change.objects.create(cluster_id=cluster.pk, kind="workload", object_id=1, key="team-a/w0")
    ServedObject.objects.create(cluster=cluster, kind="ClusterQueue", name="main", problem="spec.cohort: Unknown field")
    for subject in ("a", "b"):
        AuditFinding.objects.create(
            cluster=cluster, check_name="slots", subject=subject, message="x", first_seen_at=timezone.now(),
            confirmed=True,
        )  # fmt: skip
    beat(cluster.name, 0.0, True)

    body = alice.get(URL).json()
    assert (body["leader"]["alive"], body["leader"]["holder"], body["leader"]["epoch"]) == (True, "host:1", 3)
    cycles = body["cycles"]
    assert (cycles["count"], cycles["longest_seconds"], cycles["last"]["number"]) == (4, 0.3, 9)
    assert cycles["p50_seconds"] == pytest.approx(0.2)
    assert (body["notes"]["waiting"], body["notes"]["oldest_at"] is not None) == (1, True)
    assert (body["push"]["waiting"], body["push"]["refused"]) == (1, 1)
    assert body["watcher"]["alive"] is True
    assert body["served_object_problems"] == 1
    assert body["broken_rules"] == [{"check": "slots", "count": 2}]


def test_cycles_of_before_the_last_hour_are_not_in_its_times(alice: SchemaClient, cluster: Cluster) -> None:
    make_cycle(cluster, 1, 5.0, minutes_ago=61)
    cycles = alice.get(URL).json()["cycles"]
    assert (cycles["count"], cycles["longest_seconds"], cycles["last"]["duration_seconds"]) == (0, None, 5.0)


def test_who_keeps_us_from_telling_the_cluster(alice: SchemaClient, cluster: Cluster) -> None:
    Cluster.objects.update(kueue_is_alive=True, kueue_holder="kueue-controller-1")
    assert alice.get(URL).json()["push"]["held_off_by"] == "kueue-controller-1"


def test_it_is_for_those_who_see_everything(bob: SchemaClient) -> None:
    assert bob.get(URL).status_code == 403
