"""The health check of connections to PostgreSQL: free while a session lives, and true when it has ended."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import DatabaseError, connection, connections, transaction

from foundation.postgresql import base
from foundation.postgresql.base import DatabaseWrapper
from tests.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def observer() -> Iterator[psycopg.Connection[tuple[object, ...]]]:
    """Another session of the server, which sees the one of Django."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        yield session


def session_id() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def begin_unit_of_work() -> None:
    """As before each request and each task."""
    session: Any = connections["default"]
    session.health_check_done = False
    session.close_if_health_check_failed()


def test_the_processes_use_this_backend() -> None:
    assert isinstance(connections["default"], DatabaseWrapper)


def test_a_session_that_lives_is_asked_nothing(observer: psycopg.Connection[tuple[object, ...]]) -> None:
    session = session_id()
    connection.ensure_connection()
    assert connections["default"].settings_dict["CONN_HEALTH_CHECKS"]
    begin_unit_of_work()
    last = observer.execute("SELECT query FROM pg_stat_activity WHERE pid = %s", [session]).fetchone()
    assert last == ("SELECT pg_backend_pid()",)


def test_a_session_that_the_server_ended_is_replaced(observer: psycopg.Connection[tuple[object, ...]]) -> None:
    ended = session_id()
    timeout_milliseconds = int(1000 * PATIENCE_SECONDS)
    assert observer.execute("SELECT pg_terminate_backend(%s, %s)", [ended, timeout_milliseconds]).fetchone() == (True,)
    begin_unit_of_work()
    assert session_id() != ended


def test_a_session_in_a_failed_transaction_is_not_usable() -> None:
    with transaction.atomic():
        with pytest.raises(DatabaseError), connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        assert not connection.is_usable()
        transaction.set_rollback(True)
    assert connection.is_usable()


def test_a_closed_connection_is_not_usable() -> None:
    session_id()
    connection.connection.close()
    assert not connection.is_usable()
    connection.close()
    assert session_id()


def test_a_session_is_kept_while_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_id()
    kept: Any = connections["default"]
    monkeypatch.setattr(time, "monotonic", lambda: kept._opened_at + 50.0)
    kept.close_if_unusable_or_obsolete()
    monkeypatch.setattr(time, "monotonic", lambda: kept._opened_at + 100.0)  # it was used 50 s ago
    kept.close_if_unusable_or_obsolete()
    assert session_id() == session
    monkeypatch.setattr(time, "monotonic", lambda: kept._opened_at + 161.0)
    kept.close_if_unusable_or_obsolete()
    assert session_id() != session


def test_a_session_that_is_used_ends_at_some_age(monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_id()
    kept: Any = connections["default"]
    ages = range(0, int(base._LONGEST_SECONDS) + 60, 30)
    for age in ages:
        monkeypatch.setattr(time, "monotonic", lambda age=age, since=kept._opened_at: since + age)
        kept.close_if_unusable_or_obsolete()
        if age < base._LONGEST_SECONDS:
            assert kept.connection is not None
    assert session_id() != session


def test_a_session_that_refuses_a_write_is_replaced() -> None:
    session = session_id()
    with pytest.raises(DatabaseError, match="read-only"), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL transaction_read_only = on; CREATE TABLE refused ()")
    kept: Any = connections["default"]
    kept.close_if_unusable_or_obsolete()
    replaced = session_id()
    assert replaced != session
    kept.close_if_unusable_or_obsolete()
    assert session_id() == replaced


def test_a_session_whose_server_became_read_only_is_replaced_without_a_write() -> None:
    session = session_id()
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
    connections["default"].close_if_unusable_or_obsolete()
    assert session_id() != session


def test_a_session_that_was_closed_below_django_is_replaced() -> None:
    session = session_id()
    kept: Any = connections["default"]
    kept.connection.close()
    kept.close_if_unusable_or_obsolete()
    assert session_id() != session
