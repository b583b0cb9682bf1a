"""`manage.py policies FAMILY INPUT --output OUTPUT`: answer scenarios of other schedulers by the product's rules.

INPUT is a JSON list (gzip if its name ends in .gz) of `{"name", "input"}`. OUTPUT gets a list of `{"name", "result"}`.
The shapes are those of the recordings in `tests/conformance/others`. The answers come from `scheduling/policies`, which
decides the same way where a queue or a cohort asks for it (docs/scheduling.md), and for Volcano's
Jobs from `clusters/jobs/volcano`.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError

from foundation.recorded_scenarios import read_scenarios
from kueueweb.policies import kai, slurm, volcano, volcano_jobs, yunikorn

Answer = Callable[[Mapping[str, Any]], Any]

FAMILIES: Final[dict[str, Answer]] = {
    "kai-fairshare": kai.fair_share_of,
    "kai-fairshare-tree": kai.fair_share_of,
    "slurm-fairtree": slurm.fair_tree_of,
    "slurm-priority": slurm.priority_of,
    "volcano-capacity-flat": volcano.capacity_of,
    "volcano-capacity-tree": volcano.capacity_tree_of,
    "volcano-job-dependson": volcano_jobs.life_of,
    "volcano-job-lifecycle": volcano_jobs.life_of,
    "volcano-job-podset": volcano_jobs.pods_of,
    "volcano-proportion": volcano.proportion_of,
    "yunikorn-allocate": yunikorn.headroom_of,
}
_MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError)


class Command(BaseCommand):
    """Answer recorded or written scenarios."""

    help = "Answer scenarios of other schedulers (such as Slurm) by the rules that queues can select."
    requires_system_checks: list[str] = []  # decides on files only

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("family", choices=sorted(FAMILIES))
        parser.add_argument("input", type=Path, help="scenarios, JSON, gzip if the name ends in .gz")
        parser.add_argument("--output", type=Path, required=True, help="where to write the results")

    def handle(self, *args: Any, **options: Any) -> None:
        """Answer every scenario of the file. A malformed one ends the command with its name."""
        answer, results = FAMILIES[options["family"]], []
        for case in read_scenarios(options["input"]):
            try:
                results.append({"name": case["name"], "result": answer(case["input"])})
            except _MALFORMED as error:
                raise CommandError(f"scenario {case.get('name', '?')}: {type(error).__name__}: {error}") from error
        options["output"].write_text(json.dumps(results, indent=1) + "\n")
