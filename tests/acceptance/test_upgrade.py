"""What an earlier version left in the database is there after the upgrade, and means what it meant."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from accounts.models import Cluster, ClusterMode
from queues.models import ClusterQueue
from tests.databases import new_database

pytestmark = pytest.mark.django_db(transaction=True)

ACCOUNTS = [{"username": name, "password": name} for name in ("admin", "researcher", "operator")]
BEFORE_MODES = {
    "accounts": "0006_edits_and_spellings",
    "queues": "0009_pod_status",
    "gpus": "0002_device_words",
    "scheduler": "0008_generations",
    "history": "0002_usage_triggers",
}
"""The last migration of each app in the version in which `simulated` was a mode."""


def test_simulated_clusters_stay_simulated() -> None:
    """A demo goes on with its data, and a real cluster does not become a demo's."""
    with new_database("upgraded"):
        for app in ("contenttypes", "auth", "sessions"):
            call_command("migrate", app, verbosity=0)
        for app, migration in BEFORE_MODES.items():
            call_command("migrate", app, migration, verbosity=0)
        with connection.cursor() as cursor:
            for name, mode in (("default", "simulated"), ("east", "schedule"), ("west", "observe")):
                cursor.execute(
                    "INSERT INTO accounts_cluster (name, mode, server_url, configuration, configuration_applied_set,"
                    " configuration_generation, device_plugin_configuration, telemetry_urls, created_at)"
                    " VALUES (%s, %s, '', '{}', '', 1, '{}', '[]', now())",
                    [name, mode],
                )
        with override_settings(DEMO=True, DEMO_ACCOUNTS=ACCOUNTS):
            call_command("demo_seed")
        assert list(Cluster.objects.values_list("name", "mode", "simulated")) == [
            ("default", ClusterMode.SCHEDULE, True),
            ("east", ClusterMode.SCHEDULE, False),
            ("west", ClusterMode.OBSERVE, False),
        ]
        assert ClusterQueue.objects.filter(cluster__name="default").exists()
