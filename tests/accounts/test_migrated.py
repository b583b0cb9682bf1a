"""Processes of a new release that start before `manage.py migrate` has run."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from accounts.migrated import missing_migrations, wait_until_migrated

pytestmark = pytest.mark.django_db(transaction=True)

LAST = ("history", "0004_usage_functions")


def test_a_process_waits_for_its_tables_and_says_for_which(caplog: pytest.LogCaptureFixture) -> None:
    MigrationRecorder(connection).record_unapplied(*LAST)
    pauses: list[float] = []

    def migrate_while_it_sleeps(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            MigrationRecorder(connection).record_applied(*LAST)

    try:
        wait_until_migrated(migrate_while_it_sleeps)
    finally:
        if missing_migrations():
            MigrationRecorder(connection).record_applied(*LAST)
    assert len(pauses) == 2
    assert "history.0004_usage_functions the first: waiting for manage.py migrate" in caplog.text


def test_a_process_starts_at_once_where_all_tables_are_there() -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError("it waited")

    wait_until_migrated(sleep)
