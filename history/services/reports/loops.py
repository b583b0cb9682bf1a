"""Loops of preemptions: two queues, namespaces or workloads that displace each other."""

from collections.abc import Mapping
from typing import Final

from psycopg import sql

from history.services.reports.displacements import PREEMPTIONS, PREEMPTOR, PREEMPTOR_QUEUE
from history.services.reports.table import CLUSTER, Column, Report, Request, fetch

BY: Final[Mapping[str, tuple[str, sql.Composable, sql.Composable]]] = {
    "cluster_queue": ("ClusterQueue", sql.SQL("decision.cluster_queue_name"), PREEMPTOR_QUEUE),
    "namespace": ("Namespace", sql.SQL("decision.namespace"), sql.SQL("split_part({}, '/', 1)").format(PREEMPTOR)),
    "workload": ("Workload", sql.SQL("decision.namespace || '/' || decision.workload_name"), PREEMPTOR),
}
DEFAULT_BY: Final = ("cluster_queue",)

_VALUES: Final = (
    Column("turns", "Turns", "count"),
    Column("displaced", "Displaced the other queue", "count"),
    Column("displaced_by", "Displaced by the other queue", "count"),
    Column("lost_device_hours", "Device-hours lost", "hours"),
    Column("last_at", "Last", "time"),
)
# Of a tenant's events, both sides are in namespaces that the tenant sees.
_STATEMENT: Final = sql.SQL(
    """
    WITH events AS (
        SELECT decision.cluster_name, ARRAY[{victim}]::text[] AS victim, ARRAY[{preemptor}]::text[] AS preemptor,
            decision.decided_at, decision.id, lost.hours
        {preemptions} AND {named} <> '' AND (decision.cluster_name = ANY (%(whole_names)s)
            OR decision.cluster_name || '/' || split_part({named}, '/', 1) = ANY (%(named_namespaces)s))
    ), pairs AS (
        SELECT cluster_name, least(victim, preemptor) AS one, greatest(victim, preemptor) AS other,
            preemptor < victim AS by_one, decided_at, hours,
            lag(preemptor < victim) OVER (
                PARTITION BY cluster_name, least(victim, preemptor), greatest(victim, preemptor)
                ORDER BY decided_at, id
            ) AS before
        FROM events WHERE victim <> preemptor
    )
    SELECT cluster_name, one, other, count(*) FILTER (WHERE before <> by_one), count(*) FILTER (WHERE by_one),
        count(*) FILTER (WHERE NOT by_one), sum(hours), max(decided_at)
    FROM pairs GROUP BY 1, 2, 3 HAVING bool_or(by_one) AND NOT bool_and(by_one)
    ORDER BY 4 DESC, 7 DESC NULLS LAST, 1, 2, 3 LIMIT %(limit)s
    """
)


def loops(request: Request) -> Report:
    """Report pairs of queues that displaced each other in the period, with the number of times that the direction
    changed."""
    by = [name for name in request.by if name in BY] or DEFAULT_BY
    comma = sql.SQL(", ")
    statement = _STATEMENT.format(
        victim=comma.join(BY[name][1] for name in by),
        preemptor=comma.join(BY[name][2] for name in by),
        named=PREEMPTOR,
        preemptions=PREEMPTIONS,
    )
    several = request.is_of_several
    columns = [
        *([Column(CLUSTER, "Cluster")] if several else []),
        *(Column(name, BY[name][0]) for name in by),
        *(Column(f"other_{name}", f"Other {BY[name][0]}") for name in by),
        *_VALUES,
    ]
    found = [
        [
            *([cluster] if several else []),
            *one,
            *other,
            turns,
            count,
            back,
            None if hours is None else round(hours, 4),
            last.isoformat(),
        ]
        for cluster, one, other, turns, count, back, hours, last in fetch(statement, request.parameters())
    ]
    return Report(columns, found)
