"""The ledger of preemptions and the report on fairness, on a small history whose numbers are worked out by hand."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster, RoleBinding
from accounts.models import Role as UserRole
from history.models import QuotaSample, Scope, UsageRecord, WorkloadSample
from history.services.reports.fairness import fairness
from history.services.reports.loops import loops
from history.services.reports.preemptions import preemptions
from history.services.reports.table import Part, Report, Request
from history.services.sampling.gathered import SubjectKey
from history.services.sampling.sample import subject_ids
from queues.models import Cohort, LocalQueue, PodSet, Workload
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.users import client_of, make_user

pytestmark = pytest.mark.django_db
BEGIN = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=5)
GPU = "nvidia.com/gpu"


def at(hours: float) -> datetime:
    return BEGIN + timedelta(hours=hours)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def asked(
    cluster: Cluster, *by: str, since: float = 0, until: float = 72, namespaces: Sequence[str] | None = None,
    queues: Sequence[str] | None = None,
) -> Request:  # fmt: skip
    return Request([Part(cluster.pk, cluster.name, namespaces, queues)], at(since), at(until), by)


def preempt(hours: float, victim: str, preemptor: str, uid: uuid.UUID | None = None, cluster: str = "default") -> None:
    """The workload `red/a` is of `red-queue`."""
    namespace, _, name = victim.partition("/")
    other = preemptor.partition("/")[0]
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO scheduler_decision (decided_at, cluster_name, epoch, cycle, action, namespace, workload_name, "
            "workload_uid, cluster_queue_name, reason, message, detail) VALUES (%s, %s, 1, 1, 'Preempt', %s, "
            "%s, %s, %s, 'InCohortReclamation', '', jsonb_build_object('preemptor', %s::text, "
            "'preemptor_cluster_queue', %s::text))",
            [
                at(hours), cluster, namespace, name, uid or uuid.uuid4(), f"{namespace}-queue", preemptor,
                f"{other}-queue",
            ],
        )  # fmt: skip


def ran(cluster: Cluster, uid: uuid.UUID, reserved: float, start: float, end: float, devices: float) -> None:
    UsageRecord.objects.create(
        cluster=cluster, workload_uid=uid, namespace="red", workload_name="a", cluster_queue="red-queue", priority=0,
        pods=1, reserved_at=at(reserved), started_at=at(start), ended_at=at(end), outcome="Preempted",
        held={"a100": {"device": devices, "cpu": 1000}, "spot": {"device": devices}},
    )  # fmt: skip


def cells(report: Report, *names: str) -> list[tuple[Any, ...]]:
    places = [[column.name for column in report.columns].index(name) for name in names]
    return [tuple(row[place] for place in places) for row in report.rows]


def test_the_hours_that_a_victim_had_run_for_are_lost(cluster: Cluster) -> None:
    """Two runs of one workload with 2 devices: 3 h until the first preemption, whose pods took another hour to stop; of
    the second, grown from 2 to 4 devices, 1 h and 2 h. Earlier runs do not count again."""
    uid = uuid.uuid4()
    ran(cluster, uid, 1, 1, 5, 1)
    ran(cluster, uid, 6, 6, 7, 1)
    ran(cluster, uid, 6, 7, 9, 2)
    preempt(4, "red/a", "blue/w", uid)
    preempt(9, "red/a", "blue/w", uid)
    report = preemptions(asked(cluster, "cluster_queue", "preemptor_cluster_queue"))
    assert cells(report, "cluster_queue", "preemptor_cluster_queue", "preemptions", "lost_device_hours") == [
        ("red-queue", "blue-queue", 2, 2 * 3 + 2 * 1 + 4 * 2)
    ]
    assert report.totals["lost_device_hours"] == 16


def test_a_victim_whose_pods_still_stop_has_lost_its_hours_and_one_without_records_is_unknown(cluster: Cluster) -> None:
    workload = make_workload(cluster, "a", namespace="red")
    Workload.objects.filter(pk=workload.pk).update(quota_reserved_at=at(1), evicted_at=at(3), status="Evicted")
    PodSet.objects.update(admitted_count=1, flavors={"cpu": "a100"}, resource_usage={"cpu": 1000})
    preempt(3, "red/a", "blue/w", workload.uid)
    assert cells(preemptions(asked(cluster, "reason")), "lost_device_hours") == [(0,)], "it held no device"
    preempt(4, "green/b", "blue/w")
    report = preemptions(asked(cluster, "cluster_queue"))
    assert cells(report, "cluster_queue", "lost_device_hours") == [("green-queue", None), ("red-queue", 0)]


def test_loops_are_pairs_that_displace_each_other(cluster: Cluster) -> None:
    """Red and blue in turns; green displaces red and is never displaced."""
    for hours, victim, preemptor in (
        (1, "red/a", "blue/w"),
        (2, "red/b", "blue/w"),
        (3, "blue/w", "red/a"),
        (4, "red/a", "blue/w"),
        (5, "red/a", "green/x"),
        (6, "red/a", "red/c"),
    ):
        preempt(hours, victim, preemptor)
    report = loops(asked(cluster))
    names = ("cluster_queue", "other_cluster_queue", "turns", "displaced", "displaced_by")
    assert cells(report, *names) == [("blue-queue", "red-queue", 2, 3, 1)]
    by_workload = loops(asked(cluster, "workload"))
    assert cells(by_workload, "workload", "other_workload", "turns") == [("blue/w", "red/a", 2)]
    assert not loops(asked(cluster, since=3.5)).rows, "in that time only one displaced the other"


def test_a_tenant_sees_loops_between_its_own_namespaces_alone(cluster: Cluster) -> None:
    for hours, victim, preemptor in (
        (1, "red/a", "blue/w"),
        (2, "blue/w", "red/a"),
        (3, "red/a", "pink/p"),
        (4, "pink/p", "red/a"),
    ):
        preempt(hours, victim, preemptor)
    report = loops(asked(cluster, "namespace", namespaces=["pink", "red"]))
    assert cells(report, "namespace", "other_namespace") == [("pink", "red")]
    assert not loops(asked(cluster, namespaces=["red"])).rows


def sample(
    cluster: Cluster, queue: str, hours: float, *, nominal: int, used: int, pending: float, resource: str = GPU,
    flavors: Sequence[str] = ("a100",), resolution: int = 3600,
) -> None:  # fmt: skip
    """An hour, or five minutes, of a queue; quota and use are split over the flavors."""
    number = resolution // 15
    whole = SubjectKey(Scope.CLUSTER_QUEUE, queue)
    quotas = [SubjectKey(Scope.CLUSTER_QUEUE, queue, "", flavor, resource) for flavor in flavors]
    ids = subject_ids(cluster.pk, [whole, *quotas])
    WorkloadSample.objects.get_or_create(
        subject_id=ids[whole], resolution=resolution, at=at(hours),
        defaults={
            "samples": number, "pending": pending * number, "pending_peak": 1, "held": 0, "reserving": 0, "admitted": 0
        },
    )  # fmt: skip
    for place, quota in enumerate(quotas):
        QuotaSample.objects.create(
            subject_id=ids[quota], resolution=resolution, at=at(hours), samples=number,
            nominal=number * nominal // len(flavors), used=number * used if place == 0 else 0, used_peak=0,
        )  # fmt: skip


@pytest.fixture
def tree(cluster: Cluster) -> Cluster:
    """`red` and `blue` in cohorts below `all`, `green` in another tree."""
    Cohort.objects.create(cluster=cluster, name="left", parent_name="all", created_at=BEGIN)
    for name, cohort in (("red", "left"), ("blue", "all"), ("pink", "all"), ("green", "")):
        make_cluster_queue(cluster, name, local_queue="", cohort_name=cohort)
    return cluster


def test_the_difference_counts_while_workloads_wait_and_has_holders(tree: Cluster) -> None:
    """Three hours of red with a quota of 10. First hour: 4 used, others wait: 6 missing, of which blue holds 3 beyond
    its own and pink 1, 2 are idle. Second: 4 used and nothing waits. Third: 10 used."""
    sample(tree, "red", 0, nominal=10, used=4, pending=2, flavors=("a100", "h100"))
    sample(tree, "blue", 0, nominal=5, used=8, pending=1)
    sample(tree, "pink", 0, nominal=5, used=6, pending=0)
    sample(tree, "green", 0, nominal=0, used=9, pending=0)
    sample(tree, "red", 1, nominal=10, used=4, pending=0.4)
    sample(tree, "red", 2, nominal=10, used=10, pending=5)
    report = fairness(asked(tree))
    names = (
        "cluster_queue",
        "resource",
        "missing_hours",
        "below_seconds",
        "used_percent",
        "entitled_hours",
        "used_hours",
    )
    assert cells(report, *names) == [
        ("red", GPU, 6, 3600, 60, 30, 18),
        ("blue", GPU, 0, 0, 160, 5, 8),
        ("green", GPU, 0, 0, None, 0, 9),
        ("pink", GPU, 0, 0, 120, 5, 6),
    ]
    holders = fairness(asked(tree, "holder"))
    assert cells(holders, "cluster_queue", "holder", "held_hours", "held_percent") == [
        ("red", "blue", 3, 50),
        ("red", "(idle)", 2, 33.3),
        ("red", "pink", 1, 16.7),
    ]


def test_what_two_queues_miss_is_held_once(tree: Cluster) -> None:
    """Blue holds 4 beyond its own; red misses 6 and pink 2: they share the 4 as they miss."""
    sample(tree, "red", 0, nominal=6, used=0, pending=1)
    sample(tree, "pink", 0, nominal=2, used=0, pending=1)
    sample(tree, "blue", 0, nominal=1, used=5, pending=1)
    assert set(cells(fairness(asked(tree, "holder")), "cluster_queue", "holder", "held_hours")) == {
        ("red", "(idle)", 3),
        ("red", "blue", 3),
        ("pink", "(idle)", 1),
        ("pink", "blue", 1),
    }


def test_amounts_are_in_units_and_a_short_period_in_steps_of_five_minutes(tree: Cluster) -> None:
    """In an hour that is rolled up, the queue was below for five minutes of twelve times five."""
    for step in range(12):
        used = 1000 if step == 3 else 4000
        sample(tree, "red", step / 12, nominal=4000, used=used, pending=1, resource="cpu", resolution=300)
    sample(tree, "red", 0, nominal=4000, used=3750, pending=1, resource="cpu")
    assert cells(fairness(asked(tree, until=24)), "below_seconds", "missing_hours") == [(300, 0.25)]
    assert cells(fairness(asked(tree)), "below_seconds", "missing_hours") == [(3600, 0.25)]


def test_a_tenant_sees_its_own_queues_and_no_name_of_a_holder(tree: Cluster) -> None:
    sample(tree, "red", 0, nominal=10, used=4, pending=2)
    sample(tree, "blue", 0, nominal=0, used=3, pending=0)
    sample(tree, "pink", 0, nominal=0, used=3, pending=0)
    rows = cells(fairness(asked(tree, "holder", queues=["red", "pink"])), "cluster_queue", "holder", "held_hours")
    assert set(rows) == {("red", "(other queues)", 3), ("red", "pink", 3)}
    assert cells(fairness(asked(tree, queues=["pink"])), "cluster_queue") == [("pink",)]


def test_names_over_rest_are_those_that_the_reader_may_see_now(tree: Cluster) -> None:
    sample(tree, "red", 0, nominal=10, used=4, pending=2)
    sample(tree, "blue", 0, nominal=0, used=6, pending=0)
    LocalQueue.objects.create(cluster=tree, namespace="team", name="local", cluster_queue_name="red", created_at=BEGIN)
    RoleBinding.objects.create(cluster=tree, username="tenant", role=UserRole.VIEWER, namespace="team")
    client = client_of(make_user("tenant"))

    def read() -> str:
        address = f"/api/v1/reports/fairness/?by=holder&since={BEGIN:%Y-%m-%dT%H:%M:%SZ}"
        answers = [client.get(address), client.get(address.replace("by=holder&", ""))]
        assert {answer.status_code for answer in answers} == {200}
        return " ".join(answer.content.decode() for answer in answers)

    assert "red" in read()
    assert "blue" not in read()
    LocalQueue.objects.update(cluster_queue_name="blue")
    assert "blue" in read()
    assert "red" not in read()


def test_a_queue_that_is_deleted_is_reported_to_those_who_see_all(tree: Cluster) -> None:
    sample(tree, "gone", 0, nominal=10, used=4, pending=2)
    assert cells(fairness(asked(tree, "holder")), "cluster_queue", "holder") == [("gone", "(idle)")]
