"""Uses: what was held from when to when. Those that ended are records; those that last are read from the workloads."""

from typing import Final

from psycopg import sql

USES: Final = sql.SQL(
    """
    uses AS (
        SELECT namespace, workload_uid, local_queue, cluster_queue, submitted_by, priority, priority_class, queued_at,
            reserved_at, started_at, ended_at, outcome, reason, held
        FROM history_usagerecord
        WHERE cluster_id = %(cluster_id)s AND ended_at > %(since)s AND started_at < %(until)s
            AND (%(namespaces)s::text[] IS NULL OR namespace = ANY (%(namespaces)s))
        UNION ALL
        SELECT workload.namespace, workload.uid, workload.queue_name, workload.cluster_queue_name,
            workload.submitted_by, workload.priority, workload.priority_class_name,
            CASE WHEN resized.ended_at IS NULL THEN coalesce(earlier.ended_at, workload.created_at) END,
            workload.quota_reserved_at, coalesce(resized.ended_at, workload.quota_reserved_at), %(until)s::timestamptz,
            'Running', '', kueueweb_held(workload.id)
        FROM queues_workload AS workload
            LEFT JOIN LATERAL (
                SELECT max(ended_at) AS ended_at FROM history_usagerecord AS record
                WHERE record.workload_uid = workload.uid AND record.reserved_at = workload.quota_reserved_at
            ) AS resized ON true
            LEFT JOIN LATERAL (
                SELECT max(ended_at) AS ended_at FROM history_usagerecord AS record
                WHERE record.workload_uid = workload.uid AND record.reserved_at < workload.quota_reserved_at
            ) AS earlier ON true
        WHERE workload.cluster_id = %(cluster_id)s AND workload.status <> 'Finished'
            AND workload.quota_reserved_at IS NOT NULL AND workload.quota_reserved_at < %(until)s
            AND (%(namespaces)s::text[] IS NULL OR workload.namespace = ANY (%(namespaces)s))
    )
    """
)

DEVICES: Final = sql.SQL(
    "(SELECT coalesce(sum((amounts.value ->> 'device')::float8), 0) FROM jsonb_each(uses.held) AS amounts)"
)
"""How many devices a use holds, of each slice the larger of its shares."""

SIZE: Final = sql.SQL(
    """CASE WHEN {devices} = 0 THEN 'no device' WHEN {devices} < 1 THEN 'part of a device'
        WHEN {devices} < 2 THEN '1 device' WHEN {devices} < 8 THEN '2 to 7 devices' ELSE '8 devices and more' END"""
).format(devices=DEVICES)
