from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

_GATE = "PlaceAllPods"


def keep_what_was_placed(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """A cluster that is known already goes on as its gate said: all pods were placed unless it was false."""
    for cluster in apps.get_model("accounts", "Cluster").objects.all():
        gates = dict(cluster.configuration.get("featureGates") or {})
        cluster.placement = "all" if gates.pop(_GATE, True) else "devices"
        if _GATE in (cluster.configuration.get("featureGates") or {}):
            cluster.configuration = {**cluster.configuration, "featureGates": gates}
        cluster.save(update_fields=["placement", "configuration"])


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0020_saved_views'),
    ]

    operations = [
        migrations.AddField(
            model_name='cluster',
            name='placement',
            field=models.CharField(choices=[('devices', 'devices'), ('topology', 'topology'), ('all', 'all')], db_default='devices', default='devices', help_text="Which pods we place on nodes: those of workloads with devices, also those in flavors with a topology, or all. The cluster's own scheduler places the others.", max_length=16),
        ),
        migrations.RunPython(keep_what_was_placed, migrations.RunPython.noop),
    ]
