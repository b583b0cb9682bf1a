"""Estimates of starts in rows: a studio renews them, keeps them at ages of waiting, and judges them."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson
import pytest
from django.db import connection
from django.utils import timezone

from accounts.models import Cluster, ClusterMode
from history.models import UsageRecord
from queues.models import StartEstimate, Workload
from scheduler.leader.engine import Engine
from scheduler.models import Decision
from scheduling.estimates.correction import MAX_OPEN
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import StartEstimate as Estimate
from scheduling.studio.foretold_starts import MAX_ESTIMATED, ForetoldStart
from studio.models import EstimateRound, KeptEstimate
from studio.services.children import MAX_ANSWER_BYTES, Child, Limits, Outcome, Work
from studio.services.estimate_rounds import MAX_BEYOND_REACH, EstimateRounds, estimates_json
from studio.services.kept_estimates import judge_estimates, open_estimates, read_estimators, read_runs, store_estimates
from studio.services.run_histories import RunHistories
from studio.tasks import ESTIMATE_RETENTION, prune_estimates
from tests.acceptance.processes import wait_for
from tests.factories import START, make_cluster, make_cluster_queue, make_workload
from tests.studio.test_process import Studios, studios

__all__ = ["studios"]
pytestmark = pytest.mark.django_db(transaction=True)
NOW = START.timestamp() + 1000


@pytest.fixture
def cluster() -> Cluster:
    """Ten cores that `runs` holds; `waits` wants all of them. Twenty runs of five minutes have ended."""
    cluster = make_cluster()
    make_cluster_queue(cluster)
    make_workload(cluster, "runs", {"cpu": "10"})
    Engine(cluster, "test", clock=lambda: NOW).run()
    make_workload(cluster, "waits", {"cpu": "10"}, created_at=timezone.now() - timedelta(seconds=1))
    for number in range(20):
        make_record(cluster, number)
    return Cluster.objects.get()


def make_record(cluster: Cluster, number: int, **fields: Any) -> UsageRecord:
    ended_at = START + timedelta(minutes=number)
    values: dict[str, Any] = {
        "workload_uid": uuid4(), "namespace": "team", "workload_name": f"runs-{number}", "local_queue": "queue",
        "cluster_queue": "main", "priority": 0, "pods": 1, "reserved_at": ended_at - timedelta(minutes=5),
        "started_at": ended_at - timedelta(minutes=5), "ended_at": ended_at, "outcome": "Finished",
        "held": {"default-flavor": {"cpu": 10_000, "device": 0.5}},
    }  # fmt: skip
    return UsageRecord.objects.create(cluster=cluster, **values | fields)


def answer(workload: Workload, **fields: Any) -> dict[str, Any]:
    """An estimate of a child."""
    return {
        "workload": workload.key, "uid": str(workload.uid), "cluster_queue": "main", "tree": "queue main",
        "queued_at": workload.created_at.timestamp(), "p10": 60.0, "p50": 120.0, "p90": 600.0, "unknown": None,
        "compared": 0, "features": [4.8, 4.8], **fields,
    }  # fmt: skip


def admit(workload: Workload, at: datetime) -> None:
    """As the leader does: the decision and the row."""
    Decision.objects.create(
        id=1, decided_at=at, cluster_name="default", epoch=1, cycle=1, action="Admit", namespace="team",
        workload_name=workload.name, workload_uid=workload.uid, reason="Admitted",
    )  # fmt: skip
    Workload.objects.filter(pk=workload.pk).update(quota_reserved_at=at, status="Admitted")


def test_runs_are_read_once_and_only_those_that_finished(cluster: Cluster) -> None:
    make_record(cluster, 30, outcome="Preempted")
    history = RunHistory()
    newest = read_runs(cluster, history, 0)
    assert history.count == 20
    assert read_runs(cluster, history, newest) == newest
    make_record(cluster, 31)
    read_runs(cluster, history, newest)
    assert history.count == 21


def test_an_estimate_is_kept_at_each_age_of_waiting_once_and_judged_at_the_start(cluster: Cluster) -> None:
    waits = Workload.objects.get(name="waits")
    queued = waits.created_at
    for seconds in (5, 65, 310, 370, 905):
        store_estimates(cluster, queued + timedelta(seconds=seconds), [answer(waits)])
    ages = KeptEstimate.objects.order_by("stage_seconds").values_list("stage_seconds", "made_at")
    assert [(stage, (at - queued).total_seconds()) for stage, at in ages] == [(0, 5), (300, 310), (900, 905)]
    assert StartEstimate.objects.get().p50_at == queued + timedelta(seconds=905 + 120)
    judge_estimates(cluster, queued + timedelta(seconds=906))
    assert not KeptEstimate.objects.filter(started_at__isnull=False).exists()
    started = queued + timedelta(seconds=950)
    admit(waits, started)
    judge_estimates(cluster, started)
    assert set(KeptEstimate.objects.values_list("started_at", "left_at")) == {(started, None)}
    store_estimates(cluster, started + timedelta(seconds=5), [])
    assert not StartEstimate.objects.exists()


@pytest.mark.parametrize("leave", ["delete", "hold"])
def test_a_workload_that_leaves_without_a_start_judges_nothing(cluster: Cluster, leave: str) -> None:
    waits = Workload.objects.get(name="waits")
    store_estimates(cluster, timezone.now(), [answer(waits)])
    if leave == "delete":
        waits.pod_sets.all().delete()
        Workload.objects.filter(pk=waits.pk)._raw_delete("default")
    else:
        Workload.objects.filter(pk=waits.pk).update(active=False)
    judge_estimates(cluster, timezone.now())
    kept = KeptEstimate.objects.get()
    assert kept.started_at is None
    assert kept.left_at is not None
    store_estimates(cluster, timezone.now(), [])
    assert not StartEstimate.objects.exists()


def test_no_start_is_lost_that_happens_while_estimates_are_judged(cluster: Cluster) -> None:
    """The workload starts right after the first statement."""
    waits, now = Workload.objects.get(name="waits"), timezone.now()
    store_estimates(cluster, now, [answer(waits)])
    started = now + timedelta(seconds=5)
    admitted: list[Workload] = []

    def start_after(execute: Callable[..., Any], *statement: Any) -> Any:
        result = execute(*statement)
        if statement[0].lstrip().startswith("UPDATE studio_keptestimate") and not admitted:
            admit(waits, started)
            admitted.append(waits)
        return result

    with connection.execute_wrapper(start_after):
        judge_estimates(cluster, started)
    assert admitted
    judge_estimates(cluster, started + timedelta(seconds=60))
    assert [*KeptEstimate.objects.values_list("started_at", "left_at")] == [(started, None)]


def test_later_estimates_learn_from_starts(cluster: Cluster) -> None:
    """All workloads start ten times later than estimated; the next estimate says so."""
    for number in range(30):
        KeptEstimate.objects.create(
            cluster=cluster, workload_uid=uuid4(), namespace="team", workload_name=f"w-{number}", cluster_queue="main",
            tree="queue main", queued_at=START, stage_seconds=0, made_at=START + timedelta(minutes=number),
            p10_seconds=60, p50_seconds=100, p90_seconds=200, features=[4.6, 4.6],
            started_at=START + timedelta(minutes=number, seconds=1000),
        )  # fmt: skip
    [estimator] = read_estimators(cluster, RunHistory()).values()
    corrected = estimator.correction(0).corrected((4.6, 4.6), START.timestamp() + 7200)
    assert corrected.compared == 30
    assert 700 < corrected.p50 < 1300
    assert corrected.p10 <= corrected.p50 <= corrected.p90


def test_as_many_open_estimates_are_read_as_a_correction_uses(cluster: Cluster) -> None:
    """The newest of each tree and age of waiting, the oldest of them first."""

    def rows(tree: str, stage: int, count: int) -> list[KeptEstimate]:
        return [
            KeptEstimate(
                cluster=cluster, workload_uid=uuid4(), namespace="team", workload_name="w", cluster_queue="main",
                tree=tree, queued_at=START, stage_seconds=stage, made_at=START + timedelta(seconds=number),
                p50_seconds=100, features=[4.6, 4.6],
            )
            for number in range(count)
        ]  # fmt: skip

    KeptEstimate.objects.bulk_create([*rows("a", 0, MAX_OPEN + 7), *rows("a", 300, 3), *rows("b", 0, MAX_OPEN + 1)])
    found = open_estimates(cluster)
    assert Counter((row[3], row[2]) for row in found) == {("a", 0): MAX_OPEN, ("a", 300): 3, ("b", 0): MAX_OPEN}
    made = [row[4] for row in found if (row[3], row[2]) == ("a", 0)]
    assert made == [START + timedelta(seconds=number) for number in range(7, MAX_OPEN + 7)]


def test_workloads_that_were_not_tried_are_unknown_with_the_reason(cluster: Cluster) -> None:
    waits = Workload.objects.get(name="waits")
    runs = Workload.objects.get(name="runs")
    store_estimates(cluster, START, [answer(waits)])
    KeptEstimate.objects.all().delete()
    store_estimates(cluster, START + timedelta(minutes=1), [], [str(waits.uid), str(runs.uid), str(uuid4())])
    found = StartEstimate.objects.get()
    assert (found.workload_id, found.unknown, found.compared) == (waits.pk, "BeyondReach", 0)
    assert (found.p10_at, found.p50_at, found.p90_at) == (None, None, None)
    assert not KeptEstimate.objects.exists()


def test_the_longest_answer_is_below_the_limit_of_bytes() -> None:
    """Names are as long as Kubernetes allows, and numbers as long as they get."""
    number, uid = 1234567.8901234567e-12, str(uuid4())
    estimate = Estimate(number, number, number, None, 10**6, (number, number))
    name = "n" * 253
    tried = ForetoldStart(f"{'n' * 63}/{name}", uid, name, f"cohort {name}", 1234567890.1234567, estimate)
    untried = replace(tried, is_tried=False)
    found = estimates_json([tried] * MAX_ESTIMATED + [untried] * (MAX_BEYOND_REACH + 1))
    assert (len(found["estimates"]), len(found["beyond_reach"])) == (MAX_ESTIMATED, MAX_BEYOND_REACH)
    assert len(orjson.dumps({"answer": found})) < MAX_ANSWER_BYTES


def test_old_estimates_are_deleted(cluster: Cluster) -> None:
    waits = Workload.objects.get(name="waits")
    store_estimates(cluster, timezone.now(), [answer(waits)])
    prune_estimates()
    assert KeptEstimate.objects.count() == 1
    KeptEstimate.objects.update(made_at=timezone.now() - ESTIMATE_RETENTION)
    prune_estimates()
    assert not KeptEstimate.objects.exists()


def test_a_studio_estimates_and_another_continues_when_it_is_killed(studios: Studios, cluster: Cluster) -> None:
    first = studios.start_studio()
    wait_for("an estimate", lambda: StartEstimate.objects.filter(workload__name="waits").exists())
    estimate = StartEstimate.objects.get()
    assert estimate.p10_at is not None
    assert estimate.p50_at is not None
    assert estimate.p90_at is not None
    assert estimate.p10_at <= estimate.p50_at <= estimate.p90_at
    kept = KeptEstimate.objects.get()
    assert (kept.workload_name, kept.cluster_queue, kept.stage_seconds) == ("waits", "main", 0)
    os.kill(first, signal.SIGKILL)
    EstimateRound.objects.update(leased_until=timezone.now() - timedelta(seconds=1))  # as after two minutes
    StartEstimate.objects.update(made_at=START)
    studios.start_studio("other")
    wait_for("a renewal", lambda: StartEstimate.objects.get().made_at > START)


class NoRounds(EstimateRounds):
    """Rounds of a studio that counts its forks."""

    def __init__(self) -> None:
        self.forks = 0
        super().__init__(uuid4(), 64, self._count, RunHistories())

    def _count(self, work: Work, limits: Limits) -> Child:
        self.forks += 1
        raise OSError("no process")


@pytest.fixture
def rounds() -> NoRounds:
    return NoRounds()


def test_a_cluster_that_another_scheduler_decides_has_no_estimates(cluster: Cluster, rounds: NoRounds) -> None:
    Cluster.objects.update(mode=ClusterMode.OBSERVE)
    rounds.turn()
    assert (rounds.forks, EstimateRound.objects.count()) == (0, 0)


def test_two_studios_do_not_estimate_the_same_cluster(cluster: Cluster, rounds: NoRounds) -> None:
    with pytest.raises(OSError, match="no process"):
        rounds.turn()
    other = NoRounds()
    other.turn()
    assert (rounds.forks, other.forks) == (1, 0)


def test_an_empty_queue_needs_no_child(cluster: Cluster, rounds: NoRounds) -> None:
    Workload.objects.filter(name="waits").update(active=False)
    rounds.turn()
    assert rounds.forks == 0
    assert EstimateRound.objects.get().renewed_at is not None
    assert time.time() - EstimateRound.objects.get().renewed_at.replace(tzinfo=UTC).timestamp() < 60  # type: ignore[union-attr]


def test_an_answer_that_cannot_be_stored_is_logged_and_the_next_round_comes(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    [waits] = Workload.objects.filter(name="waits")
    broken = answer(waits, p90=1e12)

    def fork(_: Work, limits: Limits) -> Child:
        return Child.unstarted(limits, Outcome({"estimates": [broken], "beyond_reach": []}))

    rounds = EstimateRounds(uuid4(), 64, fork, RunHistories())
    rounds.turn()
    rounds.turn()
    assert "could not be estimated" in caplog.text
    assert rounds.pipes() == {}
    assert StartEstimate.objects.count() == 0
