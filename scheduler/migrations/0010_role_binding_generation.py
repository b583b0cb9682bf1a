"""A role binding's generation goes up with each edit: its ETag is made of it."""

from django.db import migrations

TRIGGER = """
CREATE TRIGGER kueueweb_raise_generation BEFORE UPDATE ON accounts_rolebinding FOR EACH ROW
WHEN (NOT kueueweb_unnoticed()) EXECUTE FUNCTION kueueweb_raise_generation();
"""


class Migration(migrations.Migration):
    dependencies = [("accounts", "0010_role_bindings"), ("scheduler", "0009_provisioning_triggers")]

    operations = [
        migrations.RunSQL(TRIGGER, "DROP TRIGGER kueueweb_raise_generation ON accounts_rolebinding;"),
    ]
