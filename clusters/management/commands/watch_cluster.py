"""`manage.py watch_cluster`: store the changes of a cluster as they happen."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.connection import watching_client_for
from clusters.sync.watcher import RELIST_SECONDS, Watcher
from foundation.garbage_collection import calm_the_collector
from foundation.migrated import wait_until_migrated
from foundation.outages import patiently


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Watch a Kubernetes cluster: its nodes, jobs, pods, and their limits."
    requires_system_checks = []  # `migrate` and `serve` make them; here they would load every view

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument("--server", help="URL of the API server, in place of the cluster's own")
        parser.add_argument("--relist-seconds", type=float, default=RELIST_SECONDS, help="interval between full lists")
        parser.add_argument("--once", action="store_true", help="list everything once, store it, and exit")

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        watcher = watcher_of(options["cluster"], options["server"] or "", options["relist_seconds"])
        if options["once"]:
            with _refusals(options["cluster"]):
                watcher.resync()
            return
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        self.stdout.write(f"watching {options['cluster']} at {watcher.server}")
        self.stdout.flush()
        calm_the_collector()
        watcher.run(stopped)


def watcher_of(name: str, server: str = "", relist_seconds: float = RELIST_SECONDS) -> Watcher:
    """Return the watcher of the named cluster. Raises CommandError if the cluster does not exist or cannot be
    reached."""
    cluster = patiently(Cluster.objects.filter(name=name).first)
    if cluster is None:
        raise CommandError(f"There is no cluster {name!r}.")
    with _refusals(name):
        return Watcher(cluster, watching_client_for(cluster, server), relist_seconds)


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except ClusterError as error:
        raise CommandError(f"Cluster {name}: {error}") from error
