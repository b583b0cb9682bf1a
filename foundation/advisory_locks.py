"""Limits work to one process or thread at a time.

The locks are PostgreSQL's session-level advisory locks, so the database releases them when their holder dies."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum

from django.db import connection


class LockedWork(IntEnum):
    """Kinds of work, used as the first half of a lock's key."""

    MULTIKUEUE = 0x6B776D6B
    DELIVERIES = 0x6B77646C
    WEBHOOK_CHECKS = 0x6B777763
    TELEMETRY = 0x6B77746D
    PAST_USE = 0x6B777075
    CHECKPOINTS = 0x6B776370
    PAST_READS = 0x6B777072


@contextmanager
def try_lock(work: LockedWork, key: int = 0) -> Iterator[bool]:
    """Try to take the lock of this work; False if another session holds it and does the work."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s, %s)", [work, key])
        mine = bool(cursor.fetchone()[0])
    try:
        yield mine
    finally:
        if mine:
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_unlock(%s, %s)", [work, key])


@contextmanager
def try_one_of(work: LockedWork, number: int) -> Iterator[bool]:
    """Try to take one of this many locks of the work. Keys of `try_lock` for the same work are at least 0."""
    with ExitStack() as held:
        yield any(held.enter_context(try_lock(work, -1 - place)) for place in range(number))


def take_one_of(work: LockedWork, number: int) -> bool:
    """Try to take one of this many locks of the work until the transaction ends; False if other sessions hold all of
    them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place FROM generate_series(1, %s) AS place WHERE pg_try_advisory_xact_lock(%s, place) LIMIT 1",
            [number, work],
        )
        return cursor.fetchone() is not None
