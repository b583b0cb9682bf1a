"""Streams of edits, each of which refuses a batch: the leader decides all the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import Cluster
from queues.models import ClusterQueue, Workload
from scheduler.leader.engine import REFUSALS_BY_EDITS, Engine
from scheduler.store.batch import Batch
from scheduler.store.saving import BatchRefused, save
from tests.acceptance.processes import database_url, wait_for
from tests.engines import NOW, in_another_session, statuses
from tests.factories import make_cluster, make_cluster_queue, make_workload
from tests.scheduler.store.test_lock_order import Writer

pytestmark = pytest.mark.django_db(transaction=True)

RUNS: Final = 4 * REFUSALS_BY_EDITS


@pytest.fixture
def cluster() -> Cluster:
    cluster = make_cluster()
    make_cluster_queue(cluster)
    for name in "ab":
        make_workload(cluster, name)
    return cluster


def edited_before_each_save(cluster: Cluster, edit: Callable[[], object]) -> tuple[Engine, list[bool]]:
    """An engine, and whether each edit was made between deciding and saving; one that waits for a lock gives up."""
    made: list[bool] = []

    def try_to_edit() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SET LOCAL lock_timeout = '100ms'")
                edit()
        except OperationalError:
            made.append(False)
        else:
            made.append(True)

    def save_after_an_edit(batch: Batch) -> None:
        if batch:
            in_another_session(try_to_edit)
        save(batch)

    return Engine(cluster, "test", clock=lambda: NOW, save=save_after_an_edit), made


def decide(engine: Engine) -> None:
    for _ in range(RUNS):
        engine.run(0.0)


def test_edits_of_the_configuration_wait_after_some_refusals(cluster: Cluster) -> None:
    limits = iter(range(1, 1000))
    queues = ClusterQueue.objects.filter(cluster=cluster)
    engine, made = edited_before_each_save(cluster, lambda: queues.update(fair_sharing_weight=next(limits)))
    decide(engine)
    assert statuses() == {"a": "Admitted", "b": "Admitted"}
    assert made[: REFUSALS_BY_EDITS + 1] == [True] * REFUSALS_BY_EDITS + [False]


def test_edits_of_a_workload_wait_after_some_refusals(cluster: Cluster) -> None:
    priorities = iter(range(1, 1000))
    rows = Workload.objects.filter(name="a")
    engine, made = edited_before_each_save(cluster, lambda: rows.update(priority=next(priorities)))
    decide(engine)
    assert statuses() == {"a": "Admitted", "b": "Admitted"}
    assert False in made


def test_a_row_that_stays_locked_refuses_the_batch_and_nothing_else(cluster: Cluster) -> None:
    """The lock is waited for no longer than a batch waits for one; then the cluster is decided again."""
    limits = iter(range(1, 1000))
    queues = ClusterQueue.objects.filter(cluster=cluster)
    engine, made = edited_before_each_save(cluster, lambda: queues.update(fair_sharing_weight=next(limits)))
    while len(made) < REFUSALS_BY_EDITS:
        engine.run(0.0)
    refused: list[int] = []
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        in_another_session(lambda: refused.append(engine.run(0.0).refused))
    assert refused == [1]
    decide(engine)
    assert statuses() == {"a": "Admitted", "b": "Admitted"}


def refused_so_often(
    cluster: Cluster, save: Callable[[Batch], None] = save, clock: Callable[[], float] = lambda: NOW, edited: str = "b"
) -> Engine:
    """An engine whose first batches are refused for an edited workload, so that the next one, which is saved, holds
    rows."""
    refusals = iter(range(REFUSALS_BY_EDITS))
    outdated = {row.pk: row.key for row in Workload.objects.filter(name=edited)}

    def save_later(batch: Batch) -> None:
        if next(refusals, None) is not None:
            raise BatchRefused("edited since", outdated=outdated)
        save(batch)

    return Engine(cluster, "test", clock=clock, save=save_later)


def test_a_batch_that_holds_rows_never_waits_for_earlier_ones(cluster: Cluster) -> None:
    """It held b and waited for a, and an apply that had a waited for b: the database ended one of them."""
    saved: list[str] = []

    def lock_in_order() -> None:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT FROM queues_workload WHERE name = 'a' FOR UPDATE")
            cursor.execute("SELECT FROM queues_workload WHERE name = 'b' FOR UPDATE")

    writer = Writer(lock_in_order)

    def save_while_it_waits(batch: Batch) -> None:
        if not saved:
            writer.start()
            waiting = "SELECT FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
            pid = connection.connection.info.backend_pid
            with psycopg.connect(database_url(), autocommit=True) as observer:
                wait_for("the apply to meet the batch", lambda: bool(observer.execute(waiting, [pid]).fetchall()))
        try:
            save(batch)
        except BatchRefused as refusal:
            saved.append(f"refused for {', '.join(sorted(refusal.outdated.values()))}")
            raise
        saved.append("saved")

    decide(refused_so_often(cluster, save_while_it_waits))
    writer.join()
    assert writer.error is None
    assert saved[:2] == ["refused for team/a", "saved"]
    assert statuses() == {"a": "Admitted", "b": "Admitted"}


def test_a_decision_that_breaks_a_foreign_key_is_set_aside_while_rows_are_held(cluster: Cluster) -> None:
    """Foreign keys are checked at the end of a transaction, which is then that of the rows that are held."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE allowed (name text, status text, PRIMARY KEY (name, status))")
        cursor.execute(
            "INSERT INTO allowed VALUES ('a', 'Pending'), ('b', 'Pending'), ('b', 'QuotaReserved'), ('b', 'Admitted')"
        )
        cursor.execute(
            "ALTER TABLE queues_workload ADD CONSTRAINT is_allowed FOREIGN KEY (name, status) REFERENCES allowed "
            "DEFERRABLE INITIALLY DEFERRED"
        )
    try:
        engine = refused_so_often(cluster)
        decide(engine)
        assert statuses() == {"a": "Pending", "b": "Admitted"}
        assert "could not be stored" in Workload.objects.get(name="a").message
    finally:
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE queues_workload DROP CONSTRAINT is_allowed")
            cursor.execute("DROP TABLE allowed")


def test_a_leader_that_has_nothing_to_decide_any_more_holds_no_rows(cluster: Cluster) -> None:
    """The decision that was refused is not due any more, so there is nothing to save."""
    Workload.objects.filter(name="b").update(maximum_execution_seconds=60)
    Engine(cluster, "test", clock=lambda: NOW).run()
    moment = [NOW]
    engine = refused_so_often(cluster, clock=lambda: moment[0], edited="")
    engine.run()
    moment[0] = NOW + 61
    for _ in range(REFUSALS_BY_EDITS):
        assert engine.run(0.0).refused == 1
    moment[0] = NOW + 1  # the clock was set back
    engine.run()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        engine.run()
    assert [query["sql"] for query in queries if " FOR " in query["sql"]] == []
