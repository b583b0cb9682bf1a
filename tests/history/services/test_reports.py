"""Reports on a small history whose numbers are worked out by hand.

Time runs in hours from midnight of 31 May 2026, UTC. Three users, two teams, one flavor `a100`:

    who    team    what                            waits   runs            ends
    ann    red     2 cpu, 4 GiB, half a device     1 h     22 h to 26 h    finished
    ann    red     the same                        3 h     23 h to 25 h    preempted
    bob    red     8 cpu, 2 devices                0       24 h to 34 h    finished (failed)
    cleo   blue    1 cpu, no device                2 h     30 h to now     runs on
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster
from history.models import DeviceSample, Price, QuotaSample, Scope, UsageRecord, WorkloadSample
from history.services.reports.idle import idle
from history.services.reports.preemptions import preemptions
from history.services.reports.table import Part, Report, Request, write_csv
from history.services.reports.usage import usage
from history.services.reports.waits import waits
from history.services.sampling.gathered import SubjectKey
from history.services.sampling.sample import subject_ids
from queues.models import PodSet, Workload
from tests.factories import make_cluster, make_workload

pytestmark = pytest.mark.django_db

BEGIN = datetime(2026, 5, 31, tzinfo=UTC)
GIB = 2**30


def at(hours: float) -> datetime:
    return BEGIN + timedelta(hours=hours)


def used(
    cluster: Cluster, user: str, namespace: str, waited: float, start: float, end: float, outcome: str, reason: str,
    held: dict[str, Any],
) -> None:  # fmt: skip
    UsageRecord.objects.create(
        cluster=cluster, workload_uid=uuid.uuid4(), namespace=namespace, workload_name=f"of-{user}",
        local_queue="queue", cluster_queue=f"{namespace}-queue", submitted_by=user, priority=0, pods=1,
        queued_at=at(start - waited), reserved_at=at(start), started_at=at(start), ended_at=at(end), outcome=outcome,
        reason=reason, held={"a100": held},
    )  # fmt: skip


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    small = {"cpu": 2000, "memory": 4 * GIB, "device": 0.5}
    used(cluster, "ann", "red", 1, 22, 26, "Finished", "Succeeded", small)
    used(cluster, "ann", "red", 3, 23, 25, "Preempted", "InCohortReclamation", small)
    used(cluster, "bob", "red", 0, 24, 34, "Finished", "Failed", {"cpu": 8000, "device": 2})
    runs = make_workload(cluster, "of-cleo", namespace="blue", submitted_by="cleo", created_at=at(28))
    Workload.objects.filter(pk=runs.pk).update(
        status="Admitted", quota_reserved_at=at(30), admitted_at=at(30), cluster_queue_name="blue-queue"
    )
    PodSet.objects.update(admitted_count=1, flavors={"cpu": "a100"}, resource_usage={"cpu": 1000})
    return cluster


def asked(
    cluster: Cluster, *by: str, since: float = 0, until: float = 40, namespaces: list[str] | None = None
) -> Request:
    return Request([Part(cluster.pk, cluster.name, namespaces)], at(since), at(until), by)


def rows(report: Report, *names: str) -> dict[Any, Any]:
    """The first columns of each row -> the cells of the named columns."""
    places = [[column.name for column in report.columns].index(name) for name in names]
    first = next(place for place, column in enumerate(report.columns) if column.kind != "text")
    return {tuple(row[:first]): tuple(row[place] for place in places) for row in report.rows}


def test_waits_and_throughput_by_user(cluster: Cluster) -> None:
    """Ann waited 1 and 3 hours: half of them within 2 hours, nine of ten within 2.8."""
    report = waits(asked(cluster, "user"))
    found = rows(report, "started", "wait_p50_seconds", "wait_p90_seconds", "finished", "failed", "preempted")
    assert found == {
        ("ann",): (2, 7200, 10_080, 1, 0, 1),
        ("bob",): (1, 0, 0, 1, 1, 0),
        ("cleo",): (1, 7200, 7200, 0, 0, 0),
    }
    assert rows(report, "device_hours") == {("ann",): (3.0,), ("bob",): (20.0,), ("cleo",): (0.0,)}
    assert report.totals["started"] == 4
    assert report.totals["wait_p50_seconds"] == 5400
    assert report.totals["device_hours"] == 23


def test_waits_by_size_count_what_started_and_ended_in_the_time(cluster: Cluster) -> None:
    """From 24 h to 28 h: bob's start, ann's two ends; of ann's half devices 2 h and 1 h."""
    report = waits(asked(cluster, "size", since=24, until=28))
    assert rows(report, "started", "finished", "preempted", "device_hours") == {
        ("2 to 7 devices",): (1, 0, 0, 8.0),
        ("part of a device",): (0, 1, 1, 1.5),
    }


def test_use_is_split_at_the_turn_of_the_month(cluster: Cluster) -> None:
    """June begins after 24 h. Ann's first run: 2 h in May and 2 h in June; her second: 1 h in each; half a device."""
    report = usage(asked(cluster, "month", "user"))
    found = rows(report, "hours")
    assert found["2026-05", "ann", "device"] == (1.5,)
    assert found["2026-06", "ann", "device"] == (1.5,)
    assert found["2026-05", "ann", "cpu"] == (6.0,)
    assert found["2026-06", "ann", "memory"] == (12.0,)
    assert found["2026-06", "bob", "device"] == (20.0,)
    assert ("2026-05", "bob", "device") not in found
    assert found["2026-06", "cleo", "cpu"] == (10.0,)
    assert len(found) == 9


def test_prices_of_a_flavor_come_before_those_of_all(cluster: Cluster) -> None:
    """A device of a100 costs 2.50 an hour, a core 0.10 anywhere; memory has no price."""
    for flavor, resource, per_hour in (("a100", "device", "2.5"), ("", "device", "1"), ("", "cpu", "0.1")):
        Price.objects.create(cluster=cluster, flavor=flavor, resource=resource, per_hour=per_hour, currency="EUR")
    report = usage(asked(cluster, "namespace"))
    found = rows(report, "hours", "cost")
    assert found["red", "device"] == (23.0, 57.5)
    assert found["red", "cpu"] == (92.0, 9.2)
    assert found["red", "memory"] == (24.0, None)
    assert found["blue", "cpu"] == (10.0, 1.0)
    assert report.currency == "EUR"
    assert report.totals["cost"] == pytest.approx(67.7)


def test_use_against_quota(cluster: Cluster) -> None:
    """Ten cores of quota for two sampled hours are 20 core-hours; red used 2 + 2 + 8 cores."""
    queue = SubjectKey(Scope.CLUSTER_QUEUE, "red-queue")
    cell = SubjectKey(Scope.CLUSTER_QUEUE, "red-queue", "", "a100", "cpu")
    whole = SubjectKey(Scope.CLUSTER)
    ids = subject_ids(cluster.pk, [queue, cell, whole])
    for hours in (24, 25):
        for key in (queue, whole):
            WorkloadSample.objects.create(
                subject_id=ids[key], resolution=3600, at=at(hours), samples=240, pending=0, pending_peak=0, held=0,
                reserving=0, admitted=0,
            )  # fmt: skip
        QuotaSample.objects.create(
            subject_id=ids[cell], resolution=3600, at=at(hours), samples=240, nominal=240 * 10_000, used=0, used_peak=0
        )
    report = usage(asked(cluster, "cluster_queue", "flavor", since=24, until=26))
    found = rows(report, "hours", "quota_hours")
    assert found["red-queue", "a100", "cpu"] == (4.0 + 2.0 + 16.0, 20.0)
    assert found["red-queue", "a100", "device"] == (1.0 + 0.5 + 4.0, None)


def test_idle_devices_and_what_they_cost(cluster: Cluster) -> None:
    """An hour rolled up and four raw samples of a minute after it: each unit of time counts once."""
    Price.objects.create(cluster=cluster, flavor="a100", resource="device", per_hour="3", currency="EUR")
    user = SubjectKey(Scope.USER, "red/ann", flavor="a100")
    pk = subject_ids(cluster.pk, [user])[user]
    amounts = {"memory_held_mib": 2000.0, "memory_used_mib": 500.0, "cores_held_percent": 100.0}
    DeviceSample.objects.create(
        subject_id=pk, resolution=3600, at=at(1), samples=240, devices_held=480, devices_idle=120,
        devices_unmeasured=240, **{name: 240 * value for name, value in amounts.items()},
    )  # fmt: skip
    for resolution, hours in ((300, 1.0), (15, 1.5)):
        DeviceSample.objects.create(
            subject_id=pk, resolution=resolution, at=at(hours), devices_held=9, devices_idle=9, devices_unmeasured=0,
            **amounts,
        )  # fmt: skip
    for seconds in range(0, 60, 15):
        DeviceSample.objects.create(
            subject_id=pk, at=at(2) + timedelta(seconds=seconds), devices_held=1.5, devices_idle=1.5,
            devices_unmeasured=0, **amounts,
        )  # fmt: skip
    report = idle(asked(cluster, until=3))
    [row] = report.rows
    assert row[:3] == ["red", "ann", "a100"]
    assert list(row[3:8]) == [2.025, 0.525, 1.0, 25.0, None]
    assert row[8] == pytest.approx(1.575)
    assert report.totals["idle_cost"] == pytest.approx(1.575)
    assert not idle(asked(cluster, until=3, namespaces=["blue"])).rows


def preempt(hours: float, namespace: str, queue: str, by_queue: str, uid: uuid.UUID, cluster: str = "default") -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO scheduler_decision (decided_at, cluster_name, epoch, cycle, action, namespace, workload_name, "
            "workload_uid, cluster_queue_name, reason, message, detail) VALUES (%s, %s, 1, 1, 'Preempt', %s, "
            "'one', %s, %s, 'InCohortReclamation', '', jsonb_build_object('preemptor', 'blue/w', "
            "'preemptor_cluster_queue', %s::text))",
            [at(hours), cluster, namespace, uid, queue, by_queue],
        )


def test_who_preempted_whom(cluster: Cluster) -> None:
    """One workload of red was preempted twice for blue, another once; a third before the time."""
    first, second = uuid.uuid4(), uuid.uuid4()
    for hours, uid in ((1, first), (2, first), (26, second), (-1, second)):
        preempt(hours, "red", "red-queue", "blue-queue", uid)
    report = preemptions(asked(cluster))
    assert [row[:5] for row in report.rows] == [["red-queue", "blue-queue", "InCohortReclamation", 3, 2]]
    by_day = preemptions(asked(cluster, "day"))
    assert rows(by_day, "preemptions") == {("2026-05-31",): (2,), ("2026-06-01",): (1,)}


def test_a_tenant_does_not_learn_for_whom_its_workloads_made_room(cluster: Cluster) -> None:
    preempt(1, "red", "red-queue", "blue-queue", uuid.uuid4())
    report = preemptions(asked(cluster, namespaces=["red"]))
    assert "blue" not in str(report)
    report = preemptions(asked(cluster, "preemptor", namespaces=["red"]))
    assert "blue" not in str(report)
    assert not preemptions(asked(cluster, namespaces=["blue"])).rows


def test_a_tenants_report_is_of_its_namespaces(cluster: Cluster) -> None:
    assert set(rows(waits(asked(cluster, "user", namespaces=["blue"])), "started")) == {("cleo",)}
    assert {row[0] for row in usage(asked(cluster, "user", namespaces=["blue"])).rows} == {"cleo"}
    assert not usage(asked(cluster, "user", namespaces=[])).rows


@pytest.fixture
def west(cluster: Cluster) -> Cluster:
    """Another cluster, in which ann of red holds a device for four hours."""
    west = make_cluster("west")
    used(west, "ann", "red", 2, 20, 24, "Finished", "Succeeded", {"device": 1})
    return west


def asked_of(*parts: tuple[Cluster, list[str] | None], by: tuple[str, ...] = ()) -> Request:
    return Request([Part(row.pk, row.name, mine) for row, mine in parts], at(0), at(40), by)


def test_several_clusters_are_told_apart_and_added_up(cluster: Cluster, west: Cluster) -> None:
    """Ann waited 1 h and 3 h in one, 2 h in the other; bob not at all; cleo 2 h."""
    both = (cluster, None), (west, None)
    report = waits(asked_of(*both))
    assert rows(report, "started", "device_hours") == {
        ("default", "blue-queue"): (1, 0.0),
        ("default", "red-queue"): (3, 23.0),
        ("west", "red-queue"): (1, 4.0),
    }
    assert (report.totals["started"], report.totals["wait_p50_seconds"]) == (5, 7200), "of all, not of the rows"
    assert rows(waits(asked_of(*both, by=("user",))), "started")[("ann",)] == (3,), "without `cluster`, together"
    assert rows(usage(asked_of(*both)), "hours")["west", "2026-05", "red", "a100", "device"] == (4.0,)
    assert rows(waits(asked_of((cluster, ["blue"]), (west, ["red"]))), "started") == {
        ("default", "blue-queue"): (1,),
        ("west", "red-queue"): (1,),
    }


def test_prices_are_those_of_the_workloads_own_cluster(cluster: Cluster, west: Cluster) -> None:
    Price.objects.create(cluster=cluster, resource="device", per_hour="2", currency="EUR")
    Price.objects.create(cluster=west, resource="device", per_hour="5", currency="EUR")
    request = asked_of((cluster, None), (west, None), by=("namespace",))
    report = usage(request)
    assert rows(report, "hours", "cost")["red", "device"] == (27.0, 23 * 2 + 4 * 5)
    assert (report.currency, report.totals["cost"]) == ("EUR", 66)


def test_costs_in_several_currencies_are_not_added_up(cluster: Cluster, west: Cluster) -> None:
    Price.objects.create(cluster=cluster, resource="device", per_hour="2", currency="EUR")
    Price.objects.create(cluster=west, resource="device", per_hour="5", currency="USD")
    request = asked_of((cluster, None), (west, None), by=("namespace",))
    report = usage(request)
    found = rows(report, "cost")
    assert found["red", "EUR", "device"] == (46.0,)
    assert found["red", "USD", "device"] == (20.0,)
    assert (report.currency, report.totals["cost"]) == ("", None)
    quotas = ("cluster_queue", "flavor")
    for by, shown in ((quotas, False), ((*quotas, "cluster"), True)):
        columns = usage(asked_of((cluster, None), (west, None), by=by)).columns
        assert ("quota_hours" in {column.name for column in columns}) is shown, "a quota is in no currency"

    for place, held in ((cluster, 1.0), (west, 2.0)):
        pk = subject_ids(place.pk, [SubjectKey(Scope.USER, "red/ann", flavor="a100")])
        DeviceSample.objects.create(
            subject_id=next(iter(pk.values())), resolution=3600, at=at(1), samples=240, devices_held=240 * held,
            devices_idle=240 * held, devices_unmeasured=0, memory_held_mib=1, cores_held_percent=1,
        )  # fmt: skip
    unused = idle(asked_of((cluster, None), (west, None)))
    assert rows(unused, "idle_device_hours", "idle_cost") == {
        ("west", "red", "ann", "a100", "USD"): (2.0, 10.0),
        ("default", "red", "ann", "a100", "EUR"): (1.0, 2.0),
    }
    assert unused.totals == {"held_device_hours": 3, "idle_device_hours": 3, "unmeasured_device_hours": 0}


def test_quota_and_what_is_stranded_are_added_up(cluster: Cluster, west: Cluster) -> None:
    for place, cores, stranded in ((cluster, 10_000, 1.5), (west, 6_000, 0.5)):
        cell, whole = SubjectKey(Scope.CLUSTER_QUEUE, "red-queue", "", "a100", "cpu"), SubjectKey(Scope.CLUSTER)
        ids = subject_ids(place.pk, [cell, whole])
        QuotaSample.objects.create(
            subject_id=ids[cell], resolution=3600, at=at(24), samples=240, nominal=240 * cores, used=0, used_peak=0
        )
        DeviceSample.objects.create(
            subject_id=ids[whole], resolution=3600, at=at(24), samples=240, devices_stranded=240 * stranded,
            devices_held=0, devices_idle=0, devices_unmeasured=0, memory_held_mib=0, cores_held_percent=0,
        )  # fmt: skip
    both = (cluster, None), (west, None)
    report = usage(asked_of(*both, by=("cluster_queue", "flavor")))
    assert rows(report, "quota_hours")["red-queue", "a100", "cpu"] == (16.0,)
    assert report.totals["stranded_device_hours"] == 2
    apart = usage(asked_of(*both, by=("flavor", "cluster", "cluster_queue")))
    assert rows(apart, "quota_hours")["a100", "default", "red-queue", "cpu"] == (10.0,)
    tenant = usage(asked_of((cluster, ["red"]), (west, None)))
    assert tenant.totals["stranded_device_hours"] == 0.5, "of what she sees all of"


def test_a_report_with_quota_takes_any_number_of_queues(cluster: Cluster) -> None:
    """More than 300 cells of quota were a server error."""
    cells = [SubjectKey(Scope.CLUSTER_QUEUE, f"q{number}", "", "a100", "cpu") for number in range(301)]
    ids = subject_ids(cluster.pk, [*cells, SubjectKey(Scope.CLUSTER)])
    QuotaSample.objects.bulk_create(
        QuotaSample(subject_id=ids[cell], resolution=3600, at=at(24), samples=240, nominal=1, used=0, used_peak=0)
        for cell in cells
    )
    assert usage(asked(cluster, "cluster_queue", "flavor")).rows


def test_who_is_a_tenant_of_one_cluster_only_learns_for_whom_room_was_made_in_the_other(
    cluster: Cluster, west: Cluster
) -> None:
    for name in ("default", "west"):
        preempt(1, "red", "red-queue", f"{name}-queue", uuid.uuid4(), name)
    report = preemptions(asked_of((cluster, ["red"]), (west, None)))
    assert set(rows(report, "preemptions")) == {
        ("default", "red-queue", "", "InCohortReclamation"),
        ("west", "red-queue", "west-queue", "InCohortReclamation"),
    }
    assert "default-queue" not in str(report)


def test_csv_is_quoted_and_holds_no_formula(cluster: Cluster) -> None:
    UsageRecord.objects.filter(submitted_by="ann").update(submitted_by='=HYPERLINK("x"),1')
    lines = write_csv(waits(asked(cluster, "user"))).split("\r\n")
    assert lines[0].startswith("user,started,wait_p50_seconds")
    assert any(line.startswith('"\'=HYPERLINK(""x""),1",2,') for line in lines)
