"""The log's JSON."""

import json
import logging
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
import pytest
import redis
from celery.beat import SchedulingError
from django.db import OperationalError

from kueueweb.logs import JsonFormatter, OutageInOneLine, is_outage


def test_a_record_is_one_line_with_its_fields() -> None:
    record = logging.LogRecord("scheduler", logging.WARNING, __file__, 1, "%s waits", ("a job",), None)
    record.cluster = "default"
    record.at, record.key, record.found = datetime(2026, 1, 2, tzinfo=UTC), UUID(int=1), {1: object}
    line = JsonFormatter().format(record)
    assert "\n" not in line
    content = json.loads(line)
    assert datetime.fromisoformat(content.pop("timestamp")).utcoffset() == timedelta()
    assert content == {
        "event": "a job waits",
        "level": "warning",
        "logger": "scheduler",
        "cluster": "default",
        "at": "2026-01-02T00:00:00+00:00",
        "key": "00000000-0000-0000-0000-000000000001",
        "found": {"1": "object"},
    }


def test_a_traceback_stays_in_its_line() -> None:
    try:
        raise ValueError("why")
    except ValueError as error:
        record = logging.LogRecord(
            "x", logging.ERROR, __file__, 1, "failed", (), (type(error), error, error.__traceback__)
        )
    line = JsonFormatter().format(record)
    assert "\n" not in line
    assert "ValueError: why" in json.loads(line)["exception"]


def record_of(error: Exception) -> logging.LogRecord:
    """The record of an error as `exc_info` makes it."""
    told = (type(error), error, error.__traceback__)
    return logging.LogRecord("x", logging.ERROR, __file__, 1, "Task %s failed", ("push",), told)


def database_error(cause: psycopg.Error) -> OperationalError:
    """As Django raises what psycopg says."""
    error = OperationalError(str(cause))
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    "error",
    [
        redis.ConnectionError("Error 111\nconnecting"),
        database_error(psycopg.OperationalError("server closed\n\tthe connection")),
        database_error(psycopg.errors.CannotConnectNow("starting up")),
        database_error(psycopg.errors.AdminShutdown("terminating")),
    ],
)
def test_a_server_that_is_away_is_one_line_without_a_traceback(error: Exception) -> None:
    record = record_of(error)
    assert OutageInOneLine().filter(record)
    text = logging.Formatter().format(record)
    assert text == f"Task push failed: {' '.join(str(error).split())}"


def test_beat_s_error_is_an_outage_where_redis_is_away() -> None:
    def raised(error: Exception) -> SchedulingError:
        try:
            try:
                raise error
            except (ValueError, redis.ConnectionError) as reason:
                raise SchedulingError(f"Couldn't apply scheduled task: {reason}")  # noqa: B904 (as beat raises it)
        except SchedulingError as found:
            return found

    assert is_outage(raised(redis.ConnectionError("refused")))
    assert not is_outage(raised(ValueError("why")))


def test_a_repeated_outage_is_logged_once_in_a_while() -> None:
    now = [0.0]
    outages = OutageInOneLine(lambda: now[0])
    error = ConnectionRefusedError("refused")
    wrapped = RuntimeError("Couldn't apply the scheduled task: refused")
    wrapped.__cause__ = error
    logged = []
    for moment in (0.0, 1.0, 9.0, 10.5, 11.0):
        now[0] = moment
        logged.append(outages.filter(record_of(wrapped)))
    assert logged == [True, False, False, True, False]


@pytest.mark.parametrize("error", [ValueError("why"), database_error(psycopg.errors.DeadlockDetected("deadlock"))])
def test_a_fault_of_the_program_keeps_its_traceback(error: Exception) -> None:
    record = record_of(error)
    assert OutageInOneLine().filter(record)
    assert record.exc_info is not None
