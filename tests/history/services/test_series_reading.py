"""Series as they are read: means, sums and percentiles over any step, over rolled-up and raw samples alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from accounts.models import Cluster
from foundation.time_series import Resolution
from history.models import CountSample, QuotaSample, Scope, Subject, WorkloadSample
from history.services.retention import RETENTION, prune_history, roll_up_history
from history.services.sampling.gathered import SubjectKey
from history.services.sampling.sample import subject_ids
from history.services.series_reading import Line, Reader, Selection, TooFine, TooMany, window
from history.services.waits import bounds_of, bucket_of, percentile
from tests.factories import make_cluster

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
RAW = timedelta(seconds=15)


@pytest.fixture
def cluster() -> Cluster:
    return make_cluster()


def subject(cluster: Cluster, *key: str) -> int:
    wanted = SubjectKey(Scope(key[0]), *key[1:])
    return subject_ids(cluster.pk, [wanted])[wanted]


def note(cluster: Cluster, at: datetime, pending: int, scope: str = "cluster", name: str = "") -> None:
    WorkloadSample.objects.create(
        subject_id=subject(cluster, scope, name), at=at, pending=pending, pending_peak=pending, held=0, reserving=0,
        admitted=0,
    )  # fmt: skip


def count(cluster: Cluster, at: datetime, kind: str, detail: str, total: int) -> None:
    key = ("cluster", "", kind, "", "", detail)
    CountSample.objects.create(subject_id=subject(cluster, *key), at=at, total=total)


def read(cluster: Cluster, *metrics: str, since: datetime, until: datetime, step: int, now: datetime) -> list[Line]:
    reader = Reader(cluster.pk, window(since, until, step, now))
    return reader.lines(Selection(Scope.CLUSTER, None, metrics))


def values(lines: list[Line]) -> list[float | None]:
    [line] = lines
    return list(line.values)


def test_a_gap_is_no_zero_and_a_mean_is_over_what_was_sampled(cluster: Cluster) -> None:
    """Two samples of 10 and 20 in the first minute, none in the second, one of 0 in the third."""
    note(cluster, NOON, 10)
    note(cluster, NOON + RAW, 20)
    note(cluster, NOON + timedelta(minutes=2), 0)
    over: dict[str, Any] = {"since": NOON, "until": NOON + timedelta(minutes=3), "step": 60}
    assert values(read(cluster, "pending", now=NOON + timedelta(minutes=3), **over)) == [15, None, 0]
    assert values(read(cluster, "pending_peak", now=NOON + timedelta(minutes=3), **over)) == [20, None, 0]
    assert values(read(cluster, "started", now=NOON + timedelta(minutes=3), **over)) == [0, None, 0]


def test_a_mean_of_an_hour_counts_each_sample_once_however_often_it_is_rolled_up(cluster: Cluster) -> None:
    """One sample of 100 in the first five minutes and three of 20 in the next: the mean is 40, not 60."""
    note(cluster, NOON, 100)
    for index in range(3):
        note(cluster, NOON + timedelta(minutes=5) + index * RAW, 20)
    now = NOON + timedelta(hours=1, minutes=1)
    over: dict[str, Any] = {"since": NOON, "until": NOON + timedelta(hours=1), "step": 3600, "now": now}
    raw = values(read(cluster, "pending", **over))
    for _ in range(2):
        roll_up_history(now)
    assert WorkloadSample.objects.get(resolution=Resolution.HOUR).samples == 4
    assert raw == values(read(cluster, "pending", **over)) == [40]
    assert values(read(cluster, "pending_peak", **over)) == [100]


def test_what_is_not_rolled_up_yet_is_read_as_it_came(cluster: Cluster) -> None:
    """An hour and twenty minutes: one whole hour is rolled up, then three steps of five minutes, the rest is raw."""
    now = NOON + timedelta(hours=1, minutes=18)
    for minutes in range(78):
        note(cluster, NOON + timedelta(minutes=minutes), minutes)
    roll_up_history(now)
    WorkloadSample.objects.filter(resolution=Resolution.RAW, at__lt=NOON + timedelta(minutes=60)).delete()
    WorkloadSample.objects.filter(resolution=Resolution.MINUTES, at__lt=NOON + timedelta(minutes=60)).delete()
    found = read(cluster, "pending", since=NOON, until=now, step=3600, now=now)
    assert values(found) == [29.5, sum(range(60, 78)) / 18]


def test_percentiles_come_from_added_up_histograms(cluster: Cluster) -> None:
    """99 waits of about 10 s in one step and one of about 1,000 s in another: the p50 of both is 10 s."""
    for minutes, seconds, number in ((0, 10, 99), (5, 1000, 1)):
        at = NOON + timedelta(minutes=minutes)
        note(cluster, at, 0)
        count(cluster, at, "wait", str(bucket_of(seconds)), number)
        count(cluster, at, "started", "", number)
    now = NOON + timedelta(hours=1, minutes=1)
    roll_up_history(now)
    over: dict[str, Any] = {"since": NOON, "until": NOON + timedelta(hours=1), "step": 3600, "now": now}
    assert values(read(cluster, "wait_p50", **over)) == [pytest.approx(10, rel=0.1)]
    assert values(read(cluster, "started", **over)) == [100]
    over["step"] = 300
    found = values(read(cluster, "wait_p90", **over))
    assert found[:3] == [pytest.approx(10, rel=0.1), pytest.approx(1000, rel=0.1), None]


def test_reasons_are_counted_per_sample(cluster: Cluster) -> None:
    """Four workloads waited for quota in one of two samples: two on average."""
    note(cluster, NOON, 4)
    note(cluster, NOON + RAW, 0)
    count(cluster, NOON, "pending", "WaitingForQuota", 4)
    [line] = read(
        cluster, "pending_by_reason", since=NOON, until=NOON + timedelta(minutes=1), step=60,
        now=NOON + timedelta(minutes=1),
    )  # fmt: skip
    assert (line.detail, list(line.values)) == ("WaitingForQuota", [2])


def test_namespaces_that_use_nothing_for_a_while_use_zero(cluster: Cluster) -> None:
    """A namespace has no row for a resource that it does not use: 8 in one of two samples are 4 on average."""
    for at in (NOON, NOON + RAW):
        note(cluster, at, 0, "namespace", "team")
    cell = subject(cluster, "namespace", "team", "", "gpu", "cpu")
    QuotaSample.objects.create(subject_id=cell, at=NOON, used=8, used_peak=8)
    reader = Reader(cluster.pk, window(NOON, NOON + timedelta(minutes=1), 60, NOON + timedelta(minutes=1)))
    [line] = reader.lines(Selection(Scope.NAMESPACE, ["team"], ["used"]))
    assert (line.flavor, line.resource, list(line.values)) == ("gpu", "cpu", [4])


def test_history_is_kept_as_long_as_its_resolution_says_and_no_longer(cluster: Cluster) -> None:
    note(cluster, NOON, 5)
    roll_up_history(NOON + timedelta(hours=2))
    roll_up_history(NOON + RETENTION[Resolution.RAW] + timedelta(hours=1))
    assert set(WorkloadSample.objects.values_list("resolution", flat=True)) == {300, 3600}
    roll_up_history(NOON + RETENTION[Resolution.MINUTES] + timedelta(hours=2))
    assert set(WorkloadSample.objects.values_list("resolution", flat=True)) == {3600}
    prune_history(NOON)
    assert Subject.objects.exists()
    roll_up_history(NOON + RETENTION[Resolution.HOUR] + timedelta(hours=2))
    prune_history(NOON)
    assert not Subject.objects.exists()


@pytest.mark.parametrize(
    ("ago", "step"),
    [
        (timedelta(minutes=15), 15),
        (timedelta(hours=1), 15),
        (timedelta(hours=6), 60),
        (timedelta(hours=24), 300),
        (timedelta(days=7), 3600),
        (timedelta(days=30), 10_800),
        (timedelta(days=90), 21_600),
    ],
)
def test_the_step_follows_the_range(ago: timedelta, step: int) -> None:
    grid = window(NOON - ago, NOON, None, NOON)
    assert grid.step == step
    assert len(grid.times) <= 401


def test_a_step_that_is_not_kept_any_more_is_refused() -> None:
    with pytest.raises(TooFine) as refused:
        window(NOON - timedelta(days=2), NOON - timedelta(days=1), 15, NOON)
    assert refused.value.smallest == 300
    with pytest.raises(TooMany):
        window(NOON - timedelta(days=10), NOON, 300, NOON)


@pytest.mark.parametrize("seconds", [0.0, 0.5, 1.0, 3.0, 59.0, 86_400.0])
def test_a_wait_lies_within_its_bucket(seconds: float) -> None:
    low, high = bounds_of(bucket_of(seconds))
    assert low <= seconds * (1 + 1e-12)
    assert seconds <= high
    assert percentile({bucket_of(seconds): 1}, 0.5) == pytest.approx(seconds, rel=0.1, abs=0.6)


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile({}, 0.5) is None
