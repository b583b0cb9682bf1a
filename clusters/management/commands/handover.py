"""`manage.py handover`: a cluster from us to its Kueue."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from accounts.services.cluster_settings import cluster_named
from clusters.api_errors import ClusterError
from clusters.connection import client_for, writing_client_for
from clusters.takeover.handover import Handover
from clusters.takeover.report import Refused
from foundation.exceptions import KueuewebError


class Command(BaseCommand):
    """Running it again completes an interrupted run, and changes nothing otherwise."""

    help = (
        "Hand a cluster over to Kueue. Running jobs are not touched; if one would be, the handover is "
        "refused and the jobs are named."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default", help="name of the cluster (default: %(default)s)")
        parser.add_argument(
            "--dry-run", action="store_true", help="list everything that would be touched, but touch nothing"
        )
        parser.add_argument(
            "--wait", type=float, default=120.0, help="seconds to wait until all Workloads are written (120)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        refusals: list[str] = []
        try:
            cluster = cluster_named(options["cluster"])
            handover = Handover(cluster, client_for(cluster, read_only=True), writing_client_for(cluster))
            if options["dry_run"]:
                report, refusals = handover.plan(), handover.refusals()
            else:
                report = handover.run(options["wait"])
        except (ClusterError, KueuewebError) as error:
            raise CommandError(f"Cluster {options['cluster']}: {error}") from error
        except Refused as refused:
            raise CommandError(f"Cluster {options['cluster']} stays with kueueweb:\n{refused}") from refused
        self.stdout.write("\n".join(report.lines()))
        if refusals:
            self.stdout.write(f"The handover would be refused: {len(refusals)}")
            self.stdout.write("\n".join(f"  {each}" for each in refusals))
        done = "nothing was touched" if options["dry_run"] else f"mode {cluster.mode}"
        self.stdout.write(f"{cluster.name}: {done}")
