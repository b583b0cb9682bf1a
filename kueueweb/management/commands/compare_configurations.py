"""`manage.py compare-configurations TRACE FIRST SECOND --output PAGE`: runs a trace through two configurations.

TRACE is a pod list in the format of the openb trace, the output of `sacct --parsable2`, or `records`: the use that this
installation recorded. FIRST and SECOND are manifests (YAML). The page is one file of HTML, with the figures as JSON in
it; a name that ends in .json gets only these. docs/scheduling.md describes the figures.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from accounts.models import Cluster
from foundation.exceptions import ManifestErrors
from kueueweb.openb_trace import UnreadableTrace
from kueueweb.traces.compared_configuration import SETTINGS, add_nodes, read_configuration_file, read_nodes
from kueueweb.traces.comparison_page import comparison_json, comparison_page
from kueueweb.traces.recorded_jobs import recorded_jobs
from kueueweb.traces.trace_files import read_jobs
from scheduling.model.node import Node
from scheduling.simulator.trace_job import TraceJob
from scheduling.simulator.trace_run import TraceFigures, run_trace

RECORDS: Final = "records"
_SUFFIX: Final = ".json"


class Command(BaseCommand):
    """Compare two configurations on one trace."""

    help = "Run a trace through two configurations, and write waits, use, fairness, fragmentation and preemptions."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("trace", help="pod list of openb, output of sacct --parsable2, or: records")
        parser.add_argument("first", type=Path, help="manifests of the first configuration")
        parser.add_argument("second", type=Path, help="manifests of the second configuration")
        parser.add_argument(
            "--output", type=Path, required=True, help="the page to write (.html), or the figures (.json)"
        )
        parser.add_argument("--nodes", type=Path, help="openb's node list: nodes with devices for both")
        parser.add_argument("--cluster", default="default", help="whose records (default: default)")
        parser.add_argument("--days", type=int, default=7, help="of how many past days (default: 7)")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write one file, and print its totals."""
        try:
            jobs = self._jobs(options)
            nodes = read_nodes(_lines(options["nodes"])) if options["nodes"] else []
            files = [options["first"], options["second"]]
            found = [_run(file, jobs, nodes) for file in files]
        except ManifestErrors as error:
            raise CommandError("\n".join(str(each) for each in error.errors)) from error
        except (UnreadableTrace, OSError, UnicodeDecodeError, KeyError, ValueError) as error:
            raise CommandError(str(error)) from error
        names = [file.stem for file in files]
        output: Path = options["output"]
        if output.suffix == _SUFFIX:
            output.write_text(json.dumps(comparison_json(names, found), indent=1) + "\n", encoding="utf-8")
        else:
            output.write_text(comparison_page(f"{names[0]} and {names[1]}", names, found), encoding="utf-8")
        self.stdout.write(f"{found[0].jobs} jobs; {output}")

    def _jobs(self, options: dict[str, Any]) -> list[TraceJob]:
        if options["trace"] != RECORDS:
            return read_jobs(_lines(Path(options["trace"])))
        cluster = Cluster.objects.filter(name=options["cluster"]).first()
        if cluster is None:
            raise CommandError(f"--cluster: Not found: {options['cluster']}")
        return recorded_jobs(cluster, timezone.now() - timedelta(days=options["days"]))


def _lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


def _run(file: Path, jobs: Sequence[TraceJob], nodes: Sequence[Node]) -> TraceFigures:
    configuration = read_configuration_file(file.read_bytes(), file.name)
    add = partial(add_nodes, nodes, configuration.get(SETTINGS) or {}) if nodes else None
    return run_trace(configuration, jobs, add)
