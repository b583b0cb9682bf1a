"""The generation of every configuration object goes up with each edit: it is the resourceVersion of its manifest.

The audit says who acted, so that `changed_by` is no change of its own there.
"""

from django.db import migrations

TABLES = (
    "accounts_namespace",
    "queues_admissioncheck",
    "queues_priorityclass",
    "queues_topology",
    "queues_workloadpriorityclass",
)

AUDIT_COLUMNS = """
CREATE OR REPLACE FUNCTION kueueweb_audit_columns(row_ jsonb, kept text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN kept IS NULL
        THEN row_ - ARRAY['id', 'uid', 'cluster_id', 'generation', 'configuration_generation', 'created_at', 'updated_at',
            'last_login', 'date_joined', 'last_used', 'admission_fair_sharing', 'digest', 'salt', 'token_key', 'token_id'
            {more}]
        -- A job's manifest may hold secrets: that it has changed is what is recorded of it.
        ELSE (SELECT coalesce(jsonb_object_agg(key,
                CASE key WHEN 'manifest' THEN to_jsonb('md5 ' || md5(value::text)) ELSE value END), '{{}}')
            FROM jsonb_each(row_) WHERE key = ANY (kept)) END
$$;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("accounts", "0006_edits_and_spellings"),
        ("queues", "0008_edits_and_spellings"),
        ("scheduler", "0007_metric_counts"),
    ]

    operations = [
        *(
            migrations.RunSQL(
                f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {table} FOR EACH ROW "
                "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();",
                f"DROP TRIGGER kueueweb_raise_generation ON {table};",
            )
            for table in TABLES
        ),
        migrations.RunSQL(AUDIT_COLUMNS.format(more=", 'changed_by'"), AUDIT_COLUMNS.format(more="")),
    ]
