"""Workloads whose pods are not ready yet, with the cluster's reason."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction
from django.utils import timezone

from accounts.events import wake_scheduler
from accounts.models import Cluster
from scheduling.lifecycle.conditions import PODS_READY_MESSAGES
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import PodsReadyReason

_NOT_YET: Final = PODS_READY_MESSAGES[PodsReadyReason.WAIT_FOR_START]
_STATEMENT: Final = """
WITH waiting AS (
    SELECT workload.id, asked.message, before.condition
    FROM unnest(%(namespaces)s::text[], %(names)s::text[], %(messages)s::text[]) AS asked (namespace, name, message)
    JOIN queues_workload AS workload USING (namespace, name)
    LEFT JOIN LATERAL (
        SELECT condition FROM jsonb_array_elements(workload.conditions) AS listed (condition)
        WHERE condition ->> 'type' = 'PodsReady' AND condition ->> 'status' = 'False' LIMIT 1
    ) AS before ON true
    WHERE workload.cluster_id = %(cluster_id)s AND workload.status = 'Admitted' AND workload.evicted_at IS NULL
        AND workload.pods_ready_at IS NULL AND before.condition ->> 'message' IS DISTINCT FROM asked.message
    ORDER BY workload.id FOR NO KEY UPDATE OF workload
), changed AS (
    UPDATE queues_workload AS workload SET updated_at = %(now)s, conditions = coalesce((
            SELECT jsonb_agg(condition ORDER BY position)
            FROM jsonb_array_elements(workload.conditions) WITH ORDINALITY AS listed (condition, position)
            WHERE condition ->> 'type' <> 'PodsReady'
        ), '[]'::jsonb) || jsonb_build_object(
            'type', 'PodsReady', 'status', 'False',
            'reason', coalesce(waiting.condition ->> 'reason', %(reason)s::text), 'message', waiting.message,
            'lastTransitionTime', coalesce(waiting.condition ->> 'lastTransitionTime', %(since)s::text))
    FROM waiting WHERE workload.id = waiting.id
    RETURNING workload.cluster_id, workload.uid, workload.namespace, workload.name, waiting.message
), told AS (
    INSERT INTO queues_workloadevent
        (cluster_id, workload_uid, namespace, workload_name, at, type, reason, message, actor)
    SELECT cluster_id, uid, namespace, name, %(now)s, 'Warning', 'PodsNotReady', message, 'watcher' FROM changed
    WHERE message <> %(not_yet)s
)
SELECT count(*) FROM changed
"""


def record_pods_waiting(cluster: Cluster, why: Mapping[tuple[str, str], str], *, now: datetime | None = None) -> int:
    """Set PodsReady to False on admitted workloads that have never been ready; returns the number of changed rows.

    `why` is the cluster's message by workload, or empty; a message is also written as an event.
    """
    if not why:
        return 0
    now = now or timezone.now()
    parameters: dict[str, Any] = {
        "cluster_id": cluster.pk,
        "namespaces": [namespace for namespace, _ in why],
        "names": [name for _, name in why],
        "messages": [message or _NOT_YET for message in why.values()],
        "reason": PodsReadyReason.WAIT_FOR_START.value,
        "not_yet": _NOT_YET,
        "since": rfc3339(now),
        "now": now,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_STATEMENT, parameters)
        changed = int(cursor.fetchone()[0])
        if changed:
            wake_scheduler(cluster.name)
    return changed
