"""Devices that are held but not used, their holders, and the cost."""

from typing import Final

from psycopg import sql

from history.services.reports.samples import HOURS, ONCE, ROLLED
from history.services.reports.table import CLUSTER, REPORTED, Cell, Column, Report, Request, fetch
from history.services.reports.usage import CURRENCY, PRICE, added, currencies_of

_STATEMENT: Final = sql.SQL(
    """
    WITH {rolled}
    SELECT cluster.name, max(price.currency), split_part(subject.name, '/', 1), split_part(subject.name, '/', 2),
        subject.flavor, {held}, {idle}, {unmeasured},
        sum(memory_held_mib), sum(memory_used_mib), sum(cores_held_percent), sum(cores_used_percent),
        {idle} * max(price.per_hour)
    FROM history_devicesample AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
        JOIN accounts_cluster AS cluster ON cluster.id = subject.cluster_id
        CROSS JOIN rolled
        {price}
    WHERE {reported} AND subject.scope = 'user' AND {once}
    GROUP BY 1, 3, 4, 5 ORDER BY 7 DESC, 1, 3, 4, 5 LIMIT %(limit)s
    """
).format(
    rolled=ROLLED.format(table=sql.SQL("history_devicesample")),
    held=HOURS.format(sql.SQL("devices_held")),
    idle=HOURS.format(sql.SQL("devices_idle")),
    unmeasured=HOURS.format(sql.SQL("devices_unmeasured")),
    price=PRICE.format(
        cluster=sql.SQL("subject.cluster_id"), resource=sql.SQL("'device'"), flavor=sql.SQL("subject.flavor")
    ),
    reported=REPORTED.format(
        cluster=sql.SQL("subject.cluster_id"), namespace=sql.SQL("split_part(subject.name, '/', 1)")
    ),
    once=ONCE.format(since=sql.SQL("%(since)s")),
)
_CLUSTER: Final = Column(CLUSTER, "Cluster")
_COLUMNS: Final = (
    Column("namespace", "Namespace"),
    Column("user", "User"),
    Column("flavor", "Flavor"),
    Column("held_device_hours", "Held device-hours", "hours"),
    Column("idle_device_hours", "Idle", "hours"),
    Column("unmeasured_device_hours", "Not measured", "hours"),
    Column("memory_used_percent", "Held memory used", "percent"),
    Column("cores_used_percent", "Held cores used", "percent"),
    Column("idle_cost", "Cost of idle time", "money"),
)
_TEXTS: Final = 3


def idle(request: Request) -> Report:
    """Report idle time by namespace, user and flavor, the most idle first, separately for each cluster. Only measured
    devices count as idle; unmeasured ones are listed separately."""
    currencies = currencies_of(request)
    found: list[list[Cell]] = []
    for (
        cluster, currency, namespace, user, flavor, held, idle_hours, unmeasured, memory_held, memory_used, cores_held,
        cores_used, cost,
    ) in fetch(_STATEMENT, request.parameters()):  # fmt: skip
        found.append(
            [
                *([cluster] if request.is_of_several else []), namespace, user, flavor,
                *([currency or ""] if len(currencies) > 1 else []),
                round(held, 4), round(idle_hours, 4), round(unmeasured, 4), _share(memory_used, memory_held),
                _share(cores_used, cores_held), None if cost is None else round(cost, 4),
            ]
        )  # fmt: skip
    texts, amounts = _COLUMNS[:_TEXTS], _COLUMNS[_TEXTS:]
    columns = [
        *([_CLUSTER] if request.is_of_several else []), *texts, *([CURRENCY] if len(currencies) > 1 else []), *amounts,
    ]  # fmt: skip
    sums: dict[str, Cell] = {
        column.name: added(row[place] for row in found)
        for place, column in enumerate(columns)
        if column.kind == "hours" or (column.kind == "money" and len(currencies) < 2)
    }
    return Report(columns, found, sums, currencies[0] if len(currencies) == 1 else "")


def _share(used: float | None, held: float) -> float | None:
    return None if used is None or not held else round(100 * used / held, 1)
