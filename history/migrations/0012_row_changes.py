"""Changes of the rows that checkpoints keep are recorded by triggers, which a checkpoint's worker turns on.

They are off after the migration. An insertion is recorded as the keys of its rows, an update as the values that it
replaced, a deletion as the whole row: enough to undo them.
"""

from django.db import migrations, models

# The tables of checkpoints as of this migration, without the estimates, which are renewed each minute.
TABLES = (
    "accounts_namespace", "queues_runtimeclass", "queues_limitrange", "queues_resourcequota", "queues_resourceflavor",
    "queues_topology", "queues_admissioncheck", "queues_provisioningrequestconfig", "queues_priorityclass",
    "queues_workloadpriorityclass", "queues_cohort", "queues_clusterqueue", "queues_localqueue", "queues_reservation",
    "queues_resourcegroup", "queues_flavorquota", "queues_clusterobject", "gpus_node", "gpus_device", "queues_job",
    "queues_workload", "queues_podset", "queues_pod", "gpus_deviceallocation",
)

FUNCTIONS = """
ALTER TABLE history_rowchange ALTER COLUMN row_ids TYPE bigint[] USING NULL;
ALTER TABLE history_rowchange ALTER COLUMN old TYPE hstore USING NULL;
ALTER TABLE history_checkpoint ALTER COLUMN changes SET STORAGE EXTERNAL;

CREATE AGGREGATE kueueweb_merged(hstore) (SFUNC = hs_concat, STYPE = hstore, INITCOND = '');

-- All changes of a transaction have one moment, so that none is shown in part.
CREATE FUNCTION kueueweb_change_moment() RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    found text := current_setting('kueueweb.changed_at', true);
BEGIN
    IF found IS NULL OR found = '' THEN
        found := set_config('kueueweb.changed_at', clock_timestamp()::text, true);
    END IF;
    RETURN found::timestamptz;
END $$;

CREATE FUNCTION kueueweb_record_changes() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET jit = off AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO history_rowchange (at, table_name, operation, row_ids)
            SELECT kueueweb_change_moment(), TG_TABLE_NAME, 'I', ids
            FROM (SELECT array_agg(id) AS ids FROM changed_rows) AS inserted WHERE ids IS NOT NULL;
    ELSIF TG_OP = 'DELETE' THEN
        INSERT INTO history_rowchange (at, table_name, operation, row_id, old)
            SELECT kueueweb_change_moment(), TG_TABLE_NAME, 'D', id, hstore(changed_rows) FROM changed_rows;
    ELSE
        INSERT INTO history_rowchange (at, table_name, operation, row_id, old)
            SELECT kueueweb_change_moment(), TG_TABLE_NAME, 'U', changed.id, changed.replaced
            FROM (SELECT before.id, hstore(before) - hstore(after) AS replaced
                FROM old_rows AS before JOIN changed_rows AS after ON after.id = before.id) AS changed
            WHERE changed.replaced - 'updated_at'::text <> '';
    END IF;
    RETURN NULL;
END $$;

-- The settings by which the rules decide.
CREATE FUNCTION kueueweb_record_settings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO history_rowchange (at, table_name, operation, row_id, old)
        VALUES (kueueweb_change_moment(), TG_TABLE_NAME, 'U', OLD.id, hstore(OLD) - hstore(NEW));
    RETURN NULL;
END $$;
"""

NO_FUNCTIONS = """
DROP AGGREGATE kueueweb_merged(hstore);
DROP FUNCTION kueueweb_record_changes() CASCADE;
DROP FUNCTION kueueweb_record_settings() CASCADE;
DROP FUNCTION kueueweb_change_moment();
"""


def triggers() -> str:
    statements = []
    for table in TABLES:
        for event, rows in (
            ("INSERT", "NEW TABLE AS changed_rows"),
            ("UPDATE", "OLD TABLE AS old_rows NEW TABLE AS changed_rows"),
            ("DELETE", "OLD TABLE AS changed_rows"),
        ):
            name = f"kueueweb_record_{event.lower()}"
            statements.append(
                f"CREATE TRIGGER {name} AFTER {event} ON {table} REFERENCING {rows} "
                "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_record_changes();"
            )
            statements.append(f"ALTER TABLE {table} DISABLE TRIGGER {name};")
    statements.append(
        "CREATE TRIGGER kueueweb_record_update AFTER UPDATE ON accounts_cluster FOR EACH ROW WHEN ("
        "(OLD.configuration, OLD.device_plugin_configuration, OLD.placement, OLD.mode) IS DISTINCT FROM "
        "(NEW.configuration, NEW.device_plugin_configuration, NEW.placement, NEW.mode)) "
        "EXECUTE FUNCTION kueueweb_record_settings();"
    )
    statements.append("ALTER TABLE accounts_cluster DISABLE TRIGGER kueueweb_record_update;")
    return "\n".join(statements)


class Migration(migrations.Migration):

    dependencies = [
        ("history", "0011_devices_of_checkpoints"),
        ("queues", "0038_reservation_count"),
        ("scheduler", "0027_reservation_triggers"),
    ]

    operations = [
        # Not Django's operation: its reverse drops the extension, which the functions below need.
        migrations.RunSQL("CREATE EXTENSION IF NOT EXISTS hstore", migrations.RunSQL.noop),
        migrations.CreateModel(
            name="RowChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("at", models.DateTimeField(help_text="When the first change of its transaction was made.")),
                ("table_name", models.CharField(max_length=63, help_text="The table of the row.")),
                (
                    "operation",
                    models.CharField(
                        max_length=1, help_text="I: inserted, U: updated, D: deleted, B: recording began."
                    ),
                ),
                ("row_id", models.BigIntegerField(null=True, help_text="The key of the updated or deleted row.")),
                (
                    "row_ids",
                    models.JSONField(null=True, help_text="The keys of the rows that one statement inserted."),
                ),
                (
                    "old",
                    models.TextField(
                        null=True, help_text="hstore: the columns that the change replaced; deleted: all columns."
                    ),
                ),
            ],
            options={"ordering": ["id"]},
        ),
        migrations.AddField(
            model_name="checkpoint",
            name="changes",
            field=models.BinaryField(
                null=True, help_text="The changes since `changes_since` up to the checkpoint, compressed."
            ),
        ),
        migrations.AddField(
            model_name="checkpoint",
            name="changes_since",
            field=models.DateTimeField(
                null=True, help_text="Since when its changes are recorded without a gap; null: not recorded."
            ),
        ),
        migrations.RunSQL(FUNCTIONS, NO_FUNCTIONS),
        migrations.RunSQL(triggers(), migrations.RunSQL.noop),
    ]
