"""A flavor's generation goes up with each edit, as that of queues and cohorts does: its ETag is made of it."""

from django.db import migrations

TRIGGER = """
CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON queues_resourceflavor FOR EACH ROW
WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();
"""


class Migration(migrations.Migration):
    dependencies = [("queues", "0001_initial"), ("scheduler", "0003_change_tenant")]

    operations = [
        migrations.RunSQL(TRIGGER, "DROP TRIGGER kueueweb_raise_generation ON queues_resourceflavor;"),
    ]
