"""Pods that recover do not count as ready again: only the first start tells how long a workload waited (as in Kueue)."""

from django.db import migrations

STEPS = """
CREATE OR REPLACE FUNCTION kueueweb_count_steps() RETURNS trigger LANGUAGE plpgsql AS $$
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
            ) AS since,
            NOT now_.conditions @> '[{"type": "PodsReady", "reason": "Recovered"}]' AS is_first_start
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
            WHERE then_.pods_ready_at IS NULL AND now_.pods_ready_at IS NOT NULL AND queue.is_first_start
            UNION ALL SELECT 'ready_after_admission', '{}', now_.pods_ready_at - now_.admitted_at, 1
            WHERE then_.pods_ready_at IS NULL AND now_.pods_ready_at IS NOT NULL AND now_.admitted_at IS NOT NULL
                AND queue.is_first_start
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
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0016_bulk_changes")]

    operations = [migrations.RunSQL(STEPS, migrations.RunSQL.noop)]
