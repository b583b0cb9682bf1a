"""Leadership, and the epoch that fences off an earlier leader.

Two mechanisms make it safe. An advisory lock is held by a database session for as long as the process lives, so one
process leads; PostgreSQL releases it when that session ends, for whatever reason. The lock alone does not stop a
leader that was paused while it lost the lock. So each batch first locks the lease row of its epoch. A new leader
commits `epoch + 1`, which waits for a batch in progress; after that, batches of an older epoch find no row and write
nothing.
"""

from __future__ import annotations

import os
import socket

import psycopg
from django.db import connection

from scheduler.models import Lease

LOCK_NAMESPACE = 0x6B75657565  # "kueue"; all users of the database share advisory locks


class LeaseLost(Exception):
    """Another process leads; the decisions of this one are void."""


class Leadership:
    """This process's leadership of the scheduling of every cluster in the database."""

    def __init__(self) -> None:
        self.holder = f"{socket.gethostname()}:{os.getpid()}"
        self._session: psycopg.Connection | None = None
        self._led = False

    def acquire(self) -> bool:
        """Whether this process leads now; takes the lock if it is free. Raises `LeaseLost` if its session has ended."""
        if self._session is not None:
            if self._alive(self._session):
                return True
            self._session = None
            raise LeaseLost(f"{self.holder} led, but the database session with its lock has ended")
        if self._led:
            raise LeaseLost(f"{self.holder} led before; a process leads only once")
        session = self._connect()
        row = session.execute("SELECT pg_try_advisory_lock(%s)", [LOCK_NAMESPACE]).fetchone()
        if row is None or not row[0]:
            session.close()
            return False
        self._session, self._led = session, True
        return True

    def wait(self) -> None:
        """Wait until this process leads, which is as soon as the previous leader is gone."""
        if self._session is not None or self._led:
            self.acquire()
            return
        session = self._connect()
        session.execute("SELECT pg_advisory_lock(%s)", [LOCK_NAMESPACE])
        self._session, self._led = session, True

    def release(self) -> None:
        """Give up leadership. The process cannot lead again."""
        if self._session is not None:
            self._session.close()
            self._session = None

    @staticmethod
    def _connect() -> psycopg.Connection:
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
            application_name="kueueweb-leader",
            keepalives_idle=5,
            keepalives_interval=2,
            keepalives_count=3,
        )

    @staticmethod
    def _alive(session: psycopg.Connection) -> bool:
        try:
            session.execute("SELECT 1")
        except psycopg.Error:
            return False
        return True


def begin_epoch(cluster_id: int, holder: str) -> int:
    """Raise the cluster's epoch, which waits for a batch in progress, and return it. Call it before loading
    anything."""
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


def fence(cluster_id: int, epoch: int) -> None:
    """First step of a batch: lock the lease row of this epoch until the transaction ends. Raises `LeaseLost`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM scheduler_lease WHERE cluster_id = %s AND epoch = %s FOR SHARE", [cluster_id, epoch]
        )
        if cursor.fetchone() is None:
            raise LeaseLost(f"epoch {epoch} is over: another process leads")


def renew(cluster_id: int, epoch: int) -> None:
    """Renew the lease of this epoch. Raises `LeaseLost`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE scheduler_lease SET renewed_at = now() WHERE cluster_id = %s AND epoch = %s", [cluster_id, epoch]
        )
        if cursor.rowcount == 0:
            raise LeaseLost(f"epoch {epoch} is over: another process leads")
