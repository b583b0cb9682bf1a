"""Statements that are sent together."""

from __future__ import annotations

from typing import Any, Final

from django.db.backends.utils import CursorWrapper


class JoinedStatements:
    """Collects the statements of a transaction whose results are not needed, and sends them as one message, in order.

    Each message waits for its answer: for a few rows, that takes both sides longer than the statement does.
    """

    def __init__(self, cursor: CursorWrapper) -> None:
        self._cursor: Final = cursor
        self._texts: list[str] = []
        self._parameters: list[Any] = []

    def execute(self, statement: str, parameters: list[Any]) -> None:
        """Add a statement. Its errors are those of `send` and `rows`."""
        self._texts.append(statement)
        self._parameters += parameters

    def send(self) -> None:
        """Execute the statements that were added since the last call, in one message."""
        if self._texts:
            self._cursor.execute(";\n".join(self._texts), self._parameters)
            self._texts, self._parameters = [], []

    def rows(self, statement: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
        """Execute all statements that were added before, and then this one; return its rows."""
        self.send()
        self._cursor.execute(statement, parameters)
        found: list[tuple[Any, ...]] = self._cursor.fetchall()
        return found
