"""The records of all workloads that one statement ends are made together: one by one, each cost more than its end."""

from django.db import migrations

# A function of one SELECT that returns a table becomes part of the query that asks it.
HELD = """
-- {flavor: {resource: amount}} that a workload holds. A slice of a device counts as the larger of its shares, in the flavor
-- of its pod set's devices.
CREATE FUNCTION kueueweb_amounts_held(held_by bigint) RETURNS TABLE (amounts jsonb) LANGUAGE sql STABLE AS $$
    SELECT coalesce(jsonb_object_agg(flavor, amounts), '{}') FROM (
        SELECT flavor, jsonb_object_agg(resource, amount) AS amounts FROM (
            SELECT flavor, resource, sum(amount) AS amount FROM (
                SELECT pod_set.flavors ->> usage.key AS flavor, usage.key AS resource, usage.value::numeric AS amount
                FROM queues_podset AS pod_set, jsonb_each_text(pod_set.resource_usage) AS usage
                WHERE pod_set.workload_id = held_by AND pod_set.flavors ? usage.key
                UNION ALL
                SELECT coalesce(kueueweb_device_flavor(pod_set.flavors), ''), 'device',
                    round(greatest(slice.memory_mib::numeric / greatest(device.memory_mib, 1),
                        slice.cores_percent::numeric / greatest(device.cores_percent, 1)), 6)
                FROM gpus_deviceallocation AS slice
                    JOIN gpus_device AS device ON device.id = slice.device_id
                    LEFT JOIN queues_podset AS pod_set
                        ON pod_set.workload_id = slice.workload_id AND pod_set.name = slice.pod_set
                WHERE slice.workload_id = held_by AND slice.source = 'decided'
            ) AS each_one GROUP BY flavor, resource
        ) AS each_resource GROUP BY flavor
    ) AS each_flavor
$$;

CREATE OR REPLACE FUNCTION kueueweb_held(held_by bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT amounts FROM kueueweb_amounts_held(held_by));
END $$;
"""

ENDED = """
CREATE OR REPLACE FUNCTION kueueweb_usage_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history_usagerecord (cluster_id, workload_uid, namespace, workload_name, local_queue, cluster_queue,
        submitted_by, priority, priority_class, pods, queued_at, reserved_at, started_at, ended_at, outcome, reason, held)
    WITH ended AS (
        SELECT held_by.*, CASE WHEN next_.status = 'Finished' THEN coalesce(next_.finished_at, now())
                ELSE coalesce(next_.quota_reserved_at,
                    (kueueweb_condition(next_.conditions, 'QuotaReserved') ->> 'lastTransitionTime')::timestamptz, now())
            END AS until, next_.status AS next_status, next_.conditions AS next_conditions
        FROM old_rows AS held_by JOIN new_rows AS next_ ON next_.id = held_by.id
        WHERE held_by.quota_reserved_at IS NOT NULL AND held_by.status <> 'Finished'
            AND (next_.status = 'Finished' OR next_.quota_reserved_at IS DISTINCT FROM held_by.quota_reserved_at)
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

DROP TRIGGER kueueweb_usage_ended ON queues_workload;
CREATE TRIGGER kueueweb_usage_ended AFTER UPDATE ON queues_workload
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_usage_ended();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0004_usage_functions"),
        ("queues", "0019_priority_weights"),
        ("gpus", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(HELD, migrations.RunSQL.noop),
        migrations.RunSQL(ENDED, migrations.RunSQL.noop),
    ]
