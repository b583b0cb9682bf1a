"""`manage.py decide_again --at TIME`: prints the decisions that follow from a moment, one JSON object a line.

A new leader would have run these cycles at that moment. Nothing is written.
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

import orjson
from django.core.management.base import BaseCommand, CommandError

from accounts.api.scope import moment_of
from accounts.models import Cluster
from foundation.exceptions import KueuewebError
from history.services.checkpoints.following_decisions import following_decisions
from history.services.checkpoints.past_moments import find_moment


class Command(BaseCommand):
    """Decide again from a moment."""

    help = "Print the decisions that follow from a moment, or from the last checkpoint before it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", default="default")
        parser.add_argument("--at", required=True, help="RFC 3339")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the decisions, in their order."""
        at = moment_of(options["at"])
        if at is None:
            raise CommandError(
                f"--at: Invalid value: {options['at']}: must be an RFC 3339 time with its zone, such as "
                "2026-01-05T09:00:00Z"
            )
        try:
            cluster = Cluster.objects.get(name=options["cluster"])
            for decision in following_decisions(find_moment(cluster, at)):
                self.stdout.write(orjson.dumps(decision).decode())
        except Cluster.DoesNotExist as error:
            raise CommandError(f"--cluster: Not found: {options['cluster']}") from error
        except KueuewebError as error:
            raise CommandError(error.message) from error
