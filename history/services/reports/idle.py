"""Devices that are held but not used, their holders, and the cost."""

from typing import Final

from psycopg import sql

from history.services.reports.table import Column, Report, Request, fetch
from history.services.reports.usage import PRICE, currency_of

_STATEMENT: Final = sql.SQL(
    """
    WITH rolled AS (
        SELECT %(until)s::timestamptz AS until,
            coalesce((SELECT max(at) + interval '1 hour' FROM history_devicesample WHERE resolution = 3600),
                '-infinity') AS hours,
            coalesce((SELECT max(at) + interval '5 minutes' FROM history_devicesample WHERE resolution = 300),
                '-infinity') AS minutes
    )
    SELECT split_part(subject.name, '/', 1), split_part(subject.name, '/', 2), subject.flavor,
        sum(devices_held) * 15 / 3600, sum(devices_idle) * 15 / 3600, sum(devices_unmeasured) * 15 / 3600,
        sum(memory_held_mib), sum(memory_used_mib), sum(cores_held_percent), sum(cores_used_percent),
        sum(devices_idle) * 15 / 3600 * max(price.per_hour)
    FROM history_devicesample AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
        CROSS JOIN rolled
        {price}
    WHERE subject.cluster_id = %(cluster_id)s AND subject.scope = 'user'
        AND (%(namespaces)s::text[] IS NULL OR split_part(subject.name, '/', 1) = ANY (%(namespaces)s))
        AND sample.at >= %(since)s AND sample.at < rolled.until
        AND (sample.resolution = 3600 AND sample.at < rolled.hours
            OR sample.resolution = 300 AND sample.at >= rolled.hours AND sample.at < rolled.minutes
            OR sample.resolution = 15 AND sample.at >= greatest(rolled.hours, rolled.minutes))
    GROUP BY 1, 2, 3 ORDER BY 5 DESC, 1, 2, 3 LIMIT %(limit)s
    """
)
_COLUMNS: Final = (
    Column("namespace", "Namespace"),
    Column("user", "User"),
    Column("flavor", "Flavor"),
    Column("held_device_hours", "Held device-hours", "hours"),
    Column("idle_device_hours", "Idle", "hours"),
    Column("unmeasured_device_hours", "Not measured", "hours"),
    Column("memory_used_percent", "Memory used of held", "percent"),
    Column("cores_used_percent", "Cores used of held", "percent"),
    Column("idle_cost", "Cost of idle", "money"),
)


def idle(request: Request) -> Report:
    """By namespace, user and flavor, the most idle first. Idle is what a monitor saw; what none saw stands apart."""
    statement = _STATEMENT.format(price=PRICE.format(resource=sql.SQL("'device'"), flavor=sql.SQL("subject.flavor")))
    rows = fetch(statement, request.parameters())
    found = [
        [
            namespace, user, flavor, round(held, 4), round(idle_hours, 4), round(unmeasured, 4),
            _share(memory_used, memory_held), _share(cores_used, cores_held), None if cost is None else round(cost, 4),
        ]
        for namespace, user, flavor, held, idle_hours, unmeasured, memory_held, memory_used, cores_held, cores_used,
        cost in rows
    ]  # fmt: skip
    sums = {
        column.name: round(sum(row[place] or 0 for row in found), 4)
        for place, column in enumerate(_COLUMNS)
        if column.kind in {"hours", "money"}
    }
    return Report(_COLUMNS, found, sums, currency_of(request))


def _share(used: float | None, held: float) -> float | None:
    return None if used is None or not held else round(100 * used / held, 1)
