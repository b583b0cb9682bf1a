"""`manage.py doctor`: whether an installation works."""

from collections.abc import Iterator, Sequence

from kueueweb.checkup.checkup_command import CheckupCommand
from kueueweb.checkup.checkups import doctor
from kueueweb.checkup.finding import Finding


class Command(CheckupCommand):
    """Prints a line for each finding; exit code 1 if one is a failure."""

    help = "Check a running installation: servers, permissions, processes, webhook. One line each, with a remedy."

    def findings(self, clusters: Sequence[str], namespace: str) -> Iterator[Finding]:
        return doctor(clusters, namespace)
