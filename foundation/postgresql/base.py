"""The connections of all processes to PostgreSQL: Django's, with a health check that costs no statement."""

from __future__ import annotations

import select
import time
from types import TracebackType
from typing import Final

from django.db.backends.postgresql.base import DatabaseWrapper as DjangosWrapper
from django.db.utils import DatabaseErrorWrapper
from django.utils.functional import cached_property
from psycopg.errors import ReadOnlySqlTransaction
from psycopg.pq import TransactionStatus

from foundation.outages import ReplicaError

_LONGEST_SECONDS: Final = 900.0
"""The age at which a session ends even if it is used: what it remembers of plans and tables grows."""


class _NotedErrors(DatabaseErrorWrapper):
    """Django's translation of errors, which also notes that the session is read-only: a rollback clears Django's own
    note of an error. A replica that refuses a write is an outage; a transaction that we made read-only is a bug."""

    wrapper: DatabaseWrapper

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, ReadOnlySqlTransaction):
            self.wrapper.refused_a_write = True
            if self.wrapper.is_replica():
                self.wrapper.errors_occurred = True
                raise ReplicaError(*error.args).with_traceback(trace) from error
        super().__exit__(kind, error, trace)


class DatabaseWrapper(DjangosWrapper):
    """A connection that is asked before each unit of work whether it can still be used, as CONN_HEALTH_CHECKS wants.

    CONN_MAX_AGE is how long it is kept without use, not its age: a new session plans the statements of all triggers
    again. It is closed where the server became read-only: a former primary may keep its sessions, and only a new one
    reaches the new primary.
    """

    _opened_at = 0.0
    refused_a_write = False

    def connect(self) -> None:
        super().connect()
        self._opened_at = time.monotonic()
        self.refused_a_write = False

    @cached_property
    def wrap_database_errors(self) -> DatabaseErrorWrapper:
        return _NotedErrors(self)

    def close_if_unusable_or_obsolete(self) -> None:
        if self.refused_a_write or self.is_replica() or self._announces("default_transaction_read_only"):
            self.close()
        super().close_if_unusable_or_obsolete()
        if self.connection is not None and self.close_at is not None:
            kept_until = time.monotonic() + self.settings_dict["CONN_MAX_AGE"]
            self.close_at = min(kept_until, self._opened_at + _LONGEST_SECONDS)

    def is_usable(self) -> bool:
        """Return whether the server has not ended the session.

        A server that ends a session announces it, and sends almost nothing else between statements. So an idle
        connection with nothing to read is usable without a query; any other connection is tested with a statement, as
        Django does. A server that vanishes silently is noticed in neither case before the next answer is overdue.
        """
        return self._is_silent() or super().is_usable()

    def is_replica(self) -> bool:
        """Return whether the server follows a primary."""
        return self._announces("in_hot_standby")

    def _announces(self, setting: str) -> bool:
        """Return whether the setting is on. PostgreSQL sends these two with the session's start and at each change."""
        connection = self.connection
        if connection is None or connection.closed:
            return False
        return bool(connection.info.parameter_status(setting) == "on")

    def _is_silent(self) -> bool:
        connection = self.connection
        if connection is None or connection.closed:
            return False
        if connection.info.transaction_status != TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN | select.POLLPRI)
        return not poll.poll(0)
