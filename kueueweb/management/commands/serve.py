"""`manage.py serve`: the web process."""

from argparse import ArgumentParser
from typing import Any

import uvicorn
from django.core.management.base import BaseCommand

from kueueweb.web.server import server_configuration


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Serve the dashboard, the REST API and the live stream over HTTP."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: %(default)s)")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on (default: %(default)s)")
        parser.add_argument(
            "--grace-seconds", type=int, default=10, help="for open requests at the end (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        uvicorn.Server(
            server_configuration(
                host=options["host"], port=options["port"], timeout_graceful_shutdown=options["grace_seconds"]
            )
        ).run()
