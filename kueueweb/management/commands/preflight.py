"""`manage.py preflight`: whether an installation can start."""

from collections.abc import Iterator, Sequence

from kueueweb.checkup.checkup_command import CheckupCommand
from kueueweb.checkup.checkups import preflight
from kueueweb.checkup.finding import Finding


class Command(CheckupCommand):
    """Prints a line for each finding; exit code 1 if one is a failure."""

    help = "Check before an installation or an upgrade: settings, servers, permissions. One line each, with a remedy."

    def findings(self, clusters: Sequence[str], namespace: str) -> Iterator[Finding]:
        return preflight(clusters, namespace)
