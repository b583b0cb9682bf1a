"""Which API server a cluster's row means, and one paced client for it per process."""

from __future__ import annotations

import threading
from typing import Final

from django.conf import settings

from accounts.models import Cluster
from clusters.client import ClusterClient, TokenBucket, connect

_lock: Final = threading.Lock()
_clients: Final[dict[str, ClusterClient]] = {}


def client_for(cluster: Cluster) -> ClusterClient:
    """The client for the row's server_url, else for KUBERNETES_API_URL, else for the process's own configuration.

    Raises ClusterUnreachable where none of them says where the server is.
    """
    server = cluster.server_url or settings.KUBERNETES_API_URL
    with _lock:
        if server not in _clients:
            rate = float(settings.KUBERNETES_REQUESTS_PER_SECOND)
            _clients[server] = connect(server, TokenBucket(rate, 2 * rate))
        return _clients[server]
