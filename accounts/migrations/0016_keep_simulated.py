"""`simulated` was a mode; a simulated cluster is one in mode `schedule` now."""

from django.db import migrations


def keep_simulated(apps, schema_editor):
    clusters = apps.get_model("accounts", "Cluster").objects.using(schema_editor.connection.alias)
    clusters.filter(mode="simulated").update(simulated=True, mode="schedule")


class Migration(migrations.Migration):
    dependencies = [("accounts", "0015_device_binding")]

    operations = [migrations.RunPython(keep_simulated, migrations.RunPython.noop)]
