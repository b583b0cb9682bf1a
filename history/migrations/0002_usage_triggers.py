"""Whatever ends or changes what a workload holds leaves a record of it, in the same transaction, whoever does it."""

from django.db import migrations

FUNCTIONS = """
-- The flavor of a pod set's devices: that of the first resource which every node has not.
CREATE FUNCTION kueueweb_device_flavor(flavors jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT value FROM jsonb_each_text(flavors)
    ORDER BY key IN ('cpu', 'memory', 'ephemeral-storage', 'pods'), key LIMIT 1
$$;

-- {flavor: {resource: amount}} that a workload holds. A slice of a device counts as the larger of its shares, in the flavor
-- of its pod set's devices.
CREATE FUNCTION kueueweb_held(held_by bigint) RETURNS jsonb LANGUAGE sql STABLE AS $$
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

CREATE FUNCTION kueueweb_condition(conditions jsonb, wanted text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT condition FROM jsonb_array_elements(conditions) AS condition WHERE condition ->> 'type' = wanted LIMIT 1
$$;

CREATE FUNCTION kueueweb_record_usage(held_by queues_workload, until timestamptz, outcome text, reason text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    before history_usagerecord;
    since timestamptz := held_by.quota_reserved_at;
    queued timestamptz := held_by.created_at;
BEGIN
    SELECT * INTO before FROM history_usagerecord
        WHERE workload_uid = held_by.uid AND ended_at <= until ORDER BY ended_at DESC, id DESC LIMIT 1;
    IF before.reserved_at = held_by.quota_reserved_at THEN
        since := before.ended_at;
        queued := NULL;
    ELSIF FOUND THEN
        queued := before.ended_at;
    END IF;
    IF queued IS NULL AND until <= since THEN RETURN; END IF;
    INSERT INTO history_usagerecord (cluster_id, workload_uid, namespace, workload_name, local_queue, cluster_queue,
        submitted_by, priority, priority_class, pods, queued_at, reserved_at, started_at, ended_at, outcome, reason, held)
    VALUES (held_by.cluster_id, held_by.uid, held_by.namespace, held_by.name, held_by.queue_name,
        held_by.cluster_queue_name, held_by.submitted_by, held_by.priority, held_by.priority_class_name,
        coalesce((SELECT sum(admitted_count) FROM queues_podset WHERE workload_id = held_by.id), 0),
        CASE WHEN queued IS NOT NULL THEN least(queued, held_by.quota_reserved_at) END, held_by.quota_reserved_at, since, greatest(until, since), outcome,
        left(reason, 96), kueueweb_held(held_by.id));
END $$;

-- Its quota is given back, or it is finished. Pod sets and slices still say what it held: they are written afterwards.
CREATE FUNCTION kueueweb_usage_ended() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    evicted jsonb := kueueweb_condition(NEW.conditions, 'Evicted');
BEGIN
    IF NEW.status = 'Finished' THEN
        PERFORM kueueweb_record_usage(OLD, coalesce(NEW.finished_at, now()), 'Finished',
            coalesce(kueueweb_condition(NEW.conditions, 'Finished') ->> 'reason', ''));
    ELSE
        PERFORM kueueweb_record_usage(OLD,
            coalesce(NEW.quota_reserved_at,
                (kueueweb_condition(NEW.conditions, 'QuotaReserved') ->> 'lastTransitionTime')::timestamptz, now()),
            CASE WHEN evicted ->> 'reason' = 'Preempted' THEN 'Preempted' ELSE 'Evicted' END,
            coalesce(CASE WHEN evicted ->> 'reason' = 'Preempted'
                THEN kueueweb_condition(NEW.conditions, 'Preempted') ->> 'reason' END, evicted ->> 'reason', ''));
    END IF;
    RETURN NULL;
END $$;

-- Before the row changes: what it holds until now is what the pod sets say. A second pod set of the same statement finds
-- that a record ends now, and adds none.
CREATE FUNCTION kueueweb_usage_changed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    held_by queues_workload;
BEGIN
    SELECT * INTO held_by FROM queues_workload
        WHERE id = OLD.workload_id AND quota_reserved_at IS NOT NULL AND status <> 'Finished';
    -- What changes within a second of the reservation belongs to the decision itself: it was moved before it began.
    IF FOUND AND now() - held_by.quota_reserved_at > interval '1 second' THEN
        PERFORM kueueweb_record_usage(held_by, now(), CASE TG_OP WHEN 'DELETE' THEN 'Deleted' ELSE 'Resized' END, '');
    END IF;
    RETURN CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END;
END $$;
"""

TRIGGERS = """
CREATE TRIGGER kueueweb_usage_ended AFTER UPDATE ON queues_workload FOR EACH ROW
    WHEN (OLD.quota_reserved_at IS NOT NULL AND OLD.status <> 'Finished'
        AND (NEW.status = 'Finished' OR NEW.quota_reserved_at IS DISTINCT FROM OLD.quota_reserved_at))
    EXECUTE FUNCTION kueueweb_usage_ended();
CREATE TRIGGER kueueweb_usage_changed BEFORE UPDATE ON queues_podset FOR EACH ROW
    WHEN (OLD.admitted_count IS NOT NULL AND NEW.admitted_count IS NOT NULL AND OLD.resource_usage <> NEW.resource_usage)
    EXECUTE FUNCTION kueueweb_usage_changed();
CREATE TRIGGER kueueweb_usage_deleted BEFORE DELETE ON queues_podset FOR EACH ROW
    WHEN (OLD.admitted_count IS NOT NULL) EXECUTE FUNCTION kueueweb_usage_changed();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("history", "0001_initial"),
        ("scheduler", "0002_database_rules"),
        ("queues", "0002_workload_ending"),
        ("gpus", "0001_initial"),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop),
        migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop),
    ]
