"""Preemptions: preemptor, victim, reason, time, and the device-hours that are lost."""

from collections.abc import Mapping
from typing import Final

from psycopg import sql

from history.services.reports.displacements import PREEMPTIONS, PREEMPTOR, PREEMPTOR_QUEUE
from history.services.reports.table import CLUSTER, Column, Report, Request, fetch
from history.services.reports.usage import added


def _of_whole(value: sql.Composable) -> sql.Composed:
    """Return a tenant of one cluster who sees all of another does not learn who made room for whom in the first."""
    return sql.SQL("CASE WHEN decision.cluster_name = ANY (%(whole_names)s) THEN {} ELSE '' END").format(value)


BY: Final[Mapping[str, tuple[str, sql.Composable]]] = {
    CLUSTER: ("Cluster", sql.SQL("decision.cluster_name")),
    "day": ("Day", sql.SQL("to_char(decision.decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')")),
    "cluster_queue": ("Preempted in", sql.SQL("decision.cluster_queue_name")),
    "namespace": ("Namespace", sql.SQL("decision.namespace")),
    "preemptor_cluster_queue": ("Preempted by", _of_whole(PREEMPTOR_QUEUE)),
    "preemptor_namespace": ("By namespace", _of_whole(sql.SQL("split_part({}, '/', 1)").format(PREEMPTOR))),
    "workload": ("Workload", sql.SQL("decision.namespace || '/' || decision.workload_name")),
    "preemptor": ("Its preemptor", _of_whole(PREEMPTOR)),
    "reason": ("Reason", sql.SQL("decision.reason")),
}
DEFAULT_BY: Final = ("cluster_queue", "preemptor_cluster_queue", "reason")
OF_OTHERS: Final = frozenset({"preemptor_cluster_queue", "preemptor_namespace", "preemptor"})
"""Columns about the preemptor, which a tenant may not see."""

_STATEMENT: Final = sql.SQL(
    """
    SELECT {by}, count(*), count(DISTINCT decision.workload_uid), sum(lost.hours), max(decision.decided_at)
    {preemptions} GROUP BY {places} ORDER BY count(*) DESC, {places} LIMIT %(limit)s
    """
)


def preemptions(request: Request) -> Report:
    """Report preemptions with the number of workloads that they hit, and the device-hours that these had run for and
    lose without a checkpoint; the most frequent first."""
    by = request.grouping(DEFAULT_BY)
    if not request.whole:
        by = tuple(name for name in by if name not in OF_OTHERS) or ("reason",)
    statement = _STATEMENT.format(
        by=sql.SQL(", ").join(BY[name][1] for name in by),
        preemptions=PREEMPTIONS,
        places=sql.SQL(", ").join(sql.Literal(number + 1) for number in range(len(by))),
    )
    rows = fetch(statement, request.parameters())
    columns = [
        *(Column(name, BY[name][0]) for name in by),
        Column("preemptions", "Preemptions", "count"),
        Column("workloads", "Preempted workloads", "count"),
        Column("lost_device_hours", "Device-hours lost", "hours"),
        Column("last_at", "Last", "time"),
    ]
    found = [
        [*place, count, workloads, None if lost is None else round(lost, 4), last.isoformat()]
        for *place, count, workloads, lost, last in rows
    ]
    totals = {
        "preemptions": sum(row[len(by)] for row in found),
        "lost_device_hours": added(row[len(by) + 2] for row in found),
    }
    return Report(columns, found, totals)
