"""Waiting times and throughput."""

from collections.abc import Mapping
from typing import Any, Final

from psycopg import sql

from history.services.reports.table import CLUSTER, Column, Report, Request, fetch
from history.services.reports.uses import DEVICES, SIZE, USES

BY: Final[Mapping[str, tuple[str, sql.Composable]]] = {
    CLUSTER: ("Cluster", sql.SQL("uses.cluster")),
    "cluster_queue": ("ClusterQueue", sql.SQL("uses.cluster_queue")),
    "local_queue": ("LocalQueue", sql.SQL("uses.namespace || '/' || uses.local_queue")),
    "namespace": ("Namespace", sql.SQL("uses.namespace")),
    "user": ("User", sql.SQL("uses.submitted_by")),
    "priority": (
        "Priority",
        sql.SQL("CASE uses.priority_class WHEN '' THEN uses.priority::text ELSE uses.priority_class END"),
    ),
    "size": ("Size", SIZE),
}
DEFAULT_BY: Final = ("cluster_queue",)

_VALUES: Final = (
    Column("started", "Started", "count"),
    Column("wait_p50_seconds", "Median wait", "seconds"),
    Column("wait_p90_seconds", "90th percentile", "seconds"),
    Column("wait_max_seconds", "Longest wait", "seconds"),
    Column("finished", "Finished", "count"),
    Column("failed", "Failed", "count"),
    Column("run_mean_seconds", "Mean run time", "seconds"),
    Column("preempted", "Preempted", "count"),
    Column("evicted", "Evicted", "count"),
    Column("device_hours", "Device-hours", "hours"),
)
_STATEMENT: Final = sql.SQL(
    """
    WITH {uses}, measured AS (
        SELECT {by}, uses.*, {devices} AS devices,
            queued_at IS NOT NULL AND reserved_at >= %(since)s AND reserved_at < %(until)s AS starts,
            extract(epoch FROM reserved_at - queued_at)::float8 AS waited,
            ended_at >= %(since)s AND ended_at < %(until)s AS ends,
            extract(epoch FROM least(ended_at, %(until)s) - greatest(started_at, %(since)s))::float8 / 3600 AS hours
        FROM uses
    )
    SELECT {names}, count(*) FILTER (WHERE starts),
        percentile_cont(0.5) WITHIN GROUP (ORDER BY waited) FILTER (WHERE starts),
        percentile_cont(0.9) WITHIN GROUP (ORDER BY waited) FILTER (WHERE starts),
        max(waited) FILTER (WHERE starts),
        count(*) FILTER (WHERE ends AND outcome = 'Finished'),
        count(*) FILTER (WHERE ends AND outcome = 'Finished' AND reason = 'Failed'),
        avg(extract(epoch FROM ended_at - reserved_at)::float8) FILTER (WHERE ends AND outcome = 'Finished'),
        count(*) FILTER (WHERE ends AND outcome = 'Preempted'),
        count(*) FILTER (WHERE ends AND outcome = 'Evicted'),
        sum(devices * hours)
    FROM measured GROUP BY GROUPING SETS (({names}), ()) ORDER BY grouping({first}) , {names} LIMIT %(limit)s
    """
)


def waits(request: Request) -> Report:
    """Report the waits of workloads that started in the period, and the number of workloads that ended in it. Totals
    are computed over all workloads, not from percentiles."""
    by = request.grouping(DEFAULT_BY)
    names = [sql.Identifier(f"by_{name}") for name in by]
    comma = sql.SQL(", ")
    statement = _STATEMENT.format(
        uses=USES,
        devices=DEVICES,
        by=comma.join(sql.SQL("{} AS {}").format(BY[name][1], alias) for name, alias in zip(by, names, strict=True)),
        names=comma.join(names),
        first=names[0],
    )
    rows = fetch(statement, request.parameters())
    whole = [_rounded(row) for row in rows if row[: len(by)] == (None,) * len(by)]
    found = [_rounded(row) for row in rows if row[: len(by)] != (None,) * len(by)]
    columns = [*(Column(name, BY[name][0]) for name in by), *_VALUES]
    totals = dict(zip((column.name for column in _VALUES), whole[0][len(by) :], strict=True)) if whole else {}
    return Report(columns, found, totals)


def _rounded(row: tuple[Any, ...]) -> list[Any]:
    return [round(value, 3) if isinstance(value, float) else value for value in row]
