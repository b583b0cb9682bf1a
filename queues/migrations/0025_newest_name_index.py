"""Make the unique index of namespace and name the newest of the table.

Of two indexes that seem to cost the same, PostgreSQL takes the newer. While the table had no statistics yet, names were
looked up by the index of LocalQueues, which reads a whole namespace for each: seconds for a few hundred workloads.
"""

from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    dependencies = [("queues", "0024_sharing_policy")]

    operations = [
        migrations.RunSQL(
            [
                "DROP INDEX CONCURRENTLY IF EXISTS workload_unique_anew",
                "CREATE UNIQUE INDEX CONCURRENTLY workload_unique_anew "
                "ON queues_workload (cluster_id, namespace, name)",
                "ALTER TABLE queues_workload DROP CONSTRAINT workload_unique, "
                "ADD CONSTRAINT workload_unique UNIQUE USING INDEX workload_unique_anew",
            ],
            migrations.RunSQL.noop,
        )
    ]
