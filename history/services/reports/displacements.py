"""Preemptions in a period, with the device-hours that each victim loses."""

from typing import Final

from psycopg import sql

from history.services.reports.uses import DEVICES

LOST: Final = sql.SQL(
    """
    LEFT JOIN LATERAL (
        SELECT sum({devices} * extract(epoch FROM least(uses.ended_at, decision.decided_at) - uses.started_at))::float8
            / 3600 AS hours
        FROM (
            SELECT parts.*, max(reserved_at) OVER () AS newest FROM (
                SELECT started_at, ended_at, reserved_at, held FROM history_usagerecord AS record
                WHERE record.workload_uid = decision.workload_uid AND record.cluster_id = cluster.id
                    AND record.started_at < decision.decided_at
                UNION ALL
                SELECT greatest(workload.quota_reserved_at, (
                        SELECT max(ended_at) FROM history_usagerecord AS record
                        WHERE record.workload_uid = workload.uid AND record.reserved_at = workload.quota_reserved_at
                    )), 'infinity', workload.quota_reserved_at, kueueweb_held(workload.id)
                FROM queues_workload AS workload
                WHERE workload.cluster_id = cluster.id AND workload.namespace = decision.namespace
                    AND workload.name = decision.workload_name AND workload.uid = decision.workload_uid
                    AND workload.status <> 'Finished' AND workload.quota_reserved_at < decision.decided_at
            ) AS parts
        ) AS uses WHERE uses.reserved_at = uses.newest
    ) AS lost ON true
    """
).format(devices=DEVICES)
"""Joins to each `decision` the device-hours that the victim's run had held until then, also in earlier sizes of an
elastic job. Its pods may still be stopping: then its workload has no record of the run yet."""

PREEMPTOR: Final = sql.SQL("coalesce(decision.detail ->> 'preemptor', '')")
PREEMPTOR_QUEUE: Final = sql.SQL("coalesce(decision.detail ->> 'preemptor_cluster_queue', '')")
PREEMPTIONS: Final = sql.SQL(
    """
    FROM scheduler_decision AS decision LEFT JOIN accounts_cluster AS cluster ON cluster.name = decision.cluster_name
        {lost}
    WHERE decision.cluster_name = ANY (%(cluster_names)s) AND decision.action = 'Preempt'
        AND decision.decided_at >= %(since)s AND decision.decided_at < %(until)s
        AND (decision.cluster_name = ANY (%(whole_names)s)
            OR decision.cluster_name || '/' || decision.namespace = ANY (%(named_namespaces)s))
    """
).format(lost=LOST)
"""The preemptions of a period whose victims are reported."""
