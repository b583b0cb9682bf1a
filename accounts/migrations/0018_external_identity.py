"""Who is who at the OpenID Connect provider; recorded, as everything that says who may what (`scheduler/migrations/0006`)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON accounts_externalidentity REFERENCING {rows} TABLE AS changed_rows "
        "FOR EACH STATEMENT EXECUTE FUNCTION kueueweb_audit_rows('ExternalIdentity', '');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON accounts_externalidentity FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('ExternalIdentity', '');"
    ]
)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0017_cluster_accepts_workloads_from'),
        ('scheduler', '0006_audit_triggers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ExternalIdentity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(help_text="The provider's URL, as in its ID tokens.", max_length=512)),
                ('subject', models.CharField(help_text='The claim `sub` of its ID tokens.', max_length=255)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='external_identities', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'verbose_name_plural': 'external identities',
                'ordering': ['user_id', 'issuer', 'subject'],
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='external_identity_of_one_user')],
            },
        ),
        migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop),
    ]
