import uuid

import django.db.models.deletion
from django.db import migrations, models


def describe_tokens(apps, schema_editor):
    """Tokens that were made before get an id, too: by it they are listed and revoked."""
    tokens = apps.get_model("knox", "AuthToken").objects.values_list("digest", flat=True)
    details = apps.get_model("accounts", "TokenDetails")
    details.objects.bulk_create(details(token_id=digest) for digest in tokens)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0002_audit_findings'),
        ('knox', '0009_extend_authtoken_field'),
    ]

    operations = [
        migrations.CreateModel(
            name='TokenDetails',
            fields=[
                ('id', models.UUIDField(default=uuid.uuid4, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(blank=True, help_text='What the token is for, as its owner calls it.', max_length=100)),
                ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='details', to='knox.authtoken')),
            ],
            options={
                'verbose_name_plural': 'token details',
            },
        ),
        migrations.RunPython(describe_tokens, migrations.RunPython.noop),
    ]
