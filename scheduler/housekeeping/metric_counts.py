"""Joins the rows in which counters and histograms were counted."""

from __future__ import annotations

from typing import Final

from django.db import connection

_AT_ONCE: Final = 50_000

# A statement sees the rows before or after it, so a scrape never counts one twice or not at all. Rows that another run
# joins at this moment are passed over.
_JOIN: Final = """
    WITH joined AS (
        DELETE FROM scheduler_metriccount WHERE id IN (
            SELECT id FROM scheduler_metriccount ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
        )
        RETURNING cluster_id, metric, labels, bucket, count, total
    )
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    SELECT cluster_id, metric, labels, bucket, sum(count), sum(total) FROM joined GROUP BY 1, 2, 3, 4
"""


def join_counts() -> None:
    """Make one row of all rows with the same cluster, metric, labels and bucket. What is counted meanwhile waits."""
    with connection.cursor() as cursor:
        cursor.execute(_JOIN, [_AT_ONCE])
