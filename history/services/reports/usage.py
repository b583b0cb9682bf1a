"""The use of resources against quota, and its cost."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from psycopg import sql

from history.models import Scope
from history.services.reports.samples import HOURS, ONCE, ROLLED
from history.services.reports.table import CLUSTER, Cell, Column, Part, Report, Request, fetch
from history.services.reports.uses import USES

BY: Final[Mapping[str, tuple[str, sql.Composable]]] = {
    CLUSTER: ("Cluster", sql.SQL("uses.cluster")),
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
        SELECT per_hour::float8 AS per_hour, currency FROM history_price AS price
        WHERE price.cluster_id = {cluster} AND price.resource = {resource} AND price.flavor IN ({flavor}, '')
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
_CURRENCIES: Final = "SELECT DISTINCT currency FROM history_price WHERE cluster_id = ANY (%(clusters)s) ORDER BY 1"
CURRENCY: Final = Column("currency", "Currency")
"""The currency of a row's cost, if the clusters have several: amounts in different currencies are not added up."""

_SAMPLED: Final = sql.SQL(
    """
    WITH {rolled}
    SELECT cluster.name, subject.name, subject.flavor, subject.resource, {hours}
    FROM {table} AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
        JOIN accounts_cluster AS cluster ON cluster.id = subject.cluster_id
        CROSS JOIN rolled
    WHERE subject.cluster_id = ANY (%(sampled)s) AND subject.scope = %(scope)s AND {once}
    GROUP BY 1, 2, 3, 4
    """
)


def usage(request: Request) -> Report:
    """Report the hours of each resource, with their price if one is set; for ClusterQueues also their quota.

    A slice of a device is charged as the larger of its shares of memory and of cores (`device`). The stranded rest of a
    device is charged to no user; it is in the totals.
    """
    by = request.grouping(DEFAULT_BY)
    currencies = currencies_of(request)
    groups = [*by, *([CURRENCY.name] if len(currencies) > 1 else [])]
    places = sql.SQL(", ").join(sql.Literal(number + 1) for number in range(len(groups)))
    statement = _STATEMENT.format(
        uses=USES,
        by=sql.SQL(", ").join(_GROUPS[name][1] for name in groups),
        per_unit=PER_UNIT,
        price=PRICE.format(
            cluster=sql.SQL("uses.cluster_id"), resource=sql.SQL("amount.key"), flavor=sql.SQL("flavor.key")
        ),
        places=places,
    )
    # A quota has no currency: rows that are separated by currency would each contain all of it.
    has_quota = {*by} - {CLUSTER} == {"cluster_queue", "flavor"} and (CLUSTER in by or len(currencies) < 2)
    quota = _quota_hours(request, by) if has_quota else None
    found: list[list[Cell]] = []
    for *place, resource, hours, cost in fetch(statement, request.parameters()):
        group = dict(zip(groups, place, strict=True))
        nominal = [] if quota is None else [quota.get((*(group[name] for name in by), resource))]
        found.append([*place, resource, round(hours, 4), *nominal, None if cost is None else round(cost, 4)])
    columns = [
        *(Column(name, _GROUPS[name][0]) for name in groups),
        Column("resource", "Resource"),
        Column("hours", "Hours of one unit", "hours"),
        *([Column("quota_hours", "Nominal quota", "hours")] if quota is not None else []),
        Column("cost", "Cost", "money"),
    ]
    totals = _totals(request, found, adds_up=len(currencies) < 2)
    return Report(columns, found, totals, currencies[0] if len(currencies) == 1 else "")


_GROUPS: Final = {**BY, CURRENCY.name: (CURRENCY.label, sql.SQL("coalesce(price.currency, '')"))}


def currencies_of(request: Request) -> list[str]:
    """Return the currencies of the clusters' prices."""
    return [currency for (currency,) in fetch(_CURRENCIES, request.parameters())]


def added(cells: Iterable[Cell]) -> float:
    """Return the sum of the known values."""
    return round(sum(cell for cell in cells if isinstance(cell, int | float)), 4)


def _totals(request: Request, rows: list[list[Cell]], *, adds_up: bool) -> dict[str, Cell]:
    costs = [row[-1] for row in rows if isinstance(row[-1], float)]
    stranded = _stranded_hours(request) if request.whole else None
    return {
        "cost": added(costs) if costs and adds_up else None,
        **({} if stranded is None else {"stranded_device_hours": stranded}),
    }


def _stranded_hours(request: Request) -> float | None:
    """Return the stranded device hours of the clusters that are reported whole; None without samples."""
    rows = _sampled(request, request.whole, Scope.CLUSTER, "history_devicesample", "devices_stranded")
    hours = [row[-1] for row in rows]
    return None if all(value is None for value in hours) else added(hours)


def _quota_hours(request: Request, by: Sequence[str]) -> dict[tuple[Cell, ...], float]:
    """Return the groups of a row and its resource -> nominal quota, times the time in which it was sampled."""
    found: dict[tuple[Cell, ...], float] = defaultdict(float)
    rows = _sampled(request, request.parts, Scope.CLUSTER_QUEUE, "history_quotasample", "nominal")
    for cluster, queue, flavor, resource, amount_hours in rows:
        group = {CLUSTER: cluster, "cluster_queue": queue, "flavor": flavor}
        found[*(group[name] for name in by), resource] += (amount_hours or 0) / per_unit(resource)
    return {key: round(hours, 4) for key, hours in found.items()}


def _sampled(request: Request, parts: Sequence[Part], scope: Scope, table: str, column: str) -> list[tuple[Any, ...]]:
    """(cluster, name, flavor, resource, sum of the column times hours); the time is rounded outwards to whole hours."""
    statement = _SAMPLED.format(
        rolled=ROLLED.format(table=sql.Identifier(table)),
        hours=HOURS.format(sql.Identifier(column)),
        table=sql.Identifier(table),
        once=ONCE.format(since=sql.SQL("date_trunc('hour', %(since)s::timestamptz, 'UTC')")),
    )
    sampled = [part.cluster_id for part in parts]
    return fetch(statement, {**request.parameters(), "sampled": sampled, "scope": scope.value})


def per_unit(resource: str) -> int:
    """Base units to one core, one GiB, one of anything else."""
    if resource == "cpu":
        return 1000
    return 2**30 if resource in {"memory", "ephemeral-storage", "storage"} or resource.startswith("hugepages-") else 1
