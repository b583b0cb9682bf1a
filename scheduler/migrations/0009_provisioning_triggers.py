"""ProvisioningRequestConfigs are configuration like every other: edits raise their generation and are recorded."""

from django.db import migrations

TABLE = "queues_provisioningrequestconfig"
TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {TABLE} FOR EACH ROW "
        "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();",
        *(
            f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON {TABLE} REFERENCING {rows} TABLE AS changed_rows "
            "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_audit_rows('ProvisioningRequestConfig', '');"
            for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
        ),
        f"CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON {TABLE} FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('ProvisioningRequestConfig', '');",
    ]
)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0008_generations"), ("queues", "0010_provisioning_request_config")]

    operations = [migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop)]
