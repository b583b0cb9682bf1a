"""Time series in PostgreSQL: samples are rolled up into coarser steps and dropped as they age."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Literal

from django.db import connection, models, transaction
from psycopg import sql

Aggregate = Literal["avg", "max", "min", "sum"]


class Resolution(models.IntegerChoices):
    """The length of a sample, in seconds."""

    RAW = 15
    MINUTES = 300
    HOUR = 3600


def start_of(at: datetime, resolution: int) -> datetime:
    """Return the start of the step of that many seconds that contains the time."""
    seconds = at.timestamp() // resolution * resolution
    return datetime.fromtimestamp(seconds, at.tzinfo)


@dataclass(frozen=True, slots=True)
class Series:
    """A table of samples: the keys of its series, and the way each column is rolled up.

    It has the columns `resolution` and `at`, a unique constraint over the keys, resolution and at, and an index over
    resolution and at.
    """

    table: str
    keys: tuple[str, ...]
    columns: Mapping[str, Aggregate] = field(hash=False)


_NEWEST: Final = sql.SQL("SELECT max(at) FROM {table} WHERE resolution = %s")
_ROLL_UP: Final = sql.SQL(
    """
    INSERT INTO {table} ({keys}, resolution, at, {columns})
    SELECT {keys}, %(coarse)s, step, {values}
    FROM (
        SELECT *, date_bin(make_interval(secs => %(coarse)s), at, 'epoch'::timestamptz) AS step
        FROM {table} WHERE resolution = %(fine)s AND at < %(until)s AND at >= %(since)s
    ) AS stepped
    GROUP BY {keys}, step
    ON CONFLICT ({keys}, resolution, at) DO UPDATE SET {updates}
    """
)
_DROP: Final = sql.SQL("DELETE FROM {table} WHERE resolution = %s AND at < %s")


def roll_up(series: Iterable[Series], retention: Mapping[Resolution, timedelta], now: datetime) -> None:
    """Roll whole steps up into the next resolution, then drop samples older than their retention.

    Each run starts from the newest rolled-up step. A second run over the same samples writes the same rows, and a run
    also catches up on missed runs.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for each in series:
            for fine, coarse in pairwise(Resolution):
                _roll_up(cursor, each, fine, coarse, start_of(now - retention[fine], coarse), now)
            for resolution, oldest in _oldest(retention, now).items():
                cursor.execute(_DROP.format(table=sql.Identifier(each.table)), [int(resolution), oldest])


def _roll_up(
    cursor: Any, series: Series, fine: Resolution, coarse: Resolution, oldest: datetime, now: datetime
) -> None:
    cursor.execute(_NEWEST.format(table=sql.Identifier(series.table)), [int(coarse)])
    [newest] = cursor.fetchone()
    times = {"until": start_of(now, coarse), "since": oldest if newest is None else max(oldest, newest)}
    cursor.execute(_statement(series), {"fine": int(fine), "coarse": int(coarse), **times})


def _oldest(retention: Mapping[Resolution, timedelta], now: datetime) -> dict[Resolution, datetime]:
    """Return the time before which samples are dropped. Only whole steps of the next resolution are, so that a step
    can be rolled up again."""
    resolutions = list(Resolution)
    following = [*resolutions[1:], resolutions[-1]]
    return {
        resolution: start_of(now - retention[resolution], coarser)
        for resolution, coarser in zip(resolutions, following, strict=True)
    }


def _statement(series: Series) -> sql.Composed:
    names = {name: sql.Identifier(name) for name in series.columns}
    comma = sql.SQL(", ")
    return _ROLL_UP.format(
        table=sql.Identifier(series.table),
        keys=comma.join(map(sql.Identifier, series.keys)),
        columns=comma.join(names.values()),
        values=comma.join(
            sql.SQL("{}({})").format(sql.SQL(aggregate), names[name]) for name, aggregate in series.columns.items()
        ),
        updates=comma.join(sql.SQL("{name} = excluded.{name}").format(name=name) for name in names.values()),
    )
