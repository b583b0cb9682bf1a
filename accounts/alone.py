"""Work that one process or thread at a time does, by advisory locks of database sessions, which are released when
their holder dies."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum

from django.db import connection


class Work(IntEnum):
    """The first halves of the keys of the locks."""

    MULTIKUEUE = 0x6B776D6B
    DELIVERIES = 0x6B77646C
    WEBHOOK_CHECKS = 0x6B777763
    TELEMETRY = 0x6B77746D


@contextmanager
def alone(work: Work, key: int = 0) -> Iterator[bool]:
    """Whether nobody else is at it. Whoever is told no leaves the work to the one that is."""
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
def one_of(work: Work, number: int) -> Iterator[bool]:
    """Whether fewer than that number are at it. Keys of `alone` for the same work are at least 0."""
    with ExitStack() as held:
        yield any(held.enter_context(alone(work, -1 - place)) for place in range(number))
