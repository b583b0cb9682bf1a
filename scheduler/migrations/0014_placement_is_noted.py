"""The scheduler reads a cluster again when its placement changes, as when its Configuration does."""

from django.db import migrations

TRIGGER = """
DROP TRIGGER kueueweb_note_update ON accounts_cluster;
CREATE TRIGGER kueueweb_note_update BEFORE UPDATE ON accounts_cluster FOR EACH ROW WHEN (
    (OLD.configuration, OLD.mode, OLD.device_plugin_configuration, OLD.placement) IS DISTINCT FROM
    (NEW.configuration, NEW.mode, NEW.device_plugin_configuration, NEW.placement)
) EXECUTE FUNCTION kueueweb_note_cluster();
"""


class Migration(migrations.Migration):
    dependencies = [("scheduler", "0013_device_objects"), ("accounts", "0021_placement")]

    operations = [migrations.RunSQL(TRIGGER, migrations.RunSQL.noop)]
