"""Counters and histograms of Prometheus, counted where the rows change, so that no path of the product passes them by."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

# The first bound that is not below the value, from 0; the number of bounds when it is above all of them (+Inf).
BUCKET = """
CREATE FUNCTION kueueweb_bucket(value double precision, bounds double precision[]) RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT count(*)::smallint FROM unnest(bounds) AS bound WHERE bound < value
$$;
"""

# One statement over all rows that an UPDATE touched. What a row took between its two states counts once; what may happen
# more than once in between (evictions) is counted by the row itself, in eviction_counts. A wait begins when the workload
# was created, or queued again after an eviction (Kueue's QueuedWaitTime).
STEPS = """
CREATE FUNCTION kueueweb_count_steps() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    bounds CONSTANT double precision[] := '{1,2.5,5,10,20,40,80,160,320,640,1280,2560,5120,10240,20480,40960}';
BEGIN
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    SELECT cluster_id, metric, labels, kueueweb_bucket(seconds, bounds), sum(times), sum(seconds * times)
    FROM (
        SELECT now_.cluster_id, step.metric, queue.labels || step.labels AS labels, step.times,
            greatest(0, extract(epoch FROM step.waited))::double precision AS seconds
        FROM old_rows AS then_ JOIN new_rows AS now_ ON now_.id = then_.id
        CROSS JOIN LATERAL (SELECT
            ARRAY[now_.cluster_queue_name, now_.namespace, now_.queue_name, now_.priority_class_name]::text[] AS labels,
            coalesce(
                (
                    SELECT (condition ->> 'lastTransitionTime')::timestamptz
                    FROM jsonb_array_elements(now_.conditions) AS condition
                    WHERE condition ->> 'type' = 'Requeued' AND condition ->> 'status' = 'True'
                ),
                now_.created_at
            ) AS since
        ) AS queue
        CROSS JOIN LATERAL (
            SELECT 'quota_reserved' AS metric, '{}'::text[] AS labels, now_.quota_reserved_at - queue.since AS waited, 1 AS times
            WHERE now_.quota_reserved_at IS DISTINCT FROM then_.quota_reserved_at AND now_.quota_reserved_at IS NOT NULL
            UNION ALL SELECT 'admitted', '{}', now_.admitted_at - queue.since, 1
            WHERE now_.admitted_at IS DISTINCT FROM then_.admitted_at AND now_.admitted_at IS NOT NULL
            UNION ALL SELECT 'checks_passed', '{}', now_.admitted_at - now_.quota_reserved_at, 1
            WHERE now_.admitted_at IS DISTINCT FROM then_.admitted_at AND now_.admitted_at IS NOT NULL
                AND now_.admission_check_states <> '[]'
            UNION ALL SELECT 'ready', '{}', now_.pods_ready_at - queue.since, 1
            WHERE then_.pods_ready_at IS NULL AND now_.pods_ready_at IS NOT NULL
            UNION ALL SELECT 'ready_after_admission', '{}', now_.pods_ready_at - now_.admitted_at, 1
            WHERE then_.pods_ready_at IS NULL AND now_.pods_ready_at IS NOT NULL AND now_.admitted_at IS NOT NULL
            UNION ALL SELECT 'finished', '{}', interval '0', 1
            WHERE then_.status <> 'Finished' AND now_.status = 'Finished'
            UNION ALL SELECT 'executed', '{}',
                now_.finished_at - then_.admitted_at + now_.accumulated_execution_seconds * interval '1 second', 1
            WHERE then_.status <> 'Finished' AND now_.status = 'Finished' AND then_.admitted_at IS NOT NULL
            UNION ALL SELECT 'slice_replaced', '{}', interval '0', 1
            WHERE then_.status <> 'Finished' AND now_.status = 'Finished'
                AND now_.conditions @> '[{"type": "Finished", "reason": "WorkloadSliceReplaced"}]'
            UNION ALL SELECT 'released', ARRAY[evicted.reason, evicted.cause],
                now_.updated_at - coalesce(now_.evicted_at, then_.evicted_at, now_.updated_at), 1
            FROM kueueweb_newest_eviction(now_.conditions) AS evicted
            WHERE then_.quota_reserved_at IS NOT NULL AND now_.quota_reserved_at IS NULL AND now_.status <> 'Finished'
            UNION ALL SELECT 'evicted', ARRAY[counted.reason, counted.cause], interval '0', counted.times
            FROM kueueweb_new_evictions(then_.eviction_counts, now_.eviction_counts) AS counted
            UNION ALL SELECT 'evicted_once', ARRAY[counted.reason, counted.cause], interval '0', 1
            FROM kueueweb_new_evictions(then_.eviction_counts, now_.eviction_counts) AS counted WHERE counted.first
            UNION ALL SELECT 'evicted_when_ready', ARRAY[counted.reason, counted.cause],
                coalesce(now_.evicted_at, now_.updated_at) - then_.pods_ready_at, 1
            FROM kueueweb_new_evictions(then_.eviction_counts, now_.eviction_counts) AS counted
            WHERE then_.pods_ready_at IS NOT NULL
        ) AS step
    ) AS taken
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;

CREATE FUNCTION kueueweb_new_evictions(then_ jsonb, now_ jsonb)
RETURNS TABLE (reason text, cause text, times bigint, first boolean) LANGUAGE sql IMMUTABLE AS $$
    SELECT newer.reason, coalesce(newer."underlyingCause", ''), newer.count - coalesce(older.count, 0), older.count IS NULL
    FROM jsonb_to_recordset(now_) AS newer (reason text, "underlyingCause" text, count bigint)
        LEFT JOIN jsonb_to_recordset(then_) AS older (reason text, "underlyingCause" text, count bigint)
        ON older.reason = newer.reason AND older."underlyingCause" IS NOT DISTINCT FROM newer."underlyingCause"
    WHERE then_ IS DISTINCT FROM now_ AND newer.count > coalesce(older.count, 0)
$$;

-- The reason of the Evicted condition, parted as Kueue's metrics have it: DeactivatedDueTo<Cause> is Deactivated and <Cause>.
CREATE FUNCTION kueueweb_newest_eviction(conditions jsonb)
RETURNS TABLE (reason text, cause text) LANGUAGE sql IMMUTABLE AS $$
    SELECT split_part(condition ->> 'reason', 'DueTo', 1), split_part(condition ->> 'reason', 'DueTo', 2)
    FROM jsonb_array_elements(conditions) AS condition WHERE condition ->> 'type' = 'Evicted'
$$;

CREATE TRIGGER kueueweb_count_steps AFTER UPDATE ON queues_workload
    REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_count_steps();
"""

# How long a job waited for its workload: from the time that its manifest names (one that was found in the cluster), else
# from its row's.
CREATIONS = """
CREATE FUNCTION kueueweb_count_creations() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO scheduler_metriccount (cluster_id, metric, labels, bucket, count, total)
    SELECT cluster_id, 'created', ARRAY[kind]::text[],
        kueueweb_bucket(seconds, '{0.01,0.02,0.04,0.08,0.16,0.32,0.64,1.28,2.56,5.12,10.24}'), count(*), sum(seconds)
    FROM (
        SELECT workload.cluster_id, job.kind, greatest(0, extract(epoch FROM workload.created_at - job.created_at))::double precision AS seconds
        FROM new_rows AS workload JOIN queues_job AS job ON job.id = workload.job_id
    ) AS made
    GROUP BY 1, 2, 3, 4;
    RETURN NULL;
END $$;

CREATE TRIGGER kueueweb_count_creations AFTER INSERT ON queues_workload
    REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_count_creations();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0006_audit_triggers"), ("queues", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="MetricCount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("cluster_id", models.BigIntegerField()),
                ("metric", models.CharField(max_length=64)),
                ("labels", ArrayField(models.TextField(), default=list)),
                ("bucket", models.SmallIntegerField(default=0)),
                ("count", models.BigIntegerField()),
                ("total", models.FloatField(default=0.0)),
            ],
        ),
        migrations.RunSQL(BUCKET, migrations.RunSQL.noop),
        migrations.RunSQL(STEPS, migrations.RunSQL.noop),
        migrations.RunSQL(CREATIONS, migrations.RunSQL.noop),
    ]
