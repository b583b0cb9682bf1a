"""The connections of all processes to PostgreSQL: Django's, with a health check that costs no statement."""

from __future__ import annotations

import select

from django.db.backends.postgresql.base import DatabaseWrapper as DjangosWrapper
from psycopg.pq import TransactionStatus


class DatabaseWrapper(DjangosWrapper):
    """A connection that is asked before each unit of work whether it can still be used, as CONN_HEALTH_CHECKS wants."""

    def is_usable(self) -> bool:
        """Whether the server has not ended the session.

        A server that ends a session says so, and between statements it says hardly anything else. A connection that
        is idle and has nothing to read is usable without a question; any other is asked, as Django does, with a
        statement. A server that vanishes without a word is not noticed either way before the next answer is overdue.
        """
        return self._is_silent() or super().is_usable()

    def _is_silent(self) -> bool:
        connection = self.connection
        if connection is None or connection.closed:
            return False
        if connection.info.transaction_status != TransactionStatus.IDLE:
            return False
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN | select.POLLPRI)
        return not poll.poll(0)
