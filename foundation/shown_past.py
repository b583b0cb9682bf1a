"""The moment of the past whose rows this thread's connection shows in place of the present ones.

The rights of now always apply: a checkpoint has no roles, and `present_rows` reads the present rows on which the
rights to names depend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connection
from django.utils import timezone


@dataclass(frozen=True, slots=True)
class Past:
    """A moment as it is known: `taken_at` is the time of the rows, `at` or the checkpoint before it; `exact` says
    whether the rows are those of `at`, and `reason` why not. `figures` are the figures of the queues: {source, time,
    totals, cluster_queues, cohorts}; None if they follow from the rows, with the cluster's `settings` then, by column.
    """

    cluster_id: int
    at: datetime
    taken_at: datetime
    exact: bool
    figures: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    reason: str = ""


_current: ContextVar[Past | None] = ContextVar("past", default=None)
OpenPast = Callable[[int, datetime], AbstractContextManager[Past]]
_opened_by: list[OpenPast] = []


def opens_past(opener: OpenPast) -> None:
    """Register the reader of past rows. The app that keeps them is in a ring above the apps that show them."""
    _opened_by[:] = [opener]


def open_past(cluster_id: int, at: datetime) -> AbstractContextManager[Past]:
    """Show the rows of that moment while the context is open. Raises NotFound (NoCheckpoint) and InvalidRequest."""
    [opener] = _opened_by
    return opener(cluster_id, at)


def current_past() -> Past | None:
    """Return the moment that is shown; None means the present."""
    return _current.get()


def shown_time() -> datetime:
    """Return the time of the rows that are shown: now, or a time of the past."""
    past = _current.get()
    return timezone.now() if past is None else past.taken_at


@contextmanager
def showing(past: Past) -> Iterator[Past]:
    """Mark the rows as past ones for readers."""
    token = _current.set(past)
    try:
        yield past
    finally:
        _current.reset(token)


@contextmanager
def present_rows() -> Iterator[None]:
    """Read the present rows, also while past ones are shown."""
    past = _current.get()
    if past is None:
        yield
        return
    token = _current.set(None)
    with connection.cursor() as cursor:
        cursor.execute("SHOW search_path")
        [before] = cursor.fetchone()
        cursor.execute("SELECT set_config('search_path', %s, true)", [f"{before.removeprefix('pg_temp, ')}, pg_temp"])
        try:
            yield
        finally:
            _current.reset(token)
            cursor.execute("SELECT set_config('search_path', %s, true)", [before])
