"""manage.py audit_state: audits whether quota, devices, pods and pushed decisions agree."""

import time
from argparse import ArgumentParser
from datetime import UTC, datetime
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clusters.api_errors import ClusterError
from clusters.audit.auditor import audit, audited_clusters
from clusters.connection import client_for


class Command(BaseCommand):
    """Audits twice, and reports violations that both audits found; repairs nothing."""

    help = "List the disagreements between quota, devices, pods and the cluster; exit code 1 if there are any."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Time to wait for changes in progress."""
        parser.add_argument(
            "--seconds", type=float, default=5.0, help="time between the two audits (default: %(default)s)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        wrong = 0
        for cluster in audited_clusters():
            try:
                client = client_for(cluster)
                before = {(each.check, each.subject) for each in audit(cluster, client, datetime.now(UTC))}
                time.sleep(options["seconds"] if before else 0)
                found = [
                    each
                    for each in (audit(cluster, client, datetime.now(UTC)) if before else ())
                    if (each.check, each.subject) in before
                ]
            except ClusterError as error:
                raise CommandError(f"The pods of cluster {cluster.name} can't be listed: {error}") from error
            for each in found:
                self.stdout.write(f"{cluster.name}: {each.check}: {each.subject}: {each.message}")
            self.stdout.write(f"{cluster.name}: {len(found)} violations")
            wrong += len(found)
        if wrong:
            raise SystemExit(1)
