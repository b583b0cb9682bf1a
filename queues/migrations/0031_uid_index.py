"""Find workloads and jobs by uid, as pods and events name them, however many have finished."""

from django.db import migrations, models

from foundation.postgresql.indexes import BuildIndex


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("queues", "0030_user_limits")]

    operations = [
        BuildIndex("workload", models.Index(fields=["cluster", "uid"], name="workload_uid")),
        BuildIndex("job", models.Index(fields=["cluster", "uid"], name="job_uid")),
    ]
