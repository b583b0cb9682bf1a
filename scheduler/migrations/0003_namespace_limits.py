"""Outside changes of ResourceQuotas, LimitRanges and RuntimeClasses are noted as those of queues are."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION kueueweb_note_namespaced() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key)
        SELECT cluster_id, TG_ARGV[0], id, namespace || '/' || name FROM changed_rows;
    PERFORM kueueweb_raise_configuration_generation(ARRAY(SELECT DISTINCT cluster_id FROM changed_rows));
    RETURN NULL;
END $$;
"""

# table -> (function, argument)
NOTED = {
    "queues_resourcequota": "kueueweb_note_namespaced('resourcequota')",
    "queues_limitrange": "kueueweb_note_namespaced('limitrange')",
    "queues_runtimeclass": "kueueweb_note_named('runtimeclass')",
}


def triggers() -> str:
    statements = []
    for table, function in NOTED.items():
        for event, rows in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
            statements.append(
                f"CREATE TRIGGER kueueweb_note_{event.lower()} AFTER {event} ON {table} "
                f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION {function};"
            )
        statements.append(
            f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {table} FOR EACH ROW "
            "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();"
        )
    return "\n".join(statements)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0002_database_rules"), ("queues", "0005_namespace_limits")]

    operations = [
        migrations.RunSQL(FUNCTION, migrations.RunSQL.noop),
        migrations.RunSQL(triggers(), migrations.RunSQL.noop),
    ]
