"""Housekeeping tasks that are sent only while there are rows for them to work on.

Each was sent every two seconds, by beat: in an installation at rest, messages about nothing cost more than the rest.
"""

from __future__ import annotations

from typing import Final

from django.db import connection

CHORE_SECONDS: Final = 2.0
"""The time from look to look; a task that was not started in it is sent anew."""

_chores: Final[dict[str, tuple[str, tuple[str, ...]]]] = {}
"""By task: the query, and its parameters."""


def runs_while(task: str, rows: str, *parameters: str) -> None:
    """Have the task sent every CHORE_SECONDS while this query with these parameters finds a row."""
    _chores[task] = rows, parameters


def due_chores() -> list[str]:
    """The tasks that have rows to work on, by one query."""
    names = sorted(_chores)
    looks = ", ".join(f"EXISTS ({_chores[name][0]})" for name in names)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {looks}", [value for name in names for value in _chores[name][1]])
        found = cursor.fetchone()
    return [name for name, has_rows in zip(names, found, strict=True) if has_rows]
