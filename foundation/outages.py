"""Waits for the end of a PostgreSQL outage, in processes that cannot work without the database."""

import logging
import time
from collections.abc import Callable
from typing import Final, TypeVar

import psycopg
from django.db import OperationalError, close_old_connections

T = TypeVar("T")

_AWAY: Final = ("08", "57P", "53100", "53300", "58030")
"""Classes and codes of SQLSTATE: connection exception; operator intervention, as of a server that stops, crashed or
starts; a full disk; too many connections; a disk that fails. Other lacks may be those of a single statement."""
_FIRST_PAUSE_SECONDS: Final = 0.5
_MAX_PAUSE_SECONDS: Final = 10.0

_log = logging.getLogger(__name__)


class ReplicaError(OperationalError):
    """A write that was refused because the server is a replica: it is not promoted yet, or was the primary before."""


def is_database_away(error: BaseException) -> bool:
    """Return whether the error means that PostgreSQL is down, has closed the connection, is out of disk space or
    connections, or is a replica. The statement is not at fault then, and succeeds later."""
    if isinstance(error, ReplicaError):
        return True
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return error.sqlstate is None or error.sqlstate.startswith(_AWAY)
    return error.__cause__ is not None and is_database_away(error.__cause__)


def patiently(ask: Callable[[], T], sleep: Callable[[float], None] = time.sleep) -> T:
    """Run a query, and retry it with growing pauses while PostgreSQL is down."""
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            return ask()
        except (OperationalError, psycopg.OperationalError) as error:
            if not is_database_away(error):
                raise
            _log.warning("The database does not answer; retrying in %g s: %s", pause, " ".join(str(error).split()))
        close_old_connections()  # another server may have become the primary
        sleep(pause)
        pause = min(2 * pause, _MAX_PAUSE_SECONDS)
