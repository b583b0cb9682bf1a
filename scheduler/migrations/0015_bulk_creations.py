"""The audit has one line for all workloads or jobs of a namespace that one statement creates, with their names.

A line for each costs a submission of a thousand more than storing them does, and hides everything else of that minute.
"""

from django.db import migrations

# Columns are named, not read from to_jsonb(row): that, and the lines themselves, is what a thousand rows paid for.
FUNCTIONS = """
CREATE FUNCTION kueueweb_audit_together(names jsonb, shared jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT kueueweb_audit_redacted(jsonb_build_object('count', jsonb_array_length(names), 'names', names) || jsonb_strip_nulls(shared))
$$;

CREATE OR REPLACE FUNCTION kueueweb_audit_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    kept text[] := CASE WHEN TG_ARGV[1] <> '' THEN string_to_array(TG_ARGV[1], ',') END;
    alone bigint[];
BEGIN
    IF kept IS NOT NULL AND NOT kueueweb_somebody_acts() THEN RETURN NULL; END IF;
    IF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'queues_workload' THEN
        -- The job's own line stands for the workload that it brings.
        WITH made AS (
            SELECT cluster_id, namespace, count(*) AS many, min(id) AS first,
                jsonb_agg(name ORDER BY id) AS names,
                jsonb_build_object(
                    'queue_name', CASE WHEN min(queue_name) = max(queue_name) THEN min(queue_name) END,
                    'priority', CASE WHEN min(priority) = max(priority) THEN min(priority) END,
                    'priority_class_name', CASE WHEN min(priority_class_name) = max(priority_class_name) THEN min(priority_class_name) END,
                    'labels', CASE WHEN min(labels::text) = max(labels::text) THEN min(labels::text)::jsonb END,
                    'status', CASE WHEN min(status) = max(status) THEN min(status) END,
                    'submitted_by', CASE WHEN min(submitted_by) = max(submitted_by) THEN min(submitted_by) END) AS shared
            FROM changed_rows WHERE job_id IS NULL GROUP BY cluster_id, namespace
        ), told AS (
            INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, after)
                SELECT 'create', TG_ARGV[0], coalesce(cluster.name, ''), made.namespace, kueueweb_audit_together(names, shared)
                FROM made LEFT JOIN accounts_cluster AS cluster ON cluster.id = made.cluster_id WHERE many > 1
        )
        SELECT coalesce(array_agg(first), '{}') INTO alone FROM made WHERE many = 1;
    ELSIF TG_OP = 'INSERT' AND TG_TABLE_NAME = 'queues_job' THEN
        WITH made AS (
            SELECT cluster_id, kind, namespace, count(*) AS many, min(id) AS first,
                jsonb_agg(name ORDER BY id) AS names,
                jsonb_build_object(
                    'managed', CASE WHEN bool_and(managed) = bool_or(managed) THEN bool_and(managed) END,
                    'suspended', CASE WHEN bool_and(suspended) = bool_or(suspended) THEN bool_and(suspended) END) AS shared
            FROM changed_rows GROUP BY cluster_id, kind, namespace
        ), told AS (
            INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, after)
                SELECT 'create', made.kind, coalesce(cluster.name, ''), made.namespace, kueueweb_audit_together(names, shared)
                FROM made LEFT JOIN accounts_cluster AS cluster ON cluster.id = made.cluster_id WHERE many > 1
        )
        SELECT coalesce(array_agg(first), '{}') INTO alone FROM made WHERE many = 1;
    END IF;
    IF alone = '{}' THEN RETURN NULL; END IF;
    INSERT INTO accounts_auditrecord (verb, kind, cluster_name, namespace, name, before, after)
        SELECT CASE TG_OP WHEN 'INSERT' THEN 'create' ELSE 'delete' END, coalesce(nullif(TG_ARGV[0], ''), row_ ->> 'kind'),
            kueueweb_audit_cluster(TG_TABLE_NAME, row_), coalesce(row_ ->> 'namespace', ''), kueueweb_audit_name(TG_TABLE_NAME, row_),
            CASE TG_OP WHEN 'DELETE' THEN kueueweb_audit_redacted(kueueweb_audit_columns(row_, kept)) END,
            CASE TG_OP WHEN 'INSERT' THEN kueueweb_audit_redacted(kueueweb_audit_columns(row_, kept)) END
        FROM (SELECT to_jsonb(changed_rows) AS row_ FROM changed_rows) AS rows_
        WHERE alone IS NULL OR (row_ ->> 'id')::bigint = ANY (alone);
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0014_placement_is_noted"), ("queues", "0017_workload_on_hold")]

    operations = [migrations.RunSQL(FUNCTIONS, migrations.RunSQL.noop)]
