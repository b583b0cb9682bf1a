"""The heartbeat of a cluster's API server: when it last answered a request.

The watches cannot show this: they are as silent on a hanging server as on a quiet cluster.
"""

from __future__ import annotations

import logging
import threading

from clusters.client import ClusterClient, ClusterError
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, note_life

_log = logging.getLogger(__name__)


class ApiServerHeartbeat:
    """Asks one API server again and again. A refusal of every request (410, 429, 500) is no answer."""

    def __init__(self, cluster: str, client: ClusterClient, timeout_seconds: float = HEARTBEAT_SECONDS) -> None:
        self._cluster = cluster
        self._client = client
        self._timeout_seconds = timeout_seconds
        self._answers = True

    def run(self, stopped: threading.Event) -> None:
        """Ask every few seconds until told to stop."""
        while not stopped.is_set():
            self.ask()
            stopped.wait(HEARTBEAT_SECONDS)

    def ask(self) -> None:
        """Ask once, and note the answer where the overview, `/readyz` and the metrics read it."""
        try:
            self._client.ping(self._timeout_seconds)
        except ClusterError as error:
            if self._answers:
                _log.warning("The API server of cluster %s does not answer: %s", self._cluster, error)
            self._answers = False
        else:
            if not self._answers:
                _log.info("The API server of cluster %s answers again", self._cluster)
            self._answers = True
            note_life(Role.API_SERVER, self._cluster)
