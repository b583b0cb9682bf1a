"""Who used how much, against quota, and what it costs."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.utils import timezone
from psycopg import sql

from accounts.roll_up import start_of
from history.models import Scope
from history.services.reading import Reader, Selection, Window
from history.services.reports.table import Cell, Column, Report, Request, fetch
from history.services.reports.uses import USES

BY: Final[Mapping[str, tuple[str, sql.Composable]]] = {
    "month": ("Month", sql.SQL("to_char(month AT TIME ZONE 'UTC', 'YYYY-MM')")),
    "namespace": ("Namespace", sql.SQL("uses.namespace")),
    "user": ("User", sql.SQL("uses.submitted_by")),
    "cluster_queue": ("ClusterQueue", sql.SQL("uses.cluster_queue")),
    "flavor": ("Flavor", sql.SQL("flavor.key")),
}
DEFAULT_BY: Final = ("month", "namespace", "flavor")

PER_UNIT: Final = sql.SQL(
    """CASE WHEN amount.key = 'cpu' THEN 1000
        WHEN amount.key IN ('memory', 'ephemeral-storage', 'storage') OR amount.key LIKE 'hugepages-%%' THEN 1073741824
        ELSE 1 END"""
)
"""Base units to one core, one GiB, one of anything else."""

PRICE: Final = sql.SQL(
    """
    LEFT JOIN LATERAL (
        SELECT per_hour::float8 AS per_hour FROM history_price AS price
        WHERE price.cluster_id = %(cluster_id)s AND price.resource = {resource} AND price.flavor IN ({flavor}, '')
        ORDER BY price.flavor = '' LIMIT 1
    ) AS price ON true
    """
)
_STATEMENT: Final = sql.SQL(
    """
    WITH {uses}
    SELECT {by}, amount.key, sum(amount.value::float8 / {per_unit} * hours.hours),
        sum(amount.value::float8 / {per_unit} * hours.hours * price.per_hour)
    FROM uses
        CROSS JOIN LATERAL generate_series(
            date_trunc('month', greatest(uses.started_at, %(since)s), 'UTC'), least(uses.ended_at, %(until)s),
            interval '1 month') AS month
        CROSS JOIN LATERAL (SELECT extract(epoch FROM
            least(uses.ended_at, %(until)s, month + interval '1 month')
            - greatest(uses.started_at, %(since)s, month))::float8 / 3600 AS hours) AS hours
        CROSS JOIN LATERAL jsonb_each(uses.held) AS flavor
        CROSS JOIN LATERAL jsonb_each_text(flavor.value) AS amount
        {price}
    WHERE hours.hours > 0
    GROUP BY {places}, amount.key
    ORDER BY {places}, amount.key LIMIT %(limit)s
    """
)
_CURRENCY: Final = "SELECT min(currency) FROM history_price WHERE cluster_id = %(cluster_id)s"
_FINEST: Final = 3600


def usage(request: Request) -> Report:
    """Hours of each resource, and their price where one is set; of ClusterQueues also their quota.

    A slice of a device is charged as so many devices as the larger of its shares of memory and of cores (`device`).
    What is stranded on the devices is nobody's, and stands in the totals.
    """
    by = request.by or DEFAULT_BY
    places = sql.SQL(", ").join(sql.Literal(number + 1) for number in range(len(by)))
    statement = _STATEMENT.format(
        uses=USES,
        by=sql.SQL(", ").join(BY[name][1] for name in by),
        per_unit=PER_UNIT,
        price=PRICE.format(resource=sql.SQL("amount.key"), flavor=sql.SQL("flavor.key")),
        places=places,
    )
    rows = fetch(statement, request.parameters())
    quota = _quota_hours(request) if set(by) == {"cluster_queue", "flavor"} else None
    columns = [
        *(Column(name, BY[name][0]) for name in by),
        Column("resource", "Resource"),
        Column("hours", "Hours of one unit", "hours"),
        *([Column("quota_hours", "Nominal quota", "hours")] if quota is not None else []),
        Column("cost", "Cost", "money"),
    ]
    found: list[list[Cell]] = []
    for *place, resource, hours, cost in rows:
        key = (place[by.index("cluster_queue")], place[by.index("flavor")], resource) if quota is not None else None
        nominal = [] if quota is None or key is None else [quota.get(key)]
        found.append([*place, resource, round(hours, 4), *nominal, None if cost is None else round(cost, 4)])
    return Report(columns, found, _totals(request, found), currency_of(request))


def currency_of(request: Request) -> str:
    """That of the prices, empty without any."""
    return str(fetch(_CURRENCY, request.parameters())[0][0] or "")


def _totals(request: Request, rows: list[list[Cell]]) -> dict[str, Cell]:
    costs = [row[-1] for row in rows if isinstance(row[-1], float)]
    stranded = device_hours(request, "devices_stranded") if request.namespaces is None else None
    return {
        "cost": round(sum(costs), 4) if costs else None,
        **({} if stranded is None else {"stranded_device_hours": round(stranded, 4)}),
    }


def device_hours(request: Request, metric: str) -> float | None:
    """What the series of the cluster's devices says, times time; None where nothing was sampled."""
    reader = Reader(request.cluster_id, _window(request))
    lines = reader.lines(Selection(Scope.CLUSTER, None, [metric]))
    values = [value for line in lines for value in line.values if value is not None]
    return sum(values) * reader.window.step / 3600 if values else None


def _quota_hours(request: Request) -> dict[tuple[Any, Any, Any], float]:
    """(queue, flavor, resource) -> nominal quota, times the time in which it was sampled."""
    reader = Reader(request.cluster_id, _window(request))
    lines = reader.lines(Selection(Scope.CLUSTER_QUEUE, None, ["nominal"]))
    return {
        (line.name, line.flavor, line.resource): round(
            sum(value for value in line.values if value is not None)
            / per_unit(line.resource) * reader.window.step / 3600, 4,
        )
        for line in lines
    }  # fmt: skip


def per_unit(resource: str) -> int:
    """Base units to one core, one GiB, one of anything else."""
    if resource == "cpu":
        return 1000
    return 2**30 if resource in {"memory", "ephemeral-storage", "storage"} or resource.startswith("hugepages-") else 1


def _window(request: Request) -> Window:
    """Hours, or days where there would be too many; the time of a report is rounded outwards to them."""
    step = _FINEST if request.until - request.since <= timedelta(days=60) else 24 * _FINEST
    until = start_of(min(request.until, timezone.now()), step) + timedelta(seconds=step)
    return Window(start_of(request.since, step), until, step)
