"""`manage.py loadtest FILE`: a shape of Kueue's scalability tests through the whole stack, or through a cluster."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import tempfile
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from clusters.api_errors import ClusterError
from clusters.client_credentials import connect
from kueueweb.embedded.errors import ServerUnavailable
from kueueweb.loadtest.client import Client, RequestRefused
from kueueweb.loadtest.cluster_run import prepared, queues_client, run_in_cluster, unpaced
from kueueweb.loadtest.job_report import job_lines
from kueueweb.loadtest.processor import Clock, seconds_taken
from kueueweb.loadtest.report import lines, processor_lines
from kueueweb.loadtest.runner import Runner, StalledRun
from kueueweb.loadtest.shape import InvalidShape, Shape, read_shape
from kueueweb.loadtest.stack import private_stack


class Command(BaseCommand):
    """Run the shape against a separate stack, the server that `--server` names, or the cluster of `--cluster`."""

    help = (
        "Run a shape of Kueue's scalability tests through REST, database and scheduler, or as Jobs through the API "
        "server of a cluster, and print the figures."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path, help="a shape, such as tests/load/baseline.json")
        parser.add_argument("--server", help="a running kueueweb (default: start one for this run)")
        parser.add_argument("--username", default="admin", help="name of a cluster admin (default: %(default)s)")
        parser.add_argument("--password", default=os.environ.get("KUEUEWEB_PASSWORD", ""), help="or KUEUEWEB_PASSWORD")
        parser.add_argument(
            "--patience", type=float, default=60.0, help="give up after this many seconds without progress"
        )
        parser.add_argument(
            "--cluster",
            nargs="?",
            const="",
            metavar="URL",
            help="make Jobs in the cluster at this URL, or in that of the kubeconfig; with --server, the queues go to "
            "kueueweb, else into the cluster as Kueue's objects",
        )
        cluster = parser.add_argument_group("with --cluster")
        cluster.add_argument("--image", default="busybox:1.37", help="the image of the pods (default: %(default)s)")
        cluster.add_argument(
            "--nodes", type=int, default=0, help="nodes to make for kwok (default: %(default)s, use the cluster's own)"
        )
        cluster.add_argument(
            "--until", choices=("started", "ended"), default="ended", help="the last event of each Job (%(default)s)"
        )
        cluster.add_argument(
            "--connections", type=int, default=8, help="requests under way at most (default: %(default)s)"
        )
        cluster.add_argument(
            "--process",
            action="append",
            default=[],
            type=_process,
            metavar="NAME=PID",
            help="a process of this machine whose processor time is reported; may be repeated",
        )
        cluster.add_argument("--keep", action="store_true", help="leave the Jobs and queues in the cluster")
        cluster.add_argument("--json", action="store_true", help="print the figures as one JSON object at the end")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            shape = read_shape(options["file"])
            if options["cluster"] is not None:
                self._run_in_cluster(shape, options)
            else:
                self._run_over_rest(shape, options)
        except (OSError, json.JSONDecodeError, InvalidShape) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except (RequestRefused, StalledRun, ServerUnavailable, ClusterError) as error:
            raise CommandError(str(error)) from error

    def _run_over_rest(self, shape: Shape, options: dict[str, Any]) -> None:
        with self._server(options) as (server, username, password, clock):
            connect_rest = partial(Client, server, username, password)
            runner = Runner(connect_rest, shape, self._say, patience_seconds=options["patience"])
            runner.prepare()
            self._say(f"{shape.workload_count} workloads in {len(shape.cluster_queues)} ClusterQueues at {server}")
            before = clock()
            run = runner.run()
            taken = {name: seconds - before.get(name, 0.0) for name, seconds in clock().items()}
        for line in lines(shape, run):
            self._say(line)
        for line in processor_lines(shape, taken):
            self._say(line)

    def _run_in_cluster(self, shape: Shape, options: dict[str, Any]) -> None:
        cluster = connect(options["cluster"], unpaced())
        queues = cluster
        if options["server"]:
            queues = queues_client(options["server"], options["username"], options["password"])
        with prepared(cluster, queues, shape, node_count=options["nodes"], keep=options["keep"]):
            self._say(f"{shape.workload_count} Jobs in {len(shape.cluster_queues)} ClusterQueues at {cluster.server}")
            run, found = run_in_cluster(
                cluster,
                shape,
                self._say,
                partial(_seconds_of, dict(options["process"])),
                image=options["image"],
                connections=options["connections"],
                until_started=options["until"] == "started",
                patience_seconds=options["patience"],
            )
        for line in job_lines(shape, run, found):
            self._say(line)
        if options["json"]:
            self._say(json.dumps(found.as_json()))

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


def _seconds_of(processes: dict[str, int]) -> dict[str, float]:
    return {name: seconds_taken(pid) for name, pid in processes.items()}


def _process(text: str) -> tuple[str, int]:
    name, _, pid = text.rpartition("=")
    if not name or not pid.isdigit():
        raise ArgumentTypeError(f"{text!r}: Invalid value: must be NAME=PID, such as kueue=4711")
    return name, int(pid)
