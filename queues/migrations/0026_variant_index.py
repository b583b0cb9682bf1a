from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0025_variants")]

    operations = [
        AddIndexConcurrently(
            "workload",
            models.Index(
                condition=models.Q(("parent_name", ""), _negated=True),
                fields=["cluster", "namespace", "parent_name"],
                name="workload_variant",
            ),
        ),
    ]
