"""Leadership, and the epoch that fences off an earlier leader.

Three mechanisms make it safe. An advisory lock is held by a database session of its own, so one process leads;
PostgreSQL releases it when that session ends, for whatever reason. Leadership requires progress: the leader sends a
statement in that session after each batch, and a standby ends the sessions of a leader that has been silent for too
long, because it hangs, swaps or is stopped. And each batch first locks the lease row of its epoch. A new leader commits
`epoch + 1`, which waits for a batch in progress; after that, batches of an older epoch find no row and write nothing.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from uuid import uuid4
from zlib import crc32

import psycopg
from django.db import connection

from foundation.postgresql.instances import fetched_rows
from scheduler.models import Lease

_log = logging.getLogger(__name__)

LOCK_NAMESPACE = 0x6B75657565  # "kueue"; all users of the database share advisory locks
_CLUSTER_BITS: Final = (1 << 24) - 1
SILENCE_SECONDS: Final = 12.0
"""A leader that is silent for this long is replaced. It sends a statement with each tick, and a batch takes a fraction
of this time.
"""
LOADING_SECONDS: Final = 300.0
"""The same while it loads a cluster, which is one long step."""
_LOOK_SECONDS: Final = 1.0
"""The interval in which a standby checks the leader."""
_LEADS: Final = "kueueweb-leader"
_LOADS: Final = "kueueweb-leader-loads"
_DECIDES: Final = "kueueweb-scheduler"
"""Names of database sessions. Each is followed by the token of its process."""

# A session's last statement began at `query_start`, by the database's clock.
_END_SILENT_LEADER: Final = """
    WITH silent AS (
        SELECT split_part(leader.application_name, ' ', 2) AS token
        FROM pg_locks AS lock JOIN pg_stat_activity AS leader USING (pid)
        WHERE lock.locktype = 'advisory' AND lock.granted AND lock.database = leader.datid
            AND leader.datname = current_database()
            AND (lock.classid::bigint << 32 | lock.objid::bigint) = %(lock)s AND lock.objsubid = 1
            AND leader.query_start < clock_timestamp() - make_interval(secs =>
                CASE split_part(leader.application_name, ' ', 1) WHEN %(loads)s THEN %(loading)s ELSE %(silence)s END
            )
    )
    SELECT pg_terminate_backend(pid)
    FROM pg_stat_activity AS session JOIN silent ON split_part(session.application_name, ' ', 2) = silent.token
    WHERE session.datname = current_database() AND silent.token <> ''
"""

_FENCE: Final = "SELECT 0 FROM scheduler_lease WHERE cluster_id = %s AND epoch = %s FOR SHARE"
_FENCE_WITH_CONFIGURATION: Final = """
    SELECT cluster.configuration_generation
    FROM scheduler_lease AS lease JOIN accounts_cluster AS cluster ON cluster.id = lease.cluster_id
    WHERE lease.cluster_id = %s AND lease.epoch = %s FOR SHARE OF lease, cluster
"""
_FORGET_IN_EPOCH: Final = """
    WITH lease AS MATERIALIZED (
        SELECT FROM scheduler_lease WHERE cluster_id = %s AND epoch = %s FOR SHARE
    ), forgotten AS (
        DELETE FROM scheduler_change WHERE id = ANY(%s) AND EXISTS (SELECT FROM lease)
    )
    SELECT EXISTS (SELECT FROM lease)
"""


class LeaseLost(Exception):
    """Another process leads; the decisions of this one are void."""


class Leadership:
    """This process's leadership of the scheduling of one cluster, or of all that have no processes of their own."""

    def __init__(
        self, cluster: str = "", *, silence_seconds: float = SILENCE_SECONDS, loading_seconds: float = LOADING_SECONDS
    ) -> None:
        """The times after which a standby replaces a leader that makes no progress."""
        self.cluster = cluster
        self.holder = f"{socket.gethostname()}:{os.getpid()}"
        self._token = uuid4().hex[:12]
        self._silence_seconds = silence_seconds
        self._loading_seconds = loading_seconds
        self._session: psycopg.Connection | None = None
        self._named: object = None
        """The session that decides and has its name."""
        self._led = False

    @property
    def _session_ended(self) -> str:
        return f"{self.holder} led, but the database session with its lock has ended"

    @property
    def _lock(self) -> int:
        """The key of the advisory lock: the bits above the namespace identify the cluster."""
        return (crc32(self.cluster.encode()) & _CLUSTER_BITS) << LOCK_NAMESPACE.bit_length() | LOCK_NAMESPACE

    def acquire(self) -> bool:
        """Take the lock if it is free; return whether this process leads now. Raises `LeaseLost` if its session has
        ended."""
        if self._session is not None:
            if self.renew():
                self._name_connection()
                return True
            self._session = None
            raise LeaseLost(self._session_ended)
        if self._led:
            raise LeaseLost(f"{self.holder} has led before; a process leads only once")
        session = self._connect()
        if not self._take(session):
            session.close()
            return False
        return True

    def wait(self, sleep: Callable[[float], None] = time.sleep) -> None:
        """Wait until this process leads, which is when the previous leader has ended or makes no progress."""
        if self._session is not None or self._led:
            self.acquire()
            return
        session = self._connect()
        try:
            while not self._take(session):
                self._end_silent_leader(session)
                sleep(_LOOK_SECONDS)
        finally:
            if self._session is not session:
                session.close()

    def renew(self) -> bool:
        """Report that this leader makes progress; return whether it still leads."""
        if self._session is None:
            return False
        try:
            self._session.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Allow the leader to be silent for longer while it loads a cluster."""
        self._name_session(_LOADS)
        try:
            yield
        finally:
            self._name_session(_LEADS)

    def _name_session(self, name: str) -> None:
        if self._session is not None:
            try:
                self._session.execute("SELECT set_config('application_name', %s, false)", [f"{name} {self._token}"])
            except psycopg.Error as error:
                raise LeaseLost(self._session_ended) from error

    def _name_connection(self) -> None:
        """Give the deciding session a name, so that it ends together with the session that holds the lock."""
        if connection.connection is not None and connection.connection is self._named:
            return
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('application_name', %s, false)", [f"{_DECIDES} {self._token}"])
        self._named = connection.connection

    def _take(self, session: psycopg.Connection) -> bool:
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [self._lock]).fetchone()
        if row is None or not row[0]:
            return False
        self._session, self._led = session, True
        self._name_connection()
        return True

    def _end_silent_leader(self, session: psycopg.Connection) -> None:
        limits = {"silence": self._silence_seconds, "loading": self._loading_seconds}
        ended = session.execute(_END_SILENT_LEADER, {"lock": self._lock, "loads": _LOADS, **limits}).rowcount
        if ended:
            _log.error("the leader made no progress: ended %d of its database sessions", ended)

    def release(self) -> None:
        """Give up leadership. The process cannot lead again."""
        if self._session is not None:
            self._session.close()
            self._session = None

    def _connect(self) -> psycopg.Connection:
        parameters = connection.get_connection_params()
        options = {
            key: value
            for key, value in parameters.items()
            if key in {"dbname", "user", "password", "host", "port", "sslmode", "sslrootcert", "sslcert", "sslkey"}
        }
        # Keepalives notice a vanished database host within seconds rather than hours.
        return psycopg.connect(
            **options,
            autocommit=True,
            application_name=f"{_LEADS} {self._token}",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
        )


def begin_epoch(cluster_id: int, holder: str) -> int:
    """Raise the cluster's epoch, and return it. This waits for a batch in progress. Call it before loading any rows."""
    Lease.objects.get_or_create(cluster_id=cluster_id)
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_lease SET epoch = epoch + 1, holder = %s, acquired_at = now(), renewed_at = now() "
            "WHERE cluster_id = %s RETURNING epoch",
            [holder, cluster_id],
        )
        row = cursor.fetchone()
    assert row is not None  # get_or_create created it, and a lease is deleted only with its cluster
    return int(row[0])


def fence(cluster_id: int, epoch: int, *, configuration: bool = False) -> int:
    """Lock the lease row of this epoch until the transaction ends.

    Every batch does this first. Raises `LeaseLost`. With `configuration`, also lock the cluster's row, after the lease
    row, against edits of the configuration, and return the generation of the configuration; otherwise return 0.
    """
    found = fetched_rows(_FENCE_WITH_CONFIGURATION if configuration else _FENCE, [cluster_id, epoch])
    if not found:
        raise _over(epoch)
    return int(found[0][0])


def forget_changes_in(cluster_id: int, epoch: int, change_ids: Sequence[int], lock_timeout: str) -> None:
    """Delete notes that led to no decision, in one message, if this epoch still lasts. Raises `LeaseLost`."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"SET LOCAL lock_timeout = '{lock_timeout}'; {_FORGET_IN_EPOCH}", [cluster_id, epoch, list(change_ids)]
        )
        cursor.nextset()
        if not cursor.fetchone()[0]:
            raise _over(epoch)


def _over(epoch: int) -> LeaseLost:
    return LeaseLost(f"epoch {epoch} is over: another process leads")


def renew(cluster_id: int, epoch: int) -> None:
    """Renew the lease of this epoch. Raises `LeaseLost`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_lease SET renewed_at = now() WHERE cluster_id = %s AND epoch = %s", [cluster_id, epoch]
        )
        if cursor.rowcount == 0:
            raise _over(epoch)
