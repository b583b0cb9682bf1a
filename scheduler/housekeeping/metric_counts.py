"""Merges the rows in which counters and histograms are counted, and deletes the counts of deleted queues."""

from __future__ import annotations

from typing import Final

from django.db import connection

from scheduler.store.counts import LABELS_OF_THERE, QUEUES_OF_COUNTS

_AT_ONCE: Final = 50_000

# A scrape is one statement, which sees the rows before or after the merge, so it never counts a row twice or misses
# it. Rows that another run merges at this moment are skipped. Sums are exact to the microsecond: a sum of floats
# depends on the order of its rows, so a counter could fall.
_JOIN: Final = """
    WITH counted AS (
        DELETE FROM scheduler_metriccount WHERE id IN (
            SELECT id FROM scheduler_metriccount ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
        )
        RETURNING cluster_id, metric, labels, bucket, count, total
    ), known AS (
        SELECT counted.cluster_id, metric, LABELS_OF_THERE AS labels, bucket, count, total
        FROM counted QUEUES_OF_COUNTS
    )
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    SELECT cluster_id, metric, labels, bucket, sum(count), sum(round(total::numeric, 6))
    FROM known WHERE labels IS NOT NULL
    GROUP BY 1, 2, 3, 4
""".replace("LABELS_OF_THERE", LABELS_OF_THERE).replace("QUEUES_OF_COUNTS", QUEUES_OF_COUNTS)


def join_counts() -> None:
    """Merge all rows with the same cluster, metric, labels and bucket into one. Rows added meanwhile are left for
    the next run."""
    with connection.cursor() as cursor:
        cursor.execute(_JOIN, [_AT_ONCE])
