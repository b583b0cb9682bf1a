"""Reservations are configuration like every other: the engine reads their edits, which raise their generation and are
recorded."""

from django.db import migrations

TABLE = "queues_reservation"
AUDITED = "kueueweb_audit_rows('Reservation', '')"


def triggers() -> str:
    statements = [
        f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {TABLE} FOR EACH ROW "
        "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();"
    ]
    for event, rows in (("INSERT", "NEW"), ("UPDATE", "NEW"), ("DELETE", "OLD")):
        statements.append(
            f"CREATE TRIGGER kueueweb_note_{event.lower()} AFTER {event} ON {TABLE} REFERENCING {rows} TABLE AS "
            "changed_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_note_named('reservation');"
        )
        if event != "UPDATE":
            statements.append(
                f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON {TABLE} REFERENCING {rows} TABLE AS "
                f"changed_rows FOR EACH STATEMENT EXECUTE FUNCTION {AUDITED};"
            )
    statements.append(
        f"CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON {TABLE} FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('Reservation', '');"
    )
    return "\n".join(statements)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0026_requeues_are_audited"), ("queues", "0034_reservation")]

    operations = [migrations.RunSQL(triggers(), migrations.RunSQL.noop)]
