"""`manage.py integrate INPUT --output OUTPUT`: runs recorded scenarios of jobs of any kind.

INPUT is a JSON list (gzip if its name ends in .gz) of `{"id", "kind", "input"}`: a job, the cluster that it is
submitted to, and the events that follow. OUTPUT gets a list of `{"id", "result"}`: the job after the webhooks, its pod
sets, its workload, and both after every step.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand

from clusters.jobs.scenario import integrate
from foundation.recorded_scenarios import read_scenarios


class Command(BaseCommand):
    help = "Run job scenarios through the webhooks and controllers of their kinds, and write the results."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the input and output files."""
        parser.add_argument("input", type=Path, help="scenarios, JSON, gzip if the name ends in .gz")
        parser.add_argument("--output", type=Path, required=True, help="where to write the results")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every scenario of the file."""
        results = [{"id": case["id"], "result": integrate(case["input"])} for case in read_scenarios(options["input"])]
        options["output"].write_text(json.dumps(results) + "\n")
