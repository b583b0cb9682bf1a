"""What a LocalQueue has used is no edit of it: the audit leaves it out, as it does the usage of admission fair sharing."""

from importlib import import_module

from django.db import migrations

_COLUMNS = import_module("scheduler.migrations.0008_generations").AUDIT_COLUMNS


class Migration(migrations.Migration):
    dependencies = [
        ("queues", "0028_local_queue_past_use"),
        ("scheduler", "0022_fewer_indexes"),
    ]

    operations = [
        migrations.RunSQL(_COLUMNS.format(more=", 'changed_by', 'past_use'"), _COLUMNS.format(more=", 'changed_by'"))
    ]
