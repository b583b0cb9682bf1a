from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [('queues', '0034_reservation')]

    operations = [
        migrations.AddField(
            model_name='workload',
            name='waits_for',
            field=models.JSONField(blank=True, db_default=models.Value([], models.JSONField()), default=list, help_text='[name, ...]: jobs of its namespace that must succeed before it may hold quota.'),
        ),
    ]
