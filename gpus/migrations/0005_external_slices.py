"""What pods of others hold is called external."""

from django.db import migrations, models

TO_EXTERNAL = "UPDATE gpus_deviceallocation SET source = 'external' WHERE source = 'found'"
TO_FOUND = "UPDATE gpus_deviceallocation SET source = 'found' WHERE source = 'external'"


class Migration(migrations.Migration):
    dependencies = [("gpus", "0004_mig_instances")]

    operations = [
        migrations.RenameField("device", "found_slots", "external_slots"),
        migrations.RenameField("device", "found_memory_mib", "external_memory_mib"),
        migrations.RenameField("device", "found_cores_percent", "external_cores_percent"),
        migrations.RemoveConstraint("deviceallocation", "device_allocation_decided_is_whole"),
        migrations.AlterField(
            "deviceallocation",
            "source",
            models.CharField(
                choices=[("decided", "Decided"), ("external", "External")], default="decided", max_length=8
            ),
        ),
        migrations.RunSQL(TO_EXTERNAL, TO_FOUND),
        migrations.AddConstraint(
            "deviceallocation",
            models.CheckConstraint(
                condition=models.Q(
                    ("source", "external"),
                    models.Q(("device__isnull", False), ("workload__isnull", False)),
                    _connector="OR",
                ),
                name="device_allocation_decided_is_whole",
            ),
        ),
    ]
