"""Count and audit changes of workloads by one query over all rows of a statement, not by one for each row and step."""

from django.db import migrations

# The steps are those of 0017. A wait falls into the first bucket whose bound is not below it. PostgreSQL's own function counts
# the bounds that are not above, so bounds and waits are negated.
STEPS = """
CREATE OR REPLACE FUNCTION kueueweb_count_steps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bounds CONSTANT double precision[] :=
        '{-40960,-20480,-10240,-5120,-2560,-1280,-640,-320,-160,-80,-40,-20,-10,-5,-2.5,-1}';
BEGIN
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    WITH moved AS MATERIALIZED (
        SELECT now_.cluster_id, now_.status, now_.quota_reserved_at, now_.admitted_at, now_.pods_ready_at, now_.finished_at,
            now_.evicted_at, now_.updated_at, now_.conditions, now_.eviction_counts, now_.admission_check_states,
            now_.accumulated_execution_seconds, then_.status AS then_status, then_.quota_reserved_at AS then_quota_reserved_at,
            then_.admitted_at AS then_admitted_at, then_.pods_ready_at AS then_pods_ready_at,
            then_.evicted_at AS then_evicted_at, then_.eviction_counts AS then_eviction_counts,
            ARRAY[now_.cluster_queue_name, now_.namespace, now_.queue_name, now_.priority_class_name]::text[] AS labels,
            coalesce(
                (
                    SELECT (condition ->> 'lastTransitionTime')::timestamptz
                    FROM jsonb_array_elements(now_.conditions) AS condition
                    WHERE condition ->> 'type' = 'Requeued' AND condition ->> 'status' = 'True'
                ),
                now_.created_at
            ) AS since
        FROM old_rows AS then_ JOIN new_rows AS now_ ON now_.id = then_.id
        WHERE now_.quota_reserved_at IS DISTINCT FROM then_.quota_reserved_at
            OR now_.admitted_at IS DISTINCT FROM then_.admitted_at
            OR now_.pods_ready_at IS DISTINCT FROM then_.pods_ready_at
            OR now_.status <> then_.status OR now_.eviction_counts <> then_.eviction_counts
    ), evicted AS MATERIALIZED (
        SELECT moved.*, labels || counted.reason || counted.cause AS counted_labels, counted.times, counted.first
        FROM moved, kueueweb_new_evictions(then_eviction_counts, eviction_counts) AS counted
        WHERE then_eviction_counts <> eviction_counts
    ), step AS (
        SELECT cluster_id, 'quota_reserved' AS metric, labels, quota_reserved_at - since AS waited, 1 AS times FROM moved
        WHERE quota_reserved_at IS DISTINCT FROM then_quota_reserved_at AND quota_reserved_at IS NOT NULL
        UNION ALL SELECT cluster_id, 'admitted', labels, admitted_at - since, 1 FROM moved
        WHERE admitted_at IS DISTINCT FROM then_admitted_at AND admitted_at IS NOT NULL
        UNION ALL SELECT cluster_id, 'checks_passed', labels, admitted_at - quota_reserved_at, 1 FROM moved
        WHERE admitted_at IS DISTINCT FROM then_admitted_at AND admitted_at IS NOT NULL AND admission_check_states <> '[]'
        UNION ALL SELECT cluster_id, ready.metric, labels, ready.waited, 1
        FROM moved CROSS JOIN LATERAL (
            VALUES ('ready', pods_ready_at - since), ('ready_after_admission', pods_ready_at - admitted_at)
        ) AS ready (metric, waited)
        WHERE then_pods_ready_at IS NULL AND pods_ready_at IS NOT NULL
            AND (ready.metric = 'ready' OR admitted_at IS NOT NULL)
            AND NOT conditions @> '[{"type": "PodsReady", "reason": "Recovered"}]'
        UNION ALL SELECT cluster_id, 'finished', labels, interval '0', 1 FROM moved
        WHERE then_status <> 'Finished' AND status = 'Finished'
        UNION ALL SELECT cluster_id, 'executed', labels,
            finished_at - then_admitted_at + accumulated_execution_seconds * interval '1 second', 1 FROM moved
        WHERE then_status <> 'Finished' AND status = 'Finished' AND then_admitted_at IS NOT NULL
        UNION ALL SELECT cluster_id, 'slice_replaced', labels, interval '0', 1 FROM moved
        WHERE then_status <> 'Finished' AND status = 'Finished'
            AND conditions @> '[{"type": "Finished", "reason": "WorkloadSliceReplaced"}]'
        UNION ALL SELECT cluster_id, 'released', labels || newest.reason || newest.cause,
            updated_at - coalesce(evicted_at, then_evicted_at, updated_at), 1
        FROM moved, kueueweb_newest_eviction(conditions) AS newest
        WHERE then_quota_reserved_at IS NOT NULL AND quota_reserved_at IS NULL AND status <> 'Finished'
        UNION ALL SELECT cluster_id, 'evicted', counted_labels, interval '0', times FROM evicted
        UNION ALL SELECT cluster_id, 'evicted_once', counted_labels, interval '0', 1 FROM evicted WHERE first
        UNION ALL SELECT cluster_id, 'evicted_when_ready', counted_labels,
            coalesce(evicted_at, updated_at) - then_pods_ready_at, 1 FROM evicted
        WHERE then_pods_ready_at IS NOT NULL
    )
    SELECT cluster_id, metric, labels, cardinality(bounds) - width_bucket(-seconds, bounds), sum(times), sum(seconds * times)
    FROM (
        SELECT cluster_id, metric, labels, times, greatest(0, extract(epoch FROM waited))::double precision AS seconds FROM step
    ) AS taken
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;
"""

CREATIONS = """
CREATE OR REPLACE FUNCTION kueueweb_count_creations() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bounds CONSTANT double precision[] := '{-10.24,-5.12,-2.56,-1.28,-0.64,-0.32,-0.16,-0.08,-0.04,-0.02,-0.01}';
BEGIN
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    SELECT cluster_id, 'created', ARRAY[kind]::text[], cardinality(bounds) - width_bucket(-seconds, bounds), count(*), sum(seconds)
    FROM (
        SELECT workload.cluster_id, job.kind, greatest(0, extract(epoch FROM workload.created_at - job.created_at))::double precision AS seconds
        FROM new_rows AS workload JOIN queues_job AS job ON job.id = workload.job_id
    ) AS made
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;

DROP FUNCTION kueueweb_bucket;
"""

# The columns of a workload that are recorded (0006).
RECORDED = (
    "queue_name", "priority", "priority_class_name", "active", "never_preempt", "labels", "annotations", "status",
    "deletion_requested_at", "maximum_execution_seconds", "submitted_by",
)
OBJECTS = ("labels", "annotations")


def difference(this: str, that: str) -> str:
    """The recorded columns that one row says otherwise than another, as one object; objects are compared key by key."""
    parts = []
    for column in RECORDED:
        mine, others = f"{this}.{column}", f"{that}.{column}"
        value = f"kueueweb_audit_difference({mine}, {others})" if column in OBJECTS else mine
        told = f"jsonb_build_object('{column}', {value})"
        parts.append(f"CASE WHEN {mine} IS DISTINCT FROM {others} THEN {told} ELSE '{{}}' END")
    return " || ".join(parts)


def changed() -> str:
    return " OR ".join(f"then_.{column} IS DISTINCT FROM now_.{column}" for column in RECORDED)


AUDIT = f"""
CREATE FUNCTION kueueweb_audit_workload_updates() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    together_ text := coalesce(current_setting('kueueweb.audit_together', true), '');
BEGIN
    IF NOT kueueweb_somebody_acts() THEN RETURN NULL; END IF;
    WITH changed AS (
        SELECT now_.id, coalesce(cluster.name, '') AS cluster_name, now_.namespace, now_.name,
            kueueweb_audit_redacted({difference("then_", "now_")}) AS before,
            kueueweb_audit_redacted({difference("now_", "then_")}) AS after
        FROM old_rows AS then_ JOIN new_rows AS now_ ON now_.id = then_.id
            LEFT JOIN accounts_cluster AS cluster ON cluster.id = now_.cluster_id
        WHERE {changed()}
    ), parts AS (
        INSERT INTO accounts_auditpart (together, actor, verb, kind, cluster_name, namespace, name, before, after)
            SELECT together_, coalesce(current_setting('kueueweb.actor', true), ''), 'update', 'Workload',
                cluster_name, namespace, name, before, after FROM changed WHERE together_ <> '' ORDER BY id
    )
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
        SELECT 'update', 'Workload', cluster_name, namespace, name, before, after FROM changed WHERE together_ = '' ORDER BY id;
    RETURN NULL;
END $$;

DROP TRIGGER kueueweb_audit_update ON queues_workload;
CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON queues_workload
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT
    EXECUTE FUNCTION kueueweb_audit_workload_updates();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0018_counts_of_new_queues"), ("queues", "0019_priority_weights")]

    operations = [
        migrations.RunSQL(STEPS, migrations.RunSQL.noop),
        migrations.RunSQL(CREATIONS, migrations.RunSQL.noop),
        migrations.RunSQL(AUDIT, migrations.RunSQL.noop),
    ]
