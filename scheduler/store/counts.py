"""Adds a batch's counts to Prometheus counters and histograms, in the batch's own transaction.

So a counter reflects committed decisions, whichever process led, and a refused batch counts nothing. Steps in a
workload's life are counted by triggers on its row (migration `metric_counts`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from typing import Final

import orjson

from foundation.postgresql.joined_statements import JoinedStatements
from scheduler.store.batch import Batch
from scheduling.model.vocabulary import DecisionKind

ATTEMPT_BOUNDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets of a cycle's duration in seconds (Kueue uses Prometheus' defaults)."""

QUEUES_OF_COUNTS: Final = """
    LEFT JOIN queues_clusterqueue AS cluster_queue
        ON cluster_queue.cluster_id = counted.cluster_id AND cluster_queue.name = counted.labels[1]
    LEFT JOIN queues_localqueue AS local_queue
        ON local_queue.cluster_id = counted.cluster_id
        AND local_queue.namespace = counted.labels[2] AND local_queue.name = counted.labels[3]
"""
"""The queues that the labels of a row of `counted` name."""
LABELS_OF_THERE: Final = """
    CASE
        WHEN counted.metric IN ('attempt', 'created', 'batch_refused') THEN counted.labels
        WHEN cluster_queue.id IS NOT NULL OR local_queue.id IS NOT NULL THEN
            CASE WHEN cluster_queue.id IS NULL THEN ARRAY[''] ELSE counted.labels[1:1] END
            || CASE
                WHEN local_queue.id IS NULL AND cardinality(counted.labels) > 3 THEN ARRAY['', '']
                ELSE counted.labels[2:3]
            END
            || counted.labels[4:]
    END
"""
"""The labels of a row with empty names for deleted queues; null if none is left. Kueue clears the series of a queue
when the queue is deleted.
"""

_Key = tuple[str, tuple[str, ...], int]

_INSERT: Final = """
INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
SELECT %s, v.metric, ARRAY(SELECT jsonb_array_elements_text(v.labels::jsonb)), v.bucket, v.count, v.total
FROM unnest(%s::text[], %s::text[], %s::int[], %s::bigint[], %s::float8[]) AS v(metric, labels, bucket, count, total)
"""


def write_counts(statements: JoinedStatements, batch: Batch) -> None:
    """Count the cycles of a batch and their preemptions."""
    counts: dict[_Key, list[float]] = defaultdict(lambda: [0, 0.0])
    for attempt in batch.attempts:
        bucket = bisect_left(ATTEMPT_BOUNDS, attempt.seconds)
        _add(counts, ("attempt", (attempt.result,), bucket), attempt.seconds)
    for decision in batch.decisions:
        if decision.action == DecisionKind.PREEMPT:
            by = decision.detail["preemptor_cluster_queue"]
            _add(counts, ("preempted", (by, decision.reason), 0))
    if batch.refusals:
        _add(counts, ("batch_refused", (), 0), times=batch.refusals)
    if counts:
        rows = [(metric, _json(labels), bucket, *value) for (metric, labels, bucket), value in counts.items()]
        statements.execute(_INSERT, [batch.cluster_id, *(list(column) for column in zip(*rows, strict=True))])


def _add(counts: dict[_Key, list[float]], key: _Key, seconds: float = 0.0, times: int = 1) -> None:
    counts[key][0] += times
    counts[key][1] += seconds


def _json(labels: tuple[str, ...]) -> str:
    return orjson.dumps(labels).decode()
