"""Housekeeping tasks that are sent only while there are rows for them to work on.

Each was sent every two seconds, by beat: in an installation at rest, messages about nothing cost more than the rest.
"""

from __future__ import annotations

from typing import Final

from django.db import connection

CHORE_SECONDS: Final = 2.0
"""The time from look to look; a task that was not started in it is sent anew."""

_chores: Final[dict[str, str]] = {}


def runs_while(task: str, rows: str) -> None:
    """Have the task sent every CHORE_SECONDS while this query, which has no parameters, finds a row."""
    _chores[task] = rows


def due_chores() -> list[str]:
    """The tasks that have rows to work on, by one query."""
    names = sorted(_chores)
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'EXISTS ({_chores[name]})' for name in names)}")
        found = cursor.fetchone()
    return [name for name, has_rows in zip(names, found, strict=True) if has_rows]
