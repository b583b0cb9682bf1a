from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0022_cluster_queue_conditions'),
    ]

    operations = [
        migrations.AddField(
            model_name='workload',
            name='requeue_message',
            field=models.TextField(blank=True, db_default='', default='', help_text="The eviction's message, as asked for."),
        ),
        migrations.AddField(
            model_name='workload',
            name='requeue_reason',
            field=models.CharField(blank=True, db_default='', default='', help_text="The eviction's reason, as asked for.", max_length=64),
        ),
    ]
