"""Arguments, output and exit code of `manage.py doctor` and `manage.py preflight`."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from django.core.management.base import BaseCommand

from kueueweb.checkup.finding import Finding, Status, as_json, as_lines, worst

_POD_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


class CheckupCommand(BaseCommand):
    """Prints a line for each finding; exit code 1 if one is a failure."""

    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--cluster", action="append", default=[], help="check only this cluster; may be repeated")
        parser.add_argument(
            "--namespace", default=_own_namespace(), help="namespace in which kueueweb is installed (%(default)s)"
        )
        parser.add_argument("-o", "--output", choices=("text", "json"), default="text")

    def findings(self, clusters: Sequence[str], namespace: str) -> Iterator[Finding]:
        """Yield the findings of these clusters; of all clusters if none is named. `namespace`: of the installation."""
        raise NotImplementedError

    def handle(self, *args: Any, cluster: Sequence[str], namespace: str, output: str, **options: Any) -> None:
        findings = list(self.findings(cluster, namespace))
        self.stdout.write((as_json if output == "json" else as_lines)(findings))
        if worst(findings) is Status.FAIL:
            sys.exit(1)


def _own_namespace() -> str:
    return _POD_NAMESPACE.read_text(encoding="utf-8").strip() if _POD_NAMESPACE.exists() else "kueueweb"
