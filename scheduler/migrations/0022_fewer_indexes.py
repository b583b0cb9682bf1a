"""Drop the index of foreign keys with which another index begins: each row that is written writes every index."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("scheduler", "0021_pair_rows_by_hash")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} ({column})",
                )
                for name, table, column in (
                    ("scheduler_schedulingcycle_cluster_id_6ad5e9fd", "scheduler_schedulingcycle", "cluster_id"),
                )
            ],
            [
                migrations.AlterField(
                    model_name="schedulingcycle",
                    name="cluster",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounts.cluster",
                    ),
                ),
            ],
        ),
    ]
