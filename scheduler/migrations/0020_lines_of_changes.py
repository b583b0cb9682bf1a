"""Note of each changed workload whether it holds quota: the engine reads those notes in a line of their own."""

from django.db import migrations, models

NOTE = """
CREATE OR REPLACE FUNCTION kueueweb_note_workload() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key, holds_quota)
        SELECT cluster_id, 'workload', id, namespace || '/' || name, quota_reserved_at IS NOT NULL FROM changed_rows;
    RETURN NULL;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0019_triggers_of_statements")]

    operations = [
        migrations.AddField(
            "change",
            "holds_quota",
            models.BooleanField(
                db_default=False, help_text="Whether it is a workload that holds quota, or held it when it ended."
            ),
        ),
        migrations.AddIndex(
            "change", models.Index(fields=["cluster_id", "tenant", "holds_quota", "id"], name="change_line")
        ),
        migrations.RemoveIndex("change", "change_tenant"),
        migrations.RunSQL(NOTE, migrations.RunSQL.noop),
    ]
