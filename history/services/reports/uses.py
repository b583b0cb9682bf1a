"""Uses: the quota and devices that a workload held, with begin and end. Ended uses are records; present ones are read
from the workloads."""

from typing import Final

from psycopg import sql

from history.services.reports.table import REPORTED

USES: Final = sql.SQL(
    """
    uses AS (
        SELECT cluster.id AS cluster_id, cluster.name AS cluster, namespace, workload_uid, local_queue, cluster_queue,
            submitted_by, priority, priority_class, queued_at, reserved_at, started_at, ended_at, outcome, reason, held
        FROM history_usagerecord AS ended JOIN accounts_cluster AS cluster ON cluster.id = ended.cluster_id
        WHERE {of_ended} AND ended_at > %(since)s AND started_at < %(until)s
        UNION ALL
        SELECT cluster.id, cluster.name, workload.namespace, workload.uid, workload.queue_name,
            workload.cluster_queue_name, workload.submitted_by, workload.priority, workload.priority_class_name,
            CASE WHEN resized.ended_at IS NULL THEN coalesce(earlier.ended_at, workload.created_at) END,
            workload.quota_reserved_at, coalesce(resized.ended_at, workload.quota_reserved_at), %(until)s::timestamptz,
            'Running', '', kueueweb_held(workload.id)
        FROM queues_workload AS workload JOIN accounts_cluster AS cluster ON cluster.id = workload.cluster_id
            LEFT JOIN LATERAL (
                SELECT max(ended_at) AS ended_at FROM history_usagerecord AS record
                WHERE record.workload_uid = workload.uid AND record.reserved_at = workload.quota_reserved_at
            ) AS resized ON true
            LEFT JOIN LATERAL (
                SELECT max(ended_at) AS ended_at FROM history_usagerecord AS record
                WHERE record.workload_uid = workload.uid AND record.reserved_at < workload.quota_reserved_at
            ) AS earlier ON true
        WHERE {of_running} AND workload.status <> 'Finished' AND NOT workload.has_variants
            AND workload.quota_reserved_at IS NOT NULL AND workload.quota_reserved_at < %(until)s
    )
    """
).format(
    of_ended=REPORTED.format(cluster=sql.SQL("ended.cluster_id"), namespace=sql.SQL("ended.namespace")),
    of_running=REPORTED.format(cluster=sql.SQL("workload.cluster_id"), namespace=sql.SQL("workload.namespace")),
)

DEVICES: Final = sql.SQL(
    "(SELECT coalesce(sum((amounts.value ->> 'device')::float8), 0) FROM jsonb_each(uses.held) AS amounts)"
)
"""The number of devices that a use holds; each slice counts as the larger of its memory and core shares."""

SIZE: Final = sql.SQL(
    """CASE WHEN {devices} = 0 THEN 'no device' WHEN {devices} < 1 THEN 'part of a device'
        WHEN {devices} < 2 THEN '1 device' WHEN {devices} < 8 THEN '2 to 7 devices' ELSE '8 devices and more' END"""
).format(devices=DEVICES)
