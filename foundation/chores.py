"""Housekeeping tasks that are sent only while there are rows for them to work on.

Beat sends them after a query: messages that are sent whether there is work or not cost an installation at rest more
than the rest. The leader does not send them, because one of them notifies users of a silent leader.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import connection

CHORE_SECONDS: Final = 2.0
"""The shortest time from look to look."""


@dataclass(frozen=True, slots=True)
class _Chore:
    rows: str
    parameters: tuple[str, ...]
    seconds: float


_chores: Final[dict[str, _Chore]] = {}


def runs_while(task: str, rows: str, *parameters: str, seconds: float = CHORE_SECONDS) -> None:
    """Send the task at this interval, in seconds, as long as this query with these parameters finds a row."""
    _chores[task] = _Chore(rows, parameters, seconds)


class Chores:
    """The times of one sender. `steady`: seconds that only go forward."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._next: dict[str, float] = {}

    def due(self) -> dict[str, float]:
        """Return the tasks that are due and have rows to work on, with at most one query: task -> the seconds until it
        is due again, within which it must start."""
        now = self._steady()
        names = [name for name in sorted(_chores) if self._next.get(name, now) <= now]
        if not names:
            return {}
        looks = ", ".join(f"EXISTS ({_chores[name].rows})" for name in names)
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {looks}", [value for name in names for value in _chores[name].parameters])
            found = cursor.fetchone()
        self._next |= {name: now + _chores[name].seconds for name in names}
        return {name: _chores[name].seconds for name, has_rows in zip(names, found, strict=True) if has_rows}
