"""`manage.py run`: several roles in one process."""

from __future__ import annotations

import threading
from argparse import ArgumentParser, ArgumentTypeError
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clusters.management.commands.watch_cluster import watcher_of
from foundation.heartbeat import Role
from foundation.migrated import wait_until_migrated
from kueueweb.celery import app
from kueueweb.process_roles import ROLES, run_roles


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM, or until a role fails."""

    help = (
        "Run several roles in one process, for the demo and small clusters: scheduler, push, beat and the watcher of "
        "one cluster. Of two such processes with the role scheduler, one stands by with all its roles."
    )
    requires_system_checks = []  # `migrate` and `serve` make them; here they would load every view

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--roles", type=_roles, default=list(ROLES), help=f"separated by commas (default: {','.join(ROLES)})"
        )
        parser.add_argument("--cluster", default="default", help="name of the watched cluster (default: %(default)s)")

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        cluster, roles = options["cluster"], options["roles"]
        watcher = watcher_of(cluster) if Role.WATCHER in roles else None

        def watch(stopped: threading.Event) -> None:
            if watcher is not None:
                watcher.run(stopped)

        self.stdout.write(f"running {', '.join(roles)} for {cluster}")
        self.stdout.flush()
        failed = run_roles(app, roles, cluster, watch)
        if failed is not None:
            raise CommandError(f"The role {failed} failed.")


def _roles(text: str) -> list[Role]:
    names = [name for name in text.split(",") if name]
    unknown = [name for name in names if name not in ROLES]
    if unknown or not names:
        wrong = f"Unsupported value {unknown[0]!r}" if unknown else "Required value"
        raise ArgumentTypeError(f"{wrong}: supported values: {', '.join(ROLES)}, separated by commas")
    return [role for role in ROLES if role in names]
