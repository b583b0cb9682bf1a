"""`manage.py serve`: the web process."""

import logging
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import OperationalError

from accounts.services.group_roles import apply_group_roles, read_group_roles
from foundation.migrated import wait_until_migrated
from kueueweb.web.server import Server, server_configuration

_log = logging.getLogger(__name__)


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Serve the dashboard, the REST API and the live stream over HTTP."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
        parser.add_argument(
            "--grace-seconds", type=int, default=10, help="time for open requests at the end (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        _apply_group_roles()
        Server(
            server_configuration(
                host=options["host"], port=options["port"], timeout_graceful_shutdown=options["grace_seconds"]
            )
        ).run()


def _apply_group_roles() -> None:
    """A rule that was taken out of the settings ends now, not with the next login."""
    try:
        apply_group_roles(read_group_roles(settings.OIDC_GROUP_ROLES))
    except OperationalError as error:
        _log.warning("OIDC_GROUP_ROLES is applied with the next login: the database does not answer (%s)", error)
