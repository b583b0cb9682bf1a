"""Creates one paced API client per cluster and process."""

from __future__ import annotations

import threading
from typing import Final

from django.conf import settings

from accounts.kinds.process_settings import request_rate
from accounts.models import Cluster
from clusters.client import ClusterClient, TokenBucket
from clusters.client_credentials import connect

_lock: Final = threading.Lock()
_clients: Final[dict[tuple[str, bool, float, float], ClusterClient]] = {}


def client_for(cluster: Cluster, *, read_only: bool = False) -> ClusterClient:
    """Return the client for the row's server_url, else for KUBERNETES_API_URL, else for the process's own
    configuration. Its rate is limited by the Configuration's clientConnection, or else by the settings. It refuses to
    write if another scheduler decides. Raises ClusterUnreachable if no server is configured."""
    return _client(cluster, read_only=read_only or cluster.is_mirrored)


def writing_client_for(cluster: Cluster) -> ClusterClient:
    """Return a client that writes in every mode, for a takeover or a handover. Raises ClusterUnreachable."""
    return _client(cluster, read_only=False)


def watching_client_for(cluster: Cluster, server: str = "") -> ClusterClient:
    """Return the client of the cluster's watcher, or of the API server at that URL in place of the cluster's own.

    It may write in every mode: the watcher follows the mode while it runs, and writes only where kueueweb decides.
    Raises ClusterUnreachable.
    """
    return connect(server) if server else writing_client_for(cluster)


def logs_client_for(cluster: Cluster) -> ClusterClient:
    """Return the client of the web processes, which read the logs of pods and write nothing. Raises
    ClusterUnreachable."""
    return client_for(cluster, read_only=True)


def _client(cluster: Cluster, *, read_only: bool) -> ClusterClient:
    settled = float(settings.KUBERNETES_REQUESTS_PER_SECOND), float(settings.KUBERNETES_REQUEST_BURST)
    rate, burst = request_rate(cluster.configuration, *settled)
    key = cluster.server_url or settings.KUBERNETES_API_URL, read_only, rate, burst
    with _lock:
        if key not in _clients:
            _clients[key] = connect(key[0], TokenBucket(rate, burst), read_only=key[1])
        return _clients[key]
