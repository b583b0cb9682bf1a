"""Drop the indexes of foreign keys with which another index begins: each row that is written writes every index."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("gpus", "0005_temperature_and_power")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} ({column})",
                )
                for name, table, column in (
                    ("gpus_containersample_device_id_b9c8a318", "gpus_containersample", "device_id"),
                    ("gpus_device_node_id_8c5ce0f4", "gpus_device", "node_id"),
                    ("gpus_deviceallocation_cluster_id_c9808509", "gpus_deviceallocation", "cluster_id"),
                    ("gpus_deviceallocation_device_id_433b04d2", "gpus_deviceallocation", "device_id"),
                    ("gpus_devicesample_device_id_d458b075", "gpus_devicesample", "device_id"),
                )
            ],
            [
                migrations.AlterField(
                    model_name="containersample",
                    name="device",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="container_samples",
                        to="gpus.device",
                    ),
                ),
                migrations.AlterField(
                    model_name="device",
                    name="node",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="devices",
                        to="gpus.node",
                    ),
                ),
                migrations.AlterField(
                    model_name="deviceallocation",
                    name="cluster",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.cluster",
                    ),
                ),
                migrations.AlterField(
                    model_name="deviceallocation",
                    name="device",
                    field=models.ForeignKey(
                        blank=True,
                        null=True,
                        help_text="Empty: the slice names a device that its node does not list.",
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="allocations",
                        to="gpus.device",
                    ),
                ),
                migrations.AlterField(
                    model_name="devicesample",
                    name="device",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="samples",
                        to="gpus.device",
                    ),
                ),
            ],
        ),
    ]
