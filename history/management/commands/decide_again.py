"""`manage.py decide_again --at TIME`: prints the decisions that follow from a checkpoint, one JSON object a line.

The cycles are those that a new leader would have run at the moment of the checkpoint. Nothing is written.
"""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import datetime
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from accounts.models import Cluster
from foundation.exceptions import KueuewebError
from history.services.checkpoints.following_decisions import following_decisions
from history.services.checkpoints.past_rows import find_checkpoint


class Command(BaseCommand):
    """Decide again from a checkpoint."""

    help = "Print the decisions that follow from the last checkpoint at or before a moment."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default")
        parser.add_argument("--at", type=datetime.fromisoformat, required=True, help="RFC 3339")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the decisions, in their order."""
        at: datetime = options["at"]
        if at.tzinfo is None:
            raise CommandError(
                f"--at: Invalid value: {at.isoformat()}: must name its time zone, as in {at.isoformat()}Z"
            )
        try:
            cluster = Cluster.objects.get(name=options["cluster"])
            for decision in following_decisions(find_checkpoint(cluster, at)):
                self.stdout.write(orjson.dumps(decision).decode())
        except Cluster.DoesNotExist as error:
            raise CommandError(f"--cluster: Not found: {options['cluster']}") from error
        except KueuewebError as error:
            raise CommandError(error.message) from error
