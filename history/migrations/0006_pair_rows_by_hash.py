"""Pair the rows of a statement, before and after, by hash or by merging.

PostgreSQL keeps the plan of a trigger's query from the first statement of the session. If that changed one row, it may pair all
later ones by a nested loop, each with each. A full join is never planned so. It stands in a query of its own, as PostgreSQL would
make it an inner join beside the conditions that follow; the other joins are by index for each row, and stay so.
"""

from django.db import migrations

ENDED = """
CREATE OR REPLACE FUNCTION kueueweb_usage_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history_usagerecord (cluster_id, workload_uid, namespace, workload_name, local_queue, cluster_queue,
        submitted_by, priority, priority_class, pods, queued_at, reserved_at, started_at, ended_at, outcome, reason, held)
    WITH paired AS MATERIALIZED (
        SELECT held_by.*, next_.id AS next_id, next_.quota_reserved_at AS next_reserved_at, next_.finished_at AS next_finished_at,
            next_.status AS next_status, next_.conditions AS next_conditions
        FROM (
            SELECT id, cluster_id, uid, namespace, name, queue_name, cluster_queue_name, submitted_by, priority,
                priority_class_name, quota_reserved_at, created_at
            FROM old_rows WHERE quota_reserved_at IS NOT NULL AND status <> 'Finished'
        ) AS held_by FULL JOIN new_rows AS next_ ON next_.id = held_by.id
    ), ended AS (
        SELECT paired.*, CASE WHEN next_status = 'Finished' THEN coalesce(next_finished_at, now())
                ELSE coalesce(next_reserved_at,
                    (kueueweb_condition(next_conditions, 'QuotaReserved') ->> 'lastTransitionTime')::timestamptz, now())
            END AS until
        FROM paired
        WHERE id IS NOT NULL AND next_id IS NOT NULL
            AND (next_status = 'Finished' OR next_reserved_at IS DISTINCT FROM quota_reserved_at)
    ), timed AS (
        SELECT ended.*,
            CASE WHEN before.reserved_at = ended.quota_reserved_at THEN before.ended_at ELSE ended.quota_reserved_at END AS since,
            CASE WHEN before.reserved_at = ended.quota_reserved_at THEN NULL ELSE coalesce(before.ended_at, ended.created_at) END AS queued
        FROM ended LEFT JOIN LATERAL (
            SELECT reserved_at, ended_at FROM history_usagerecord
            WHERE workload_uid = ended.uid AND ended_at <= ended.until ORDER BY ended_at DESC, id DESC LIMIT 1
        ) AS before ON true
    )
    SELECT timed.cluster_id, timed.uid, timed.namespace, timed.name, timed.queue_name, timed.cluster_queue_name,
        timed.submitted_by, timed.priority, timed.priority_class_name, pods.number,
        CASE WHEN timed.queued IS NOT NULL THEN least(timed.queued, timed.quota_reserved_at) END, timed.quota_reserved_at,
        timed.since, greatest(timed.until, timed.since),
        CASE WHEN timed.next_status = 'Finished' THEN 'Finished' WHEN evicted.reason = 'Preempted' THEN 'Preempted' ELSE 'Evicted' END,
        left(coalesce(
            CASE WHEN timed.next_status = 'Finished' THEN kueueweb_condition(timed.next_conditions, 'Finished') ->> 'reason'
                ELSE coalesce(CASE WHEN evicted.reason = 'Preempted'
                    THEN kueueweb_condition(timed.next_conditions, 'Preempted') ->> 'reason' END, evicted.reason) END,
            ''), 96),
        held.amounts
    FROM timed
        CROSS JOIN LATERAL (SELECT CASE WHEN timed.next_status <> 'Finished'
            THEN kueueweb_condition(timed.next_conditions, 'Evicted') ->> 'reason' END AS reason) AS evicted
        CROSS JOIN LATERAL (SELECT coalesce(sum(admitted_count), 0) AS number
            FROM queues_podset WHERE workload_id = timed.id) AS pods
        CROSS JOIN LATERAL kueueweb_amounts_held(timed.id) AS held
    WHERE timed.queued IS NOT NULL OR timed.until > timed.since
    ORDER BY timed.id;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("history", "0005_usage_together")]

    operations = [migrations.RunSQL(ENDED, migrations.RunSQL.noop)]
