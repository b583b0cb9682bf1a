import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0005_namespace_limits'),
    ]

    operations = [
        migrations.AddField(
            model_name='job',
            name='group',
            field=models.ForeignKey(blank=True, help_text="Of a pod that belongs to a group: the group's row.", null=True, on_delete=django.db.models.deletion.CASCADE, related_name='members', to='queues.job'),
        ),
        migrations.AddField(
            model_name='job',
            name='phase',
            field=models.CharField(blank=True, db_default='', default='', help_text='Of a pod of a group: how it ended (Succeeded, Failed), empty until then.', max_length=16),
        ),
    ]
