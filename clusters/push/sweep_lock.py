"""Allows one sweep at a time per cluster, by advisory locks of database sessions, which are released when their
holder dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from django.db import OperationalError, connection

from accounts.models import Cluster

WORKING: Final = 0x6B777075
_WAITING: Final = 0x6B777077
"""The first halves of the advisory lock keys; the second half is the cluster's key."""
_MAX_WAIT: Final = "30s"
_LOCK_NOT_AVAILABLE: Final = "55P03"


@contextmanager
def sweep_lock(cluster: Cluster) -> Iterator[bool]:
    """Return whether this sweep may run. One sweep runs and one waits for it. Any other may be skipped: the waiting
    sweep will read rows later than now, so it will see every change that required a sweep."""
    mine = False
    with connection.cursor() as cursor:
        if _try_lock(cursor, WORKING, cluster):
            mine = True
        elif _try_lock(cursor, _WAITING, cluster):
            try:
                mine = _wait_for_lock(cursor, WORKING, cluster)
            finally:
                _unlock(cursor, _WAITING, cluster)
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                _unlock(cursor, WORKING, cluster)


def _try_lock(cursor: Any, lock: int, cluster: Cluster) -> bool:
    cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [lock, cluster.pk])
    return bool(cursor.fetchone()[0])


def _wait_for_lock(cursor: Any, lock: int, cluster: Cluster) -> bool:
    cursor.execute(f"SET lock_timeout = '{_MAX_WAIT}'")
    try:
        cursor.execute("SELECT pg_advisory_lock(%s, %s)", [lock, cluster.pk])
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", None) != _LOCK_NOT_AVAILABLE:
            raise
        return False
    finally:
        cursor.execute("SET lock_timeout = DEFAULT")
    return True


def _unlock(cursor: Any, lock: int, cluster: Cluster) -> None:
    cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [lock, cluster.pk])
