"""The demo's past: rows that fit each other and the reports that read them, written once."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Count, F, Sum
from pytest_django import Settings

from accounts.models import Cluster
from foundation.time_series import Resolution, start_of
from gpus.services import observed_node, sync_node
from history.models import Count as Counted
from history.models import CountSample, DeviceSample, QuotaSample, Scope, Subject, UsageRecord, WorkloadSample
from history.services.series_reading import Reader, Selection, window
from kueueweb.demo.past import make_past
from kueueweb.demo.past_jobs import LIVE_SECONDS, past_jobs
from kueueweb.demo.past_run import PastRun
from queues.models import WorkloadPriorityClass
from scheduler.models import Decision
from scheduler.store.world_reading import read_world
from simulation.fleet import SEVERAL, fleet

pytestmark = pytest.mark.django_db

DAY: Final = timedelta(days=1)
NOW: Final = datetime(2026, 11, 28, 12, 30, tzinfo=UTC)
"""The past that is made depends on the hour before which it lies."""


@pytest.fixture
def cluster(settings: Settings) -> Cluster:
    settings.DEMO = True
    settings.DEMO_ACCOUNTS = [
        {"username": name, "password": name} for name in ("admin", "researcher", "operator", "student")
    ]
    call_command("demo_seed", fleet=SEVERAL)
    cluster = Cluster.objects.get()
    for manifest in fleet(SEVERAL):
        sync_node(cluster.pk, observed_node(manifest))
    return cluster


def test_it_is_written_once_beside_live_samples_and_its_rows_fit_each_other(cluster: Cluster) -> None:
    begin = start_of(NOW, Resolution.HOUR)
    sampled = Subject.objects.create(cluster=cluster, scope=Scope.CLUSTER)
    counts = {"pending": 0, "pending_peak": 0, "held": 0, "reserving": 0, "admitted": 0}
    WorkloadSample.objects.create(subject=sampled, at=NOW, **counts)
    WorkloadSample.objects.create(subject=sampled, at=begin, resolution=Resolution.HOUR, **counts)
    assert make_past(cluster, SEVERAL, 10.0, seed=1, now=NOW, days=1) > 100
    assert WorkloadSample.objects.filter(subject=sampled, resolution=Resolution.HOUR).count() >= 23
    _check_records(cluster)
    _check_counts(cluster)
    _check_devices()
    _check_charts(cluster)
    before = UsageRecord.objects.count(), WorkloadSample.objects.count()
    assert make_past(cluster, SEVERAL, 10.0, seed=2, now=NOW, days=1) == 0
    assert (UsageRecord.objects.count(), WorkloadSample.objects.count()) == before


def _check_records(cluster: Cluster) -> None:
    """No workload runs before it waits or after the demo begins, and each has its decisions."""
    records, decisions = UsageRecord.objects.filter(cluster=cluster), Decision.objects.filter(cluster_name=cluster.name)
    assert not records.exclude(queued_at__lte=F("reserved_at"), reserved_at__lt=F("ended_at")).exists()
    assert not records.filter(ended_at__gt=NOW).exists()
    assert not records.filter(queued_at__lt=NOW - DAY).exists()
    assert set(records.values_list("submitted_by", flat=True)) == {"researcher", "operator", "student"}
    admitted = decisions.filter(action="Admit")
    assert admitted.count() == records.count()
    assert set(admitted.values_list("workload_uid", flat=True)) == set(records.values_list("workload_uid", flat=True))
    assert records.filter(outcome="Preempted").count() == decisions.filter(action="Preempt").count()


def _check_counts(cluster: Cluster) -> None:
    counts = CountSample.objects.filter(resolution=Resolution.MINUTES, subject__scope=Scope.CLUSTER)
    started = counts.filter(subject__kind=Counted.STARTED).aggregate(all=Sum("total"))["all"]
    ended = counts.filter(subject__kind=Counted.ENDED).aggregate(all=Sum("total"))["all"]
    records = UsageRecord.objects.filter(cluster=cluster)
    assert (started, ended) == (records.count(), records.filter(outcome="Finished").count())


def _check_devices() -> None:
    """Devices and quota are held, and never more than there are."""
    of_cluster = DeviceSample.objects.filter(resolution=Resolution.MINUTES, subject__scope=Scope.CLUSTER)
    there = of_cluster.filter(subject__flavor="").values_list("devices", flat=True).distinct().get()
    held = of_cluster.values("at").annotate(held=Sum("devices_held")).values_list("held", flat=True)
    assert len(held) == DAY // timedelta(seconds=Resolution.MINUTES)
    assert there is not None
    assert 0.3 * there < max(held) <= there
    whole = QuotaSample.objects.filter(resolution=Resolution.MINUTES, subject__scope=Scope.CLUSTER)
    assert whole.exists()
    assert not whole.filter(used__gt=F("nominal")).exists()


def _check_charts(cluster: Cluster) -> None:
    """Every chart of the day has values without gaps."""
    day = window(NOW - DAY, NOW, None, NOW)
    lines = Reader(cluster.pk, day).lines(Selection(Scope.CLUSTER, None, ("admitted", "devices_held", "started")))
    assert {line.metric for line in lines} == {"admitted", "devices_held", "started"}
    assert all(value is not None for line in lines for value in line.values)


def test_a_workload_that_is_preempted_at_once_has_held_quota_for_a_while(cluster: Cluster) -> None:
    """In the day before this moment, the cycle after an admission preempts the admitted workload."""
    until = datetime(2026, 11, 28, 12, 30, tzinfo=UTC).timestamp()
    chance = random.Random(7)
    priorities = dict(WorkloadPriorityClass.objects.filter(cluster=cluster).values_list("name", "value"))
    run = PastRun(read_world(cluster, until - DAY.total_seconds(), holders=False), priorities, chance)
    assert list(run.run(past_jobs(SEVERAL, until, 1, 10.0, chance), [], int(until))) == []
    assert any(use.ended_at - use.reserved_at < 1 for use in run.uses)
    assert all(use.queued_at <= use.reserved_at < use.ended_at <= until for use in run.uses)


def test_the_last_jobs_run_as_fast_as_those_of_the_demo() -> None:
    """Estimates of the demo's first jobs rest on them."""
    until = 1_000_000.0
    jobs = list(past_jobs(SEVERAL, until, 1, 10.0, random.Random(1)))
    last = [job.run_seconds for job in jobs if job.at >= until - LIVE_SECONDS]
    assert len(last) > 100
    assert max(last) <= 360 < max(job.run_seconds for job in jobs)


def test_a_real_cluster_gets_no_past(settings: Settings, cluster: Cluster) -> None:
    settings.DEMO = False
    with pytest.raises(CommandError, match="Set DEMO=true"):
        call_command("demo_past")
    settings.DEMO = True
    Cluster.objects.update(simulated=False)
    with pytest.raises(CommandError, match="does not belong to a demo"):
        call_command("demo_past")
    assert UsageRecord.objects.aggregate(count=Count("pk"))["count"] == 0
