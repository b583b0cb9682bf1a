"""Kueue's word: what waits until something changes is inadmissible, in the log of decisions too."""

from django.db import migrations, models

RENAME = "UPDATE scheduler_decision SET action = 'Inadmissible' WHERE action = 'Park';"
BACK = "UPDATE scheduler_decision SET action = 'Park' WHERE action = 'Inadmissible';"


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0004_flavor_generation")]

    operations = [
        migrations.RenameField("schedulingcycle", "parked", "inadmissible"),
        migrations.AlterField(
            "decision",
            "action",
            models.CharField(help_text="Admit, Preempt, Evict, Inadmissible, Skip, Requeue, Finish ...", max_length=16),
        ),
        migrations.RunSQL(RENAME, BACK),
    ]
