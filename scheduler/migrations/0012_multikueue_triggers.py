"""MultiKueueConfigs and MultiKueueClusters are configuration like every other: edits raise their generation and are
recorded; what is found of a worker's connection is not an edit."""

from django.db import migrations

RECORDED = {
    "queues_multikueueconfig": ("MultiKueueConfig", ""),
    "queues_multikueuecluster": (
        "MultiKueueCluster", "kube_config,cluster_profile,labels,annotations,deletion_requested_at",
    ),
}


def triggers(table: str, kind: str, columns: str) -> str:
    statements = [
        f"CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON {table} FOR EACH ROW "
        "WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();"
    ]
    for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD")):
        statements.append(
            f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON {table} REFERENCING {rows} TABLE AS "
            f"changed_rows FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_audit_rows('{kind}', '{columns}');"
        )
    statements.append(
        f"CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON {table} FOR EACH ROW "
        f"EXECUTE FUNCTION kueueweb_audit_update('{kind}', '{columns}');"
    )
    return "\n".join(statements)


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0011_shadow"), ("queues", "0014_multikueue")]

    operations = [
        migrations.RunSQL(
            "\n".join(triggers(table, kind, columns) for table, (kind, columns) in RECORDED.items()),
            migrations.RunSQL.noop,
        )
    ]
