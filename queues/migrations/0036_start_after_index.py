from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0035_start_after")]

    operations = [
        AddIndexConcurrently(
            "workload",
            models.Index(
                condition=models.Q(("waits_for", []), _negated=True),
                fields=["cluster", "namespace"],
                name="workload_waits_for",
            ),
        ),
        AddIndexConcurrently(
            "job",
            models.Index(
                condition=models.Q(("labels__has_key", "volcano.sh/createdByJobFlow")),
                fields=["cluster", "namespace"],
                name="job_flow",
            ),
        ),
    ]
