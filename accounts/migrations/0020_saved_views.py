"""Views that users save; who changes one is recorded, as with every other write (`scheduler/migrations/0006`)."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


TRIGGERS = "\n".join(
    [
        f"CREATE TRIGGER kueueweb_audit_{event.lower()} AFTER {event} ON accounts_savedview "
        f"REFERENCING {rows} TABLE AS changed_rows FOR EACH STATEMENT "
        "EXECUTE FUNCTION kueueweb_audit_rows('SavedView', '');"
        for event, rows in (("INSERT", "NEW"), ("DELETE", "OLD"))
    ]
    + [
        "CREATE TRIGGER kueueweb_audit_update AFTER UPDATE ON accounts_savedview FOR EACH ROW "
        "EXECUTE FUNCTION kueueweb_audit_update('SavedView', '');"
    ]
)


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0019_leases'),
        ('scheduler', '0006_audit_triggers'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='SavedView',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('page', models.CharField(help_text='Of which list.', max_length=32)),
                ('name', models.CharField(max_length=60)),
                ('search', models.JSONField(help_text="{name: text}: the query of the page's address.")),
                ('generation', models.BigIntegerField(default=1, help_text='Goes up with each change.')),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['page', 'name', 'id'],
                'constraints': [models.UniqueConstraint(fields=('user', 'page', 'name'), name='saved_view_unique')],
            },
        ),
        migrations.RunSQL(TRIGGERS, migrations.RunSQL.noop),
    ]
