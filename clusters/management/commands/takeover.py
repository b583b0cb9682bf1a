"""`manage.py takeover`: a cluster from its Kueue to us."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services.cluster_settings import cluster_named
from clusters.api_errors import ClusterError
from clusters.connection import client_for, writing_client_for
from clusters.takeover.report import Refused
from clusters.takeover.takeover import Takeover
from foundation.exceptions import KueuewebError


class Command(BaseCommand):
    """Running it again completes an interrupted run, and changes nothing otherwise."""

    help = "Take a cluster over from Kueue. Running jobs are not touched. docs/switching.md describes the procedure."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument(
            "--dry-run", action="store_true", help="list everything that would be touched, but touch nothing"
        )
        parser.add_argument(
            "--wait", type=float, default=300.0, help="seconds to wait for Kueue's lease (default: 300)"
        )
        parser.add_argument(
            "--take-lease",
            action="store_true",
            help="take the lease from a leading Kueue, which then exits and restarts",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            cluster = cluster_named(options["cluster"])
            takeover = Takeover(cluster, client_for(cluster, read_only=True), writing_client_for(cluster))
            if options["dry_run"]:
                report = takeover.plan()
            else:
                report = takeover.run(options["wait"], take_lease=options["take_lease"])
        except (ClusterError, KueuewebError) as error:
            raise CommandError(f"Cluster {options['cluster']}: {error}") from error
        except Refused as refused:
            raise CommandError(f"Cluster {options['cluster']} stays with Kueue:\n{refused}") from refused
        self.stdout.write("\n".join(report.lines()))
        done = "nothing was touched" if options["dry_run"] else f"mode {cluster.mode}"
        self.stdout.write(f"{cluster.name}: {done}")
