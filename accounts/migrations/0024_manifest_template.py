"""Templates that users save; who changes one is recorded, as with every other write (`scheduler/migrations/0006`)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON accounts_manifesttemplate "
        f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT "
        "EXECUTE FUNCTION kueueweb_audit_rows('ManifestTemplate', '');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON accounts_manifesttemplate FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('ManifestTemplate', '');"
    ]
)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0023_namespace_in_cluster'),
        ('scheduler', '0026_requeues_are_audited'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='ManifestTemplate',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(help_text='The name of the template.', max_length=60)),
                ('manifest', models.TextField(help_text='YAML or JSON, as the user wrote it.', max_length=65536)),
                ('generation', models.BigIntegerField(default=1, help_text='Goes up with each change.')),
                ('updated_at', models.DateTimeField(auto_now=True, help_text='When the template was last saved.')),
                ('user', models.ForeignKey(help_text='The user that saved the template.', on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['name', 'id'],
                'constraints': [models.UniqueConstraint(fields=('user', 'name'), name='manifest_template_unique')],
            },
        ),
        migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop),
    ]
