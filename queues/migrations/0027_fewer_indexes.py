"""Drop the indexes of foreign keys with which another index begins: each row that is written writes every index."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("queues", "0026_variant_index")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} ({column})",
                )
                for name, table, column in (
                    ("queues_job_cluster_id_19876064", "queues_job", "cluster_id"),
                    ("queues_mirroredchange_cluster_id_06a21b33", "queues_mirroredchange", "cluster_id"),
                    ("queues_pod_workload_id_99b81e61", "queues_pod", "workload_id"),
                )
            ],
            [
                migrations.AlterField(
                    model_name="job",
                    name="cluster",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.cluster",
                    ),
                ),
                migrations.AlterField(
                    model_name="mirroredchange",
                    name="cluster",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.cluster",
                    ),
                ),
                migrations.AlterField(
                    model_name="pod",
                    name="workload",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pods",
                        to="queues.workload",
                    ),
                ),
            ],
        ),
    ]
