"""A workload whose variants hold quota in its place (concurrent admission) leaves no records beside theirs."""

from importlib import import_module

from django.db import migrations

ENDED = import_module("history.migrations.0006_pair_rows_by_hash").ENDED
_BEFORE = "FROM old_rows WHERE quota_reserved_at IS NOT NULL AND status <> 'Finished'"


class Migration(migrations.Migration):
    dependencies = [("history", "0007_devices_demanded"), ("queues", "0025_variants")]

    operations = [migrations.RunSQL(ENDED.replace(_BEFORE, f"{_BEFORE} AND NOT has_variants"), ENDED)]
