"""`manage.py migrate` of a database that cannot be upgraded."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

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
