from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('queues', '0007_pod_groups'),
    ]

    operations = [
        migrations.AddField(
            model_name='pod',
            name='cards',
            field=models.JSONField(blank=True, help_text='[uuid, ...]: the cards that its own annotations name, once it has such.', null=True),
        ),
    ]
