"""`manage.py migrate` of a database that cannot be upgraded, and of one whose indexes are built while it is used."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from foundation.migrated import missing_migrations
from tests.databases import new_database

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def of_an_old_version() -> Iterator[None]:
    """The record of migrations has those of queues, and not the first one of accounts that they follow now."""
    recorder = MigrationRecorder(connection)
    recorder.record_unapplied("accounts", "0001_initial")
    yield
    recorder.record_applied("accounts", "0001_initial")


def test_a_database_of_a_version_that_cannot_be_upgraded_is_named_and_left_alone(of_an_old_version: None) -> None:
    before = MigrationRecorder(connection).applied_migrations().keys()
    with pytest.raises(CommandError, match=r"a058272 or older\) that cannot be upgraded"):
        call_command("migrate", verbosity=0)
    assert MigrationRecorder(connection).applied_migrations().keys() == before


@pytest.fixture
def without_index() -> Iterator[None]:
    """A database that lacks the last migration, which builds indexes."""
    name = connection.settings_dict["NAME"]
    connection.close()
    with new_database("indexes", like=name):
        call_command("migrate", "queues", "0030", verbosity=0)
        yield


def is_valid(index: str) -> bool | None:
    """Whether an index is complete; None without one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [index])
        row = cursor.fetchone()
    return row[0] if row else None


def test_an_index_that_an_attempt_left_unfinished_is_built_anew(without_index: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX workload_uid ON queues_workload (cluster_id, uid)")
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'workload_uid'::regclass")
    said = StringIO()
    call_command("migrate", verbosity=0, stderr=said)
    assert "unfinished index workload_uid" in said.getvalue()
    assert is_valid("workload_uid")
    assert missing_migrations() == []


def test_an_index_that_an_attempt_finished_before_it_ended_in_the_next_one_is_kept(without_index: None) -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE INDEX workload_uid ON queues_workload (cluster_id, uid)")
        cursor.execute("SELECT 'workload_uid'::regclass::oid")
        (kept,) = cursor.fetchone()
        cursor.execute("CREATE INDEX job_uid ON queues_job (cluster_id, uid)")
        cursor.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'job_uid'::regclass")
    said = StringIO()
    call_command("migrate", verbosity=0, stderr=said)
    assert "unfinished index job_uid" in said.getvalue()
    assert (is_valid("workload_uid"), is_valid("job_uid")) == (True, True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT 'workload_uid'::regclass::oid")
        assert cursor.fetchone() == (kept,)
    assert missing_migrations() == []


def test_an_index_waits_for_a_writer_longer_than_a_table_does(without_index: None) -> None:
    writing = threading.Event()

    def write() -> None:
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("LOCK TABLE queues_workload IN ROW EXCLUSIVE MODE")
                writing.set()
                deadline = time.monotonic() + 60
                while not is_awaited() and time.monotonic() < deadline:
                    time.sleep(0.05)
                time.sleep(0.5)
        finally:
            connection.close()

    said = StringIO()
    writer = threading.Thread(target=write)
    writer.start()
    writing.wait(60)
    call_command("migrate", verbosity=0, lock_timeout=0.1, lock_pause=0.1, stderr=said)
    writer.join()
    assert said.getvalue() == ""
    assert is_valid("workload_uid")


def is_awaited() -> bool:
    """Whether a statement that builds an index waits for a transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_locks WHERE locktype = 'virtualxid' AND NOT granted")
        return cursor.fetchone() is not None
