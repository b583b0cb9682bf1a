"""The heartbeat of a role that is alive only while certain servers answer.

The watches cannot show that an API server hangs: they are as silent as on a quiet cluster. And a webhook whose loop
turns answers no review without the database and the API server.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from django.db import Error, close_old_connections

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.client import ClusterClient
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, note_life

_log = logging.getLogger(__name__)


class ReachHeartbeat:
    """Asks the servers of a role again and again. A refusal of every request (410, 429, 500) is no answer.

    `reach` asks each of them, and raises ClusterError or an error of the database where one does not answer.
    """

    def __init__(self, role: Role, cluster: str, reach: Callable[[], None]) -> None:
        self._role = role
        self._cluster = cluster
        self._reach = reach
        self._answered = True

    def run(self, stopped: threading.Event) -> None:
        """Check every few seconds until told to stop."""
        while not stopped.is_set():
            self.ask()
            close_old_connections()
            stopped.wait(HEARTBEAT_SECONDS)

    def ask(self) -> None:
        """Check once, and store the result for the overview, `/readyz` and the metrics."""
        try:
            self._reach()
        except (ClusterError, Error) as error:
            if self._answered:
                _log.warning("The %s of cluster %s is shown as silent: %s", self._role, self._cluster, error)
            self._answered = False
        else:
            if not self._answered:
                _log.info("The %s of cluster %s is alive again", self._role, self._cluster)
            self._answered = True
            note_life(self._role, self._cluster)


def reach_servers(cluster: Cluster, client: ClusterClient) -> None:
    """Send a request to the database and one to the API server, without which no review is answered. Raises
    ClusterError or an error of the database."""
    Cluster.objects.filter(pk=cluster.pk).exists()
    client.ping(HEARTBEAT_SECONDS)
