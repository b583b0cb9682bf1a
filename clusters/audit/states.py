"""Rules on a workload's own row: its status and times match its conditions, and its job exists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from clusters.audit.violations import Check, Violation, namespace_of, query

_STATES: Final = """
    WITH stated AS (
        SELECT namespace || '/' || name AS key, status, quota_reserved_at, admitted_at, evicted_at, finished_at, (
            SELECT coalesce(jsonb_object_agg(condition ->> 'type', condition ->> 'lastTransitionTime'), '{}')
            FROM jsonb_array_elements(conditions) AS condition WHERE condition ->> 'status' = 'True'
        ) AS since
        FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished'
    ), times AS (
        SELECT key, column_name, kept, (since ->> condition)::timestamptz AS told
        FROM stated CROSS JOIN LATERAL (VALUES
            ('quota_reserved_at', 'QuotaReserved', quota_reserved_at), ('admitted_at', 'Admitted', admitted_at),
            ('evicted_at', 'Evicted', evicted_at)
        ) AS each_one (column_name, condition, kept)
    )
    SELECT key, 'status', 'the status is ' || status || ', and its conditions say otherwise' FROM stated
    WHERE status <> CASE
        WHEN finished_at IS NOT NULL OR since ? 'Finished' THEN 'Finished'
        WHEN since ?& ARRAY['Evicted', 'QuotaReserved'] THEN 'Evicted'
        WHEN since ? 'Admitted' THEN 'Admitted'
        WHEN since ? 'QuotaReserved' THEN 'QuotaReserved'
        ELSE 'Pending' END
    UNION ALL
    SELECT key, column_name, column_name || ' is not the time of its condition' FROM times
    WHERE coalesce(abs(extract(epoch FROM kept - told)) >= 1, (kept IS NULL) <> (told IS NULL))
    ORDER BY 1, 2
"""


def _states(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for key, column, problem in query(_STATES, [cluster.pk]):
        yield Violation(Check.STATE, f"{key} {column}", problem, namespace_of(key))


def _lost_jobs(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """Only decisions on a workload with a job are pushed."""
    for (key,) in query(
        """
        SELECT namespace || '/' || name FROM queues_workload
        WHERE cluster_id = %s AND status <> 'Finished' AND job_id IS NULL AND push_sequence > 0 ORDER BY id
        """,
        [cluster.pk],
    ):
        yield Violation(
            Check.REFERENCES,
            f"{key} job",
            "its job was pushed to the cluster, but is missing there",
            namespace_of(key),
        )


RULES: Final[Sequence[Callable[[Cluster, datetime], Iterator[Violation]]]] = (_states, _lost_jobs)
