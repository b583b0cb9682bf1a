"""Waiting for a database that is away."""

from __future__ import annotations

import psycopg
import pytest
from django.db import OperationalError

from foundation.outages import is_database_away, patiently


def raised(cause: psycopg.Error) -> OperationalError:
    """As Django raises what psycopg says."""
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


def test_it_is_asked_again_until_it_answers() -> None:
    answers: list[Exception | str] = [
        raised(psycopg.OperationalError("Connection refused")),
        psycopg.errors.CannotConnectNow("the database system is starting up"),
        raised(psycopg.errors.AdminShutdown("terminating connection")),
        "row",
    ]
    pauses: list[float] = []

    def ask() -> str:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    assert patiently(ask, pauses.append) == "row"
    assert pauses == [0.5, 1.0, 2.0]


def test_another_error_is_raised() -> None:
    def ask() -> None:
        raise raised(psycopg.errors.DeadlockDetected("deadlock detected"))

    with pytest.raises(OperationalError):
        patiently(ask)


def test_what_is_an_outage() -> None:
    assert is_database_away(raised(psycopg.InterfaceError("the connection is closed")))
    assert is_database_away(raised(psycopg.errors.DiskFull("could not extend file")))
    assert is_database_away(raised(psycopg.errors.TooManyConnections("too many clients already")))
    for of_a_statement in ("OutOfMemory", "ConfigurationLimitExceeded", "UndefinedFile"):
        assert not is_database_away(raised(getattr(psycopg.errors, of_a_statement)("no")))
    assert not is_database_away(raised(psycopg.errors.LockNotAvailable("lock timeout")))
    assert not is_database_away(ValueError("why"))
