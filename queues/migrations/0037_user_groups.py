from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('queues', '0036_start_after_index')]

    operations = [
        migrations.AddField(
            model_name='workload',
            name='user_groups',
            field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='[name, ...]: the groups of that user at the submission, by which limits by group count.'),
        ),
    ]
