"""Prices are configuration: who changes one is recorded, as with every other (`scheduler/migrations/0006`)."""

from django.db import migrations

TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON history_price REFERENCING {rows} TABLE AS changed_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_audit_rows('Price', '');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON history_price FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('Price', '');"
    ]
)


class Migration(migrations.Migration):
    dependencies = [("history", "0002_usage_triggers"), ("scheduler", "0006_audit_triggers")]

    operations = [migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop)]
