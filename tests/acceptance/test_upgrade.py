"""What an earlier version left in the database is there after the upgrade, and means what it meant."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import Any

import pytest
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor
from django.test import override_settings
from pytest_django import DjangoDbBlocker

from accounts.models import Cluster, ClusterMode
from foundation.migrated import missing_migrations
from queues.models import ClusterQueue, PodSet, Workload
from tests.databases import database_in_use, kept_database, new_database
from tests.factories import START as NOW

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNTS = [{"username": name, "password": name} for name in ("admin", "researcher", "operator", "student")]
BEFORE_MODES = {
    "accounts": "0006_edits_and_spellings",
    "queues": "0009_pod_status",
    "gpus": "0002_device_words",
    "scheduler": "0008_generations",
    "history": "0002_usage_triggers",
}
"""The last migration of each app in the version in which `simulated` was a mode."""


@pytest.fixture(scope="module")
def earlier_tables(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """The name of a database with that version's tables and no rows: tests use copies of it."""
    with kept_database("earlier") as name:
        with django_db_blocker.unblock(), database_in_use(name):
            for app in ("contenttypes", "auth", "sessions"):
                call_command("migrate", app, verbosity=0)
            for app, migration in BEFORE_MODES.items():
                call_command("migrate", app, migration, verbosity=0)
        yield name


def test_simulated_clusters_stay_simulated(earlier_tables: str) -> None:
    """A demo goes on with its data, and a real cluster does not become a demo's."""
    with new_database("upgraded", like=earlier_tables):
        with connection.cursor() as cursor:
            for name, mode in (("default", "simulated"), ("east", "schedule"), ("west", "observe")):
                cursor.execute(
                    "INSERT INTO accounts_cluster (name, mode, server_url, configuration, configuration_applied_set,"
                    " configuration_generation, device_plugin_configuration, telemetry_urls, created_at)"
                    " VALUES (%s, %s, '', '{}', '', 1, '{}', '[]', now())",
                    [name, mode],
                )
        with override_settings(DEMO=True, DEMO_ACCOUNTS=ACCOUNTS):
            call_command("demo_seed")
        assert list(Cluster.objects.values_list("name", "mode", "simulated")) == [
            ("default", ClusterMode.SCHEDULE, True),
            ("east", ClusterMode.SCHEDULE, False),
            ("west", ClusterMode.OBSERVE, False),
        ]
        assert ClusterQueue.objects.filter(cluster__name="default").exists()


MAX_WAIT_SECONDS = 10.0
"""The longest that a request may wait for a migration. On a calm machine it is a tenth of a second."""
ROWS = 2_000


@dataclass
class Served:
    """What processes of the earlier release did meanwhile."""

    submitted: list[str] = field(default_factory=list)
    reads: int = 0
    longest_seconds: float = 0.0
    failures: list[str] = field(default_factory=list)


@contextmanager
def serving(models: Any, cluster_id: int) -> Iterator[Served]:
    """Submits and lists with the models of the earlier release, as its web processes do, until the block ends."""
    served, stop = Served(), threading.Event()
    workloads = models.get_model("queues", "Workload").objects

    def submit(name: str) -> None:
        with transaction.atomic():
            row = workloads.create(
                cluster_id=cluster_id, namespace="team", name=name, queue_name="queue", created_at=NOW
            )
            models.get_model("queues", "PodSet").objects.create(workload=row, template={}, requests={"cpu": 1000})
        served.submitted.append(name)

    def read(name: str) -> None:
        assert len(workloads.filter(cluster_id=cluster_id, status="Pending").order_by("-id")[:100]) > 0
        served.reads += 1

    def work() -> None:
        try:
            while not stop.is_set():
                for step in (submit, read):
                    started = time.monotonic()
                    try:
                        step(f"during-{len(served.submitted)}")
                    except DatabaseError as error:
                        served.failures.append(f"{step.__name__}: {error}")
                    served.longest_seconds = max(served.longest_seconds, time.monotonic() - started)
        finally:
            connection.close()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield served
    finally:
        stop.set()
        thread.join()


def test_processes_of_the_earlier_release_go_on_while_tables_change(earlier_tables: str) -> None:
    """A large table is migrated under load: no request fails, none waits for long, and nothing is lost."""
    with new_database("upgraded", like=earlier_tables):
        executor = MigrationExecutor(connection)
        models = executor.loader.project_state(list(BEFORE_MODES.items())).apps
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO accounts_cluster (name, mode, server_url, configuration, configuration_applied_set,"
                " configuration_generation, device_plugin_configuration, telemetry_urls, created_at)"
                " VALUES ('default', 'schedule', '', '{}', '', 1, '{}', '[]', now()) RETURNING id"
            )
            cluster_id = cursor.fetchone()[0]
        workload = models.get_model("queues", "Workload")
        workload.objects.bulk_create(
            workload(
                cluster_id=cluster_id, namespace="team", name=f"before-{number}", queue_name="queue", created_at=NOW
            )
            for number in range(ROWS)
        )
        with serving(models, cluster_id) as served:
            call_command("migrate", verbosity=0)
        assert served.failures == []
        assert served.longest_seconds < MAX_WAIT_SECONDS
        assert min(len(served.submitted), served.reads) > 10
        kept = set(Workload.objects.filter(cluster_id=cluster_id).values_list("name", flat=True))
        assert kept == {f"before-{number}" for number in range(ROWS)} | set(served.submitted)
        assert PodSet.objects.count() == len(served.submitted)
        assert {row.traceparent for row in Workload.objects.filter(name__in=served.submitted)} == {""}


def test_a_migration_that_waits_for_a_reader_lets_others_by(earlier_tables: str) -> None:
    """A backup reads a table for minutes: a change of it must not hold up all who come after it."""
    with new_database("upgraded", like=earlier_tables):
        reading, done = threading.Event(), threading.Event()

        def back_up() -> None:
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("LOCK TABLE queues_workload IN ACCESS SHARE MODE")
                    reading.set()
                    done.wait(120)
            finally:
                connection.close()

        class Told(StringIO):
            """The backup ends once the migration has given up for the first time."""

            def write(self, text: str) -> int:
                done.set()
                return super().write(text)

        tries = Told()
        backup = threading.Thread(target=back_up)
        backup.start()
        reading.wait(60)
        try:
            call_command("migrate", verbosity=0, lock_timeout=0.3, lock_pause=0.5, stderr=tries)
        finally:
            done.set()
            backup.join()
        assert "A table is in use; retrying in 0.5 s" in tries.getvalue()
        assert Workload.objects.count() == 0
        with connection.cursor() as cursor:
            cursor.execute("SHOW lock_timeout")
            assert cursor.fetchone() == ("0",)


def test_a_migration_gives_way_in_a_deadlock_and_is_tried_again(earlier_tables: str) -> None:
    """A process of the earlier release locked two tables in another order than the migration does."""
    with new_database("upgraded", like=earlier_tables):
        call_command("migrate", "queues", "0012_served_objects", verbosity=0)
        began = threading.Event()

        def push() -> None:
            try:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute("SET LOCAL deadlock_timeout = '60s'")  # the migration finds it first
                    cursor.execute("SELECT FROM queues_cohort")
                    began.set()
                    while not waits_for_a_table(cursor):
                        time.sleep(0.05)
                    cursor.execute("SELECT FROM queues_clusterqueue")
            finally:
                connection.close()

        tries = StringIO()
        pushing = threading.Thread(target=push)
        pushing.start()
        began.wait(60)
        call_command("migrate", verbosity=0, lock_timeout=60.0, lock_pause=0.5, stderr=tries)
        pushing.join()
        assert "deadlock detected" in tries.getvalue()
        assert missing_migrations() == []


def waits_for_a_table(cursor: Any) -> bool:
    """Whether another session waits for a table that is locked."""
    cursor.execute(
        "SELECT EXISTS (SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database"
        " WHERE locktype = 'relation' AND NOT granted AND datname = current_database())"
    )
    return bool(cursor.fetchone()[0])
