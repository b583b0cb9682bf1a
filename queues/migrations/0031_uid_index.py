"""Find workloads and jobs by uid, as pods and events name them, however many have finished."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0030_user_limits")]

    operations = [
        AddIndexConcurrently("workload", models.Index(fields=["cluster", "uid"], name="workload_uid")),
        AddIndexConcurrently("job", models.Index(fields=["cluster", "uid"], name="job_uid")),
    ]
