"""Statements that are sent as one message."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from foundation.postgresql.joined_statements import JoinedStatements
from foundation.transactions import execute_unnoticed, unnoticed_transaction
from queues.models import Workload
from scheduler.models import Change
from tests.factories import make_cluster, make_workload

pytestmark = pytest.mark.django_db(transaction=True)

RENAME = "UPDATE queues_workload SET message = %s WHERE id = %s"


def unnoticed() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('kueueweb.unnoticed', true), current_setting('lock_timeout')")
        return " ".join(each or "" for each in cursor.fetchone())


def test_statements_are_executed_in_order_by_one_message() -> None:
    row = make_workload(make_cluster(), "one")
    with transaction.atomic(), CaptureQueriesContext(connection) as queries, connection.cursor() as cursor:
        statements = JoinedStatements(cursor)
        for message in ("100 % first", "last; really"):
            statements.execute(RENAME, [message, row.pk])
        assert not len(queries)
        statements.send()
        statements.send()
        assert len(queries) == 1
        statements.execute(RENAME, ["then", row.pk])
        assert statements.rows("SELECT message FROM queues_workload WHERE id = %s", [row.pk]) == [("then",)]
    assert Workload.objects.get().message == "then"


def test_a_statement_that_fails_leaves_nothing_of_its_message() -> None:
    row = make_workload(make_cluster(), "one")
    with transaction.atomic(), connection.cursor() as cursor:
        statements = JoinedStatements(cursor)
        statements.execute(RENAME, ["first", row.pk])
        statements.execute("UPDATE queues_workload SET name = NULL WHERE id = %s", [row.pk])
        with pytest.raises(IntegrityError):
            statements.send()
        transaction.set_rollback(True)
    assert Workload.objects.get().message != "first"


def test_a_statement_alone_is_unnoticed_and_what_follows_is_not() -> None:
    row = make_workload(make_cluster(), "one")
    Change.objects.all().delete()
    assert execute_unnoticed(RENAME, ["quiet", row.pk]) == 1
    assert not Change.objects.exists()
    assert "on" not in unnoticed()
    Workload.objects.update(message="noticed")
    assert Change.objects.exists()


def test_a_statement_within_a_transaction_is_undone_with_it() -> None:
    row = make_workload(make_cluster(), "one")
    with transaction.atomic():
        assert execute_unnoticed(RENAME, ["undone", row.pk]) == 1
        transaction.set_rollback(True)
    assert Workload.objects.get().message != "undone"


def test_a_transaction_may_wait_for_locks_for_a_time_of_its_own() -> None:
    before = unnoticed()
    with unnoticed_transaction("2s"):
        assert unnoticed() == "on 2s"
    assert unnoticed() == before
    with unnoticed_transaction():
        assert unnoticed() == f"on {before.split()[-1]}"
