"""Drop the indexes of foreign keys with which another index begins, and leave room for changes beside rows.

Every change of a workload writes all of its indexes, and one of each of these pairs was never read. Pod sets change no
indexed column when they are admitted: with room on the page, PostgreSQL then writes no index. Only new pages leave it;
nothing is rewritten, so that a million workloads take no longer than none.
"""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("accounts", "0021_placement"), ("queues", "0020_finished_workloads")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    f"DROP INDEX CONCURRENTLY IF EXISTS {name}",
                    f"CREATE INDEX CONCURRENTLY IF NOT EXISTS {name} ON {table} ({column})",
                )
                for name, table, column in (
                    ("queues_workload_cluster_id_0172de5c", "queues_workload", "cluster_id"),
                    ("queues_podset_workload_id_54102227", "queues_podset", "workload_id"),
                    ("queues_workloadevent_cluster_id_43cc91b2", "queues_workloadevent", "cluster_id"),
                )
            ],
            [
                migrations.AlterField(
                    model_name="workload",
                    name="cluster",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="accounts.cluster",
                    ),
                ),
                migrations.AlterField(
                    model_name="podset",
                    name="workload",
                    field=models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pod_sets",
                        to="queues.workload",
                    ),
                ),
                migrations.AlterField(
                    model_name="workloadevent",
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
        migrations.RunSQL(
            "ALTER TABLE queues_podset SET (fillfactor = 50)", "ALTER TABLE queues_podset RESET (fillfactor)"
        ),
    ]
