"""`manage.py demo_past`: ten days of history for the demo's pages and reports. Running it again changes nothing."""

import os
import time
from argparse import ArgumentParser
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import Cluster
from gpus.models import Node
from kueueweb.demo.past import make_past
from simulation.fleet import FLEETS, fleet

_NODES_SECONDS: Final = 60.0
_NICENESS: Final = 10


class Command(BaseCommand):
    """Waits for the cluster's nodes, then writes."""

    help = "Write ten days of history, made by the scheduler's own cycles on a virtual clock."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--fleet", choices=FLEETS, default=FLEETS[0], help="fleet that the jobs are for (default: %(default)s)"
        )
        parser.add_argument("--time-scale", type=float, default=10.0, help="how fast jobs run (default: %(default)s)")
        parser.add_argument("--seed", type=int, default=None, help="seed, to repeat the same jobs")

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.DEMO:
            raise CommandError("This command writes an invented history. Set DEMO=true to allow it.")
        cluster = Cluster.objects.filter(name="default", simulated=True).first()
        if cluster is None:
            raise CommandError("The cluster 'default' of this database does not belong to a demo.")
        self._wait_for_nodes(cluster, len(fleet(options["fleet"])))
        os.nice(_NICENESS)  # the demo itself comes first
        began = time.monotonic()
        count = make_past(cluster, options["fleet"], options["time_scale"], options["seed"], timezone.now())
        took = f"{count} workloads of the past, in {time.monotonic() - began:.1f} s"
        self.stdout.write(took if count else "The past was written before.")

    def _wait_for_nodes(self, cluster: Cluster, wanted: int) -> None:
        deadline = time.monotonic() + _NODES_SECONDS
        while Node.objects.filter(cluster=cluster).count() < wanted:
            if time.monotonic() > deadline:
                raise CommandError(f"The cluster's {wanted} nodes are not known after {_NODES_SECONDS:.0f} s.")
            time.sleep(0.5)
