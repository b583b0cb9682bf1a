"""`manage.py lifecycle INPUT --output OUTPUT`: play lives of single workloads as Kueue's controllers would.

INPUT is a JSON list (gzip if its name ends in .gz) of `{"name", "input"}`. An input holds a Configuration of Kueue
(`configuration`, `featureGates`), manifests (`namespaces`, `resourceFlavors`, `admissionChecks`, `clusterQueues`,
`localQueues`, `workload`) and `steps`, the events of the workload's life in order. OUTPUT gets a list of `{"name",
"result"}` with a snapshot of the workload before the steps and after each. The rules are the product's, with the
gate StrictKueueLifecycle on (docs/scheduling.md).
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from accounts.kinds.feature_gates import STRICT_KUEUE_LIFECYCLE
from foundation.recorded_scenarios import read_scenarios
from scheduler.store.configuration import read_configuration
from scheduling.lifecycle.retention import read_retention
from scheduling.simulator.life_result import play_life

_MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)


class Command(BaseCommand):
    """Play recorded or written lives."""

    help = "Play the lives of single workloads outside the scheduling cycle and write snapshots of them."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("input", type=Path, help="lives, JSON, gzip if the name ends in .gz")
        parser.add_argument("--output", type=Path, required=True, help="where to write the results")

    def handle(self, *args: Any, **options: Any) -> None:
        """Play every life of the file. A malformed one ends the command with its name."""
        results = []
        for case in read_scenarios(options["input"]):
            try:
                results.append({"name": case["name"], "result": play(case["input"])})
            except _MALFORMED as error:
                raise CommandError(f"life {case.get('name', '?')}: {type(error).__name__}: {error}") from error
        options["output"].write_text(json.dumps(results, indent=1) + "\n")


def play(scenario: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the snapshots of one life."""
    manifest = dict(scenario.get("configuration") or {})
    gates = {
        **(manifest.get("featureGates") or {}),
        **(scenario.get("featureGates") or {}),
        STRICT_KUEUE_LIFECYCLE: True,
    }
    manifest["featureGates"] = gates
    return play_life(scenario, read_configuration(manifest), read_retention(manifest))
