"""Find the workloads of pods by an index: each change of a pod names its workload by the uid."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0030_user_limits")]

    operations = [AddIndexConcurrently("workload", models.Index(fields=["uid"], name="workload_uid"))]
