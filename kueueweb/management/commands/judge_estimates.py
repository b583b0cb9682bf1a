"""`manage.py judge-estimates TRACE --gpus N --seed N [--declared]`: how well starts are foretold on a trace.

TRACE is a pod list in the format of Alibaba's openb trace. docs/scheduling.md states the protocol and its figures.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from kueueweb.openb_trace import UnreadableTrace, declare_times, read_trace
from scheduling.estimates.trace_replay import judged_replay


class Command(BaseCommand):
    """Judge estimates of starts, and two rivals, on a trace."""

    help = "Replay a trace, estimate each start from the information at that time, and print the accuracy as JSON."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("trace", type=Path, help="pod list of the openb trace, CSV")
        parser.add_argument("--gpus", type=int, required=True, help="total number of devices; a multiple of eight")
        parser.add_argument("--seed", type=int, default=1, help="seed of the draws and of the declared run times")
        parser.add_argument("--declared", action="store_true", help="pods declare 1 to 3 times their run time")
        parser.add_argument("--first-day", type=int, default=100, help="of creation (default: 100)")
        parser.add_argument("--last-day", type=int, default=149, help="of creation, included (default: 149)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one JSON object."""
        if options["seed"] < 0:
            raise CommandError(f"seed: Invalid value: {options['seed']}: must not be negative")
        try:
            with options["trace"].open(encoding="utf-8", newline="") as lines:
                pods = read_trace(lines, options["first_day"], options["last_day"])
            if options["declared"]:
                pods = declare_times(pods, options["seed"])
            found = judged_replay(pods, options["gpus"], options["seed"])
        except (UnreadableTrace, OSError, UnicodeDecodeError, ValueError) as error:
            raise CommandError(str(error)) from error
        self.stdout.write(json.dumps({**found, "declared": options["declared"]}, indent=2))
