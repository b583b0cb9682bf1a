"""Record users' requeues: they change no column that was recorded."""

from django.db import migrations

# The columns of a workload that are recorded (0019), and the user that asked for a requeue.
RECORDED = (
    "queue_name", "priority", "priority_class_name", "active", "never_preempt", "labels", "annotations", "status",
    "deletion_requested_at", "maximum_execution_seconds", "submitted_by", "requeue_requested_by",
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


# The settings are those of 0021 and 0025: a replaced function loses them.
AUDIT = f"""
CREATE OR REPLACE FUNCTION kueueweb_audit_workload_updates() RETURNS trigger LANGUAGE plpgsql
SET enable_nestloop = off SET jit = off AS $$
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
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0025_no_jit_in_triggers")]

    operations = [migrations.RunSQL(AUDIT, migrations.RunSQL.noop)]
