"""`manage.py watch_cluster`: store the changes of a cluster as they happen."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from clusters.client import ClusterError
from clusters.connection import watching_client_for
from clusters.sync.watcher import Watcher
from foundation.garbage_collection import calm_the_collector
from foundation.migrated import wait_until_migrated
from foundation.outages import patiently


class Command(BaseCommand):
    """Runs until SIGINT or SIGTERM."""

    help = "Watch a Kubernetes cluster: its nodes, jobs, pods, and their limits."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument("--server", help="URL of the API server, in place of the cluster's own")
        parser.add_argument("--relist-seconds", type=float, default=60.0, help="interval between full lists")
        parser.add_argument("--once", action="store_true", help="list everything once, store it, and exit")

    def handle(self, *args: Any, **options: Any) -> None:
        wait_until_migrated()
        cluster = patiently(Cluster.objects.filter(name=options["cluster"]).first)
        if cluster is None:
            raise CommandError(f"There is no cluster {options['cluster']!r}.")
        try:
            client = watching_client_for(cluster, options["server"] or "")
            watcher = Watcher(cluster, client, options["relist_seconds"])
            if options["once"]:
                watcher.resync()
                return
        except ClusterError as error:
            raise CommandError(f"Cluster {cluster.name}: {error}") from error
        stopped = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stopped.set())
        self.stdout.write(f"watching {cluster.name} at {client.server}")
        self.stdout.flush()
        calm_the_collector()
        watcher.run(stopped)
