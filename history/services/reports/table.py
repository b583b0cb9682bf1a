"""What every report answers: a table with named columns and units, and a line of totals."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import connection

MAX_ROWS: Final = 5_000
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Cell = str | float | int | None


@dataclass(frozen=True, slots=True)
class Column:
    """`kind`: text, count, seconds, hours (of one unit of the resource), money, percent, or time (ISO 8601)."""

    name: str
    label: str
    kind: str = "text"


@dataclass(frozen=True, slots=True)
class Report:
    """Rows have a cell for each column."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell]]
    totals: Mapping[str, Cell] = field(default_factory=dict)
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """Of which cluster, from when to when, and of which namespaces: None means all."""

    cluster_id: int
    cluster_name: str
    since: datetime
    until: datetime
    namespaces: Sequence[str] | None
    by: Sequence[str] = ()

    def parameters(self) -> dict[str, Any]:
        """For the statements."""
        return {
            "cluster_id": self.cluster_id,
            "cluster_name": self.cluster_name,
            "since": self.since,
            "until": self.until,
            "namespaces": None if self.namespaces is None else list(self.namespaces),
            "limit": MAX_ROWS,
        }


def fetch(statement: Any, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """All rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def write_csv(report: Report) -> str:
    """As RFC 4180 has it. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([column.name for column in report.columns])
    for row in report.rows:
        writer.writerow([_harmless(cell) for cell in row])
    return text.getvalue()


def _harmless(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
