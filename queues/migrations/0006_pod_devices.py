from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("queues", "0005_protection_columns")]

    operations = [
        migrations.RenameField("pod", "cards", "devices"),
        migrations.AlterField(
            "pod",
            "devices",
            models.JSONField(
                blank=True,
                help_text="[uuid, ...]: the devices that its own annotations name, once it has such.",
                null=True,
            ),
        ),
    ]
