"""Objects of dynamic resource allocation are noted for the engine. Other objects that jobs refer to decide nothing there."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION kueueweb_note_device_object() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF kueueweb_unnoticed() THEN RETURN NULL; END IF;
    INSERT INTO scheduler_change (cluster_id, kind, object_id, key)
        SELECT cluster_id, 'deviceobject', id, kind || ' ' || namespace || '/' || name FROM changed_rows
        WHERE kind IN ('DeviceClass', 'ResourceSlice', 'ResourceClaimTemplate', 'ResourceClaim');
    PERFORM kueueweb_raise_configuration_generation(ARRAY(SELECT DISTINCT cluster_id FROM changed_rows
        WHERE kind IN ('DeviceClass', 'ResourceSlice', 'ResourceClaimTemplate', 'ResourceClaim')));
    RETURN NULL;
END $$;
"""
TRIGGERS = "\n".join(
    f"CREATE TRIGGER kueueweb_note_{event.lower()} AFTER {event} ON queues_clusterobject "
    f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_note_device_object();"
    for event, rows in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD"))
)
UNDO = "\n".join(
    [
        *(
            f"DROP TRIGGER kueueweb_note_{event} ON queues_clusterobject;"
            for event in ("insert", "update", "delete")
        ),
        "DROP FUNCTION kueueweb_note_device_object();",
    ]
)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0012_multikueue_triggers"), ("queues", "0011_cluster_objects")]

    operations = [migrations.RunSQL(FUNCTION + TRIGGERS, UNDO)]
