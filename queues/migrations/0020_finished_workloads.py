from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0019_priority_weights")]

    operations = [
        AddIndexConcurrently(
            "workload",
            models.Index(
                condition=models.Q(("status", "Finished")),
                fields=["cluster", "finished_at"],
                name="workload_finished",
            ),
        ),
    ]
