"""Thresholds and webhook formats of rules, which the audit records with the other columns."""

import django.db.models as models
import django.db.models.expressions
from django.db import migrations

COLUMNS = "user_id,event,minutes,threshold,cluster_queue,channels,webhook_format,enabled"
FORMATS = [(form, form) for form in ("json", "slack", "teams", "feishu", "dingtalk")]
EVENTS = (
    "WorkloadStarted",
    "WorkloadPreempted",
    "WorkloadFailed",
    "WorkloadWaits",
    "QueueStarved",
    "DeviceFailed",
    "SchedulerSilent",
    "DevicesIdle",
    "QuotaUsed",
    "ShareBelow",
)
TRIGGERS = "\n".join(
    [
        f"DROP TRIGGER kueueweb_audit_{event.lower()} ON notifications_notificationrule; "
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON notifications_notificationrule "
        f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT "
        f"EXECUTE FUNCTION kueueweb_audit_rows('NotificationRule', '{COLUMNS}');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "DROP TRIGGER kueueweb_audit_update ON notifications_notificationrule; "
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON notifications_notificationrule FOR EACH ROW "
        f"WHEN (kueueweb_somebody_acts()) EXECUTE FUNCTION kueueweb_audit_update('NotificationRule', '{COLUMNS}');"
    ]
)


def _format(text: str) -> models.CharField:
    return models.CharField(choices=FORMATS, db_default="json", default="json", help_text=text, max_length=8)


class Migration(migrations.Migration):
    dependencies = [("notifications", "0002_audit_rules")]

    operations = [
        migrations.AddField(
            "notificationrule",
            "threshold",
            models.PositiveSmallIntegerField(
                blank=True,
                help_text="The percentage that the figure of the event crosses, such as 90 of QuotaUsed.",
                null=True,
            ),
        ),
        migrations.AddField(
            "notificationrule",
            "onsets",
            models.JSONField(
                blank=True,
                db_default=django.db.models.expressions.Value({}, models.JSONField()),
                default=dict,
                help_text="By key, since when a figure is beyond the threshold.",
            ),
        ),
        migrations.AddField(
            "notificationrule",
            "webhook_format",
            _format("The form of the webhook's body: json, slack, teams, feishu or dingtalk."),
        ),
        migrations.AddField(
            "delivery", "webhook_format", _format("The form of the body, as it was when it was told.")
        ),
        migrations.AlterField(
            "notificationrule",
            "event",
            models.CharField(
                choices=[(event, event) for event in EVENTS],
                help_text="The event, such as WorkloadPreempted.",
                max_length=32,
            ),
        ),
        migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop),
    ]
