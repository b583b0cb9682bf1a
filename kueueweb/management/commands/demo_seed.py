"""`manage.py demo_seed`: the demo's tables, queues and accounts. Running it again changes nothing."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster, Role, RoleBinding
from kueueweb import demo
from kueueweb.demo.jobs import TENANTS
from scheduling.model.vocabulary import PlacementScope
from simulation.fleet import FLEETS, MIXED, SEVERAL

_QUEUES_OF_OTHER_DEVICES = {SEVERAL: ["accelerators.yaml"], MIXED: ["mixed.yaml"]}


class Command(BaseCommand):
    """Fills the database that DATABASE_URL names, unless a real cluster is already in it."""

    help = "Prepare a database for the demo: tables, the tenants' queues, and the accounts of the login page."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--fleet", choices=FLEETS, default=FLEETS[0], help="fleet that the queues are for (default: %(default)s)"
        )

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
        self._set_telemetry(cluster)
        for name in ("configuration.yaml", *_QUEUES_OF_OTHER_DEVICES.get(options["fleet"], ())):
            call_command("apply", "-f", str(Path(demo.__file__).parent / name), verbosity=0)
        for account in settings.DEMO_ACCOUNTS:
            self._make_account(**account)
        for tenant in TENANTS:
            user = User.objects.get(username=tenant.username)
            RoleBinding.objects.get_or_create(
                username=user.username, namespace=tenant.namespace, defaults={"role": Role.SUBMITTER}
            )

    def _set_telemetry(self, cluster: Cluster) -> None:
        """Set the addresses of the simulated cluster's monitors, which change with each start."""
        urls = [f"{settings.KUBERNETES_API_URL.rstrip('/')}/metrics"] if settings.KUBERNETES_API_URL else []
        Cluster.objects.filter(pk=cluster.pk).exclude(telemetry_urls=urls).update(telemetry_urls=urls)

    def _make_account(self, username: str, password: str) -> None:
        administrator = username == "admin"
        user, created = User.objects.get_or_create(
            username=username, defaults={"is_staff": administrator, "is_superuser": administrator}
        )
        if created:
            user.set_password(password)
            user.save(update_fields=["password"])
