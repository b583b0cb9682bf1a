"""`manage.py demo_seed`: the demo's tables, queues and accounts. Running it again changes nothing."""

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import Cluster, Role, RoleBinding
from kueueweb import demo
from kueueweb.demo.jobs import TENANTS
from notifications.models import Event, NotificationRule
from scheduling.model.vocabulary import PlacementScope
from simulation.fleet import FLEETS, MIXED, SEVERAL, WEST

_QUEUES_OF_OTHER_DEVICES = {SEVERAL: ["accelerators.yaml", "racks.yaml"], MIXED: ["mixed.yaml", "racks.yaml"]}
_ADMIN: Final = "admin"
_RULES: Final[Mapping[bool, Mapping[Event, Mapping[str, int]]]] = {
    True: {Event.DEVICE_FAILED: {}, Event.DEVICES_IDLE: {"minutes": 5, "threshold": 10}},
    False: {Event.WORKLOAD_WAITS: {"minutes": 5}, Event.WORKLOAD_PREEMPTED: {}},
}
"""The notification rules of the administrator (True) and of tenants: events with the fields of their rules."""


class Command(BaseCommand):
    """Fills the database that DATABASE_URL names, unless a real cluster is already in it."""

    help = "Prepare a database for the demo: tables, the tenants' queues, and the accounts of the login page."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--fleet", choices=FLEETS, default=FLEETS[0], help="fleet that the queues are for (default: %(default)s)"
        )
        parser.add_argument("--west-url", default="", help="API server of a second cluster")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This command creates accounts with public passwords. Set DEMO=true to allow it.")
        call_command("migrate", verbosity=0, interactive=False)
        cluster, _ = Cluster.objects.get_or_create(
            name="default", defaults={"simulated": True, "placement": PlacementScope.ALL}
        )
        if not cluster.simulated:
            raise CommandError(
                "The cluster 'default' of this database does not belong to a demo and stays unchanged. Set "
                "DATABASE_URL to another database, or delete the demo's own data: make demo ARGS=--fresh."
            )
        self._set_telemetry(cluster, settings.KUBERNETES_API_URL)
        for name in ("configuration.yaml", *_QUEUES_OF_OTHER_DEVICES.get(options["fleet"], ())):
            self._apply(name, cluster)
        if options["west_url"]:
            self._make_west(cluster, options["west_url"])
        for account in settings.DEMO_ACCOUNTS:
            self._make_account(**account)
            if options["fleet"] in _QUEUES_OF_OTHER_DEVICES:  # the fleets with a story
                self._make_rules(cluster, account["username"])
        for tenant in TENANTS:
            user = User.objects.get(username=tenant.username)
            RoleBinding.objects.get_or_create(
                username=user.username, namespace=tenant.namespace, defaults={"role": Role.SUBMITTER}
            )

    def _apply(self, name: str, cluster: Cluster) -> None:
        call_command("apply", "-f", str(Path(demo.__file__).parent / name), cluster=cluster.name, verbosity=0)

    def _make_west(self, manager: Cluster, url: str) -> None:
        """Make the second cluster, and a queue of the first one whose jobs run there."""
        west, _ = Cluster.objects.get_or_create(
            name=WEST,
            defaults={
                "simulated": True,
                "placement": PlacementScope.ALL,
                "serves_kueue_objects": True,
                "accepts_workloads_from": [manager.name],
            },
        )
        Cluster.objects.filter(pk=west.pk).exclude(server_url=url).update(server_url=url)
        self._set_telemetry(west, url)
        self._apply("west.yaml", west)
        self._apply("overflow.yaml", manager)

    def _set_telemetry(self, cluster: Cluster, url: str) -> None:
        """Set the addresses of a simulated cluster's monitors, which change with each start."""
        urls = [f"{url.rstrip('/')}/metrics"] if url else []
        Cluster.objects.filter(pk=cluster.pk).exclude(telemetry_urls=urls).update(telemetry_urls=urls)

    def _make_rules(self, cluster: Cluster, username: str) -> None:
        """Make the notification rules of an account that has none, so that the story's events reach it."""
        user = User.objects.get(username=username)
        if not NotificationRule.objects.filter(user=user).exists():
            for event, fields in _RULES[username == _ADMIN].items():
                NotificationRule.objects.create(
                    user=user, cluster=cluster, event=event, created_at=timezone.now(), **fields
                )

    def _make_account(self, username: str, password: str) -> None:
        administrator = username == _ADMIN
        user, created = User.objects.get_or_create(
            username=username, defaults={"is_staff": administrator, "is_superuser": administrator}
        )
        if created:
            user.set_password(password)
            user.save(update_fields=["password"])
