"""Checkpoints of clusters. Their content is compressed already, so PostgreSQL stores it as it is."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0023_namespace_in_cluster'),
        ('history', '0009_fewer_indexes'),
    ]

    operations = [
        migrations.CreateModel(
            name='Checkpoint',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('taken_at', models.DateTimeField(help_text="The moment of the snapshot, by the database's clock.")),
                ('epoch', models.BigIntegerField(help_text='The leadership of the scheduler at that moment; 0: none yet.')),
                ('decision', models.BigIntegerField(help_text='The number of the newest decision that the rows include; 0: none.')),
                ('format', models.PositiveSmallIntegerField(help_text='The version of the layout of `content`.')),
                ('settings', models.JSONField(help_text="The cluster's own settings: {configuration, placement ...}")),
                ('figures', models.JSONField(help_text='{source, time, cluster_queues, cohorts}: quota and usage of the tree.')),
                ('workloads', models.PositiveIntegerField(help_text='The number of workloads in it.')),
                ('content', models.BinaryField(help_text='The rows of each table, compressed.')),
                ('size_bytes', models.PositiveIntegerField(help_text='The size of `content`.')),
                ('cluster', models.ForeignKey(db_index=False, help_text='The cluster whose rows it has.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.cluster')),
            ],
            options={
                'ordering': ['cluster', 'taken_at'],
                'indexes': [models.Index(fields=['taken_at'], name='checkpoint_age')],
                'constraints': [models.UniqueConstraint(fields=('cluster', 'taken_at'), name='checkpoint_unique')],
            },
        ),
        migrations.RunSQL(
            "ALTER TABLE history_checkpoint ALTER COLUMN content SET STORAGE EXTERNAL", migrations.RunSQL.noop
        ),
    ]
