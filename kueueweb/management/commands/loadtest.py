"""`manage.py loadtest FILE`: a shape of Kueue's scalability tests through the whole stack."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.loadtest.client import Client, RequestRefused
from kueueweb.loadtest.processor import Clock
from kueueweb.loadtest.report import lines, processor_lines
from kueueweb.loadtest.runner import Runner, StalledRun
from kueueweb.loadtest.shape import InvalidShape, read_shape
from kueueweb.loadtest.stack import private_stack


class Command(BaseCommand):
    """Run the shape against a separate stack, or against the server that `--server` names."""

    help = "Run a shape of Kueue's scalability tests through REST, database and scheduler, and print the figures."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a shape, such as tests/load/baseline.json")
        parser.add_argument("--server", help="a running kueueweb (default: start one for this run)")
        parser.add_argument("--username", default="admin", help="name of a cluster admin (default: %(default)s)")
        parser.add_argument("--password", default=os.environ.get("KUEUEWEB_PASSWORD", ""), help="or KUEUEWEB_PASSWORD")
        parser.add_argument(
            "--patience", type=float, default=60.0, help="give up after this many seconds without progress"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            shape = read_shape(options["file"])
            with self._server(options) as (server, username, password, clock):
                runner = Runner(
                    Client(server, username, password), shape, self._say, patience_seconds=options["patience"]
                )
                runner.prepare()
                self._say(f"{shape.workload_count} workloads in {len(shape.cluster_queues)} ClusterQueues at {server}")
                before = clock()
                run = runner.run()
                taken = {name: seconds - before.get(name, 0.0) for name, seconds in clock().items()}
        except (OSError, json.JSONDecodeError, InvalidShape) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except (RequestRefused, StalledRun, ServerUnavailable) as error:
            raise CommandError(str(error)) from error
        for line in lines(shape, run):
            self._say(line)
        for line in processor_lines(shape, taken):
            self._say(line)

    @contextlib.contextmanager
    def _server(self, options: dict[str, Any]) -> Iterator[tuple[str, str, str, Clock]]:
        if options["server"]:
            yield options["server"], options["username"], options["password"], dict  # its processes may run elsewhere
            return
        password = secrets.token_urlsafe(32)
        with (
            tempfile.TemporaryDirectory(prefix="kueueweb-") as folder,
            private_stack(Path(folder), settings.BASE_DIR, password, self._say) as stack,
        ):
            yield stack.server, "admin", password, stack.processor_seconds

    def _say(self, text: str) -> None:
        self.stdout.write(text)
        self.stdout.flush()
