"""Preemptions: preemptor, victim, reason and time."""

from collections.abc import Mapping
from typing import Final

from psycopg import sql

from history.services.reports.table import CLUSTER, Column, Report, Request, fetch


def _of_whole(value: str) -> sql.Composed:
    """A tenant of one cluster who sees all of another does not learn who made room for whom in the first."""
    return sql.SQL("CASE WHEN cluster_name = ANY (%(whole_names)s) THEN {} ELSE '' END").format(sql.SQL(value))


BY: Final[Mapping[str, tuple[str, sql.Composable]]] = {
    CLUSTER: ("Cluster", sql.SQL("cluster_name")),
    "day": ("Day", sql.SQL("to_char(decided_at AT TIME ZONE 'UTC', 'YYYY-MM-DD')")),
    "cluster_queue": ("Preempted in", sql.SQL("cluster_queue_name")),
    "namespace": ("Namespace", sql.SQL("namespace")),
    "preemptor_cluster_queue": ("Preempted by", _of_whole("coalesce(detail ->> 'preemptor_cluster_queue', '')")),
    "preemptor_namespace": ("By namespace", _of_whole("split_part(coalesce(detail ->> 'preemptor', ''), '/', 1)")),
    "workload": ("Workload", sql.SQL("namespace || '/' || workload_name")),
    "preemptor": ("Its preemptor", _of_whole("coalesce(detail ->> 'preemptor', '')")),
    "reason": ("Reason", sql.SQL("reason")),
}
DEFAULT_BY: Final = ("cluster_queue", "preemptor_cluster_queue", "reason")
OF_OTHERS: Final = frozenset({"preemptor_cluster_queue", "preemptor_namespace", "preemptor"})
"""Columns about the preemptor, which a tenant may not see."""

_STATEMENT: Final = sql.SQL(
    """
    SELECT {by}, count(*), count(DISTINCT workload_uid), max(decided_at)
    FROM scheduler_decision
    WHERE cluster_name = ANY (%(cluster_names)s) AND action = 'Preempt' AND decided_at >= %(since)s
        AND decided_at < %(until)s AND (cluster_name = ANY (%(whole_names)s)
            OR cluster_name || '/' || namespace = ANY (%(named_namespaces)s))
    GROUP BY {places} ORDER BY count(*) DESC, {places} LIMIT %(limit)s
    """
)


def preemptions(request: Request) -> Report:
    """Counts of preemptions and of the workloads that they hit, the most frequent first."""
    by = request.grouping(DEFAULT_BY)
    if not request.whole:
        by = tuple(name for name in by if name not in OF_OTHERS) or ("reason",)
    statement = _STATEMENT.format(
        by=sql.SQL(", ").join(BY[name][1] for name in by),
        places=sql.SQL(", ").join(sql.Literal(number + 1) for number in range(len(by))),
    )
    rows = fetch(statement, request.parameters())
    columns = [
        *(Column(name, BY[name][0]) for name in by),
        Column("preemptions", "Preemptions", "count"),
        Column("workloads", "Workloads hit", "count"),
        Column("last_at", "Last", "time"),
    ]
    found = [[*place, count, workloads, last.isoformat()] for *place, count, workloads, last in rows]
    return Report(columns, found, {"preemptions": sum(row[len(by)] for row in found)})
