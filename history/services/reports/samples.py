"""Samples added up over the time of a report: of each moment the coarsest that there is, so that it counts once."""

from typing import Final

from psycopg import sql

ROLLED: Final = sql.SQL(
    """
    rolled AS (
        SELECT %(until)s::timestamptz AS until,
            coalesce((SELECT max(at) + interval '1 hour' FROM {table} WHERE resolution = 3600), '-infinity') AS hours,
            coalesce((SELECT max(at) + interval '5 minutes' FROM {table} WHERE resolution = 300), '-infinity')
                AS minutes
    )
    """
)
"""The time until which the samples of a table are rolled up, at once for all clusters."""

ONCE: Final = sql.SQL(
    """sample.at >= {since} AND sample.at < rolled.until
        AND (sample.resolution = 3600 AND sample.at < rolled.hours
            OR sample.resolution = 300 AND sample.at >= rolled.hours AND sample.at < rolled.minutes
            OR sample.resolution = 15 AND sample.at >= greatest(rolled.hours, rolled.minutes))"""
)
"""The existing samples, with each unit of time once."""

FINELY_ONCE: Final = sql.SQL(
    """sample.at >= {since} AND sample.at < rolled.until
        AND (sample.resolution = 300 AND sample.at < rolled.minutes
            OR sample.resolution = 15 AND sample.at >= rolled.minutes)"""
)
"""The same without the coarsest: for times of which samples of five minutes are kept."""

HOURS: Final = sql.SQL("sum(sample.{})::float8 * 15 / 3600")
"""Sums over samples of 15 seconds, as hours."""
