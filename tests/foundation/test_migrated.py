"""Processes of a new release that start before `manage.py migrate` has run."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

from foundation.migrated import missing_migrations, wait_until_migrated

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_process_waits_for_its_tables_and_says_for_which(caplog: pytest.LogCaptureFixture) -> None:
    (last,) = MigrationLoader(connection).graph.leaf_nodes("history")
    MigrationRecorder(connection).record_unapplied(*last)
    pauses: list[float] = []

    def migrate_while_it_sleeps(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            MigrationRecorder(connection).record_applied(*last)

    try:
        wait_until_migrated(migrate_while_it_sleeps)
    finally:
        if missing_migrations():
            MigrationRecorder(connection).record_applied(*last)
    assert len(pauses) == 2
    assert f"the first is history.{last[1]}: waiting for manage.py migrate" in caplog.text


def test_a_process_starts_at_once_where_all_tables_are_there() -> None:
    def sleep(seconds: float) -> None:
        raise AssertionError("it waited")

    wait_until_migrated(sleep)
