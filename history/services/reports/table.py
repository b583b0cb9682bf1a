"""A report as a table with named columns and units, and a line of totals."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import connection
from psycopg import sql

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
class Part:
    """A cluster, and the namespaces and ClusterQueues of it that are reported: None means all."""

    cluster_id: int
    cluster_name: str
    namespaces: Sequence[str] | None = None
    cluster_queues: Collection[str] | None = None

    def sees_queue(self, name: str) -> bool:
        """Return whether a ClusterQueue may be named."""
        return self.cluster_queues is None or name in self.cluster_queues


@dataclass(frozen=True, slots=True)
class Request:
    """The clusters, the time range and the grouping of a report; an empty grouping means the usual one."""

    parts: Sequence[Part]
    since: datetime
    until: datetime
    by: Sequence[str] = ()

    @property
    def whole(self) -> list[Part]:
        """The clusters of which all namespaces are reported."""
        return [part for part in self.parts if part.namespaces is None]

    @property
    def is_of_several(self) -> bool:
        return len(self.parts) > 1

    def grouping(self, usual: Sequence[str]) -> Sequence[str]:
        """Return the columns to group the rows by."""
        return self.by or ((CLUSTER, *usual) if self.is_of_several else usual)

    def parameters(self) -> dict[str, Any]:
        """For the statements."""
        shown = [(part, namespace) for part in self.parts for namespace in part.namespaces or ()]
        return {
            "clusters": [part.cluster_id for part in self.parts],
            "whole": [part.cluster_id for part in self.whole],
            "namespaces": [f"{part.cluster_id}/{namespace}" for part, namespace in shown],
            "cluster_names": [part.cluster_name for part in self.parts],
            "whole_names": [part.cluster_name for part in self.whole],
            "named_namespaces": [f"{part.cluster_name}/{namespace}" for part, namespace in shown],
            "since": self.since,
            "until": self.until,
            "limit": MAX_ROWS,
        }


CLUSTER: Final = "cluster"
"""The name of the grouping by cluster, and of its column."""

REPORTED: Final = sql.SQL(
    """{cluster} = ANY (%(clusters)s)
        AND ({cluster} = ANY (%(whole)s) OR {cluster} || '/' || {namespace} = ANY (%(namespaces)s))"""
)
"""Whether a row of a cluster, by its key, and of a namespace is reported."""


def fetch(statement: Any, parameters: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return all rows of a statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        return list(cursor.fetchall())


def write_csv(report: Report) -> str:
    """Write a report as RFC 4180. A text that a spreadsheet would run as a formula begins with an apostrophe."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([column.name for column in report.columns])
    for row in report.rows:
        writer.writerow([_harmless(cell) for cell in row])
    return text.getvalue()


def _harmless(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_FORMULA) else cell
