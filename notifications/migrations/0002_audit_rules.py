"""Who changes a rule is recorded, as with every other write (`scheduler/migrations/0006`).

Its URL is not: whoever knows the URL of a chat's webhook may write to that chat.
"""

from django.db import migrations

COLUMNS = "user_id,event,minutes,cluster_queue,channels,enabled"
TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON notifications_notificationrule "
        f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT "
        f"EXECUTE FUNCTION kueueweb_audit_rows('NotificationRule', '{COLUMNS}');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON notifications_notificationrule FOR EACH ROW "
        f"WHEN (kueueweb_somebody_acts()) EXECUTE FUNCTION kueueweb_audit_update('NotificationRule', '{COLUMNS}');"
    ]
)


class Migration(migrations.Migration):
    dependencies = [("notifications", "0001_initial"), ("scheduler", "0006_audit_triggers")]

    operations = [migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop)]
