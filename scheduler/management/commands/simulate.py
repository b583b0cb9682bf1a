"""`manage.py simulate INPUT --output OUTPUT`: run scenarios on the virtual cluster.

INPUT is a JSON list (gzip if its name ends in .gz) of `{"name", "scenario"}`. A scenario holds Kubernetes manifests
(`namespaces`, `resourceFlavors`, `cohorts`, `clusterQueues`, `localQueues`, `workloads`, `topologies`, `nodes`,
`admissionChecks`, `limitRanges`, `runtimeClasses`, `pods` without a workload), and `runtimeSeconds`,
`horizonSeconds`, `batchSeconds`, `fairSharing`, `admissionFairSharing`, `transformations`, `featureGates` (only
`TASBalancedPlacement` has an effect), `placement`. OUTPUT gets a list of `{"name", "result"}`: the cycles
that decided something, the times at which workloads finished, the remaining workloads, and all usage.

With `cycles` a scenario runs that many cycles at time 0 only; `firstCycle` then has all decisions of the first one,
including evictions and replaced nodes, and why workloads wait.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from foundation.recorded_scenarios import read_scenarios
from scheduling.simulator.simulator import simulate


class Command(BaseCommand):
    """Simulate recorded or written scenarios."""

    help = "Run scenarios of queues and workloads on a virtual cluster and write the scheduler's decisions."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("input", type=Path, help="scenarios, JSON, gzip if the name ends in .gz")
        parser.add_argument("--output", type=Path, required=True, help="where to write the results")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run every scenario of the file. A malformed one ends the command with its name."""
        results = []
        for case in read_scenarios(options["input"]):
            try:
                results.append({"name": case["name"], "result": simulate(case["scenario"])})
            except (AttributeError, KeyError, TypeError, ValueError) as error:
                raise CommandError(f"scenario {case.get('name', '?')}: {type(error).__name__}: {error}") from error
        options["output"].write_text(json.dumps(results, indent=1) + "\n")
