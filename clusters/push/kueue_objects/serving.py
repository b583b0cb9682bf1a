"""Finds Kueue's kinds that a cluster serves, and sweeps over all of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from accounts.models import Cluster
from clusters.api_objects import Kind
from clusters.client import ClusterClient
from clusters.push.kueue_objects.served_objects import ServedObjects
from clusters.push.kueue_objects.served_workloads import ServedWorkloads
from clusters.push.workload_events import WorkloadEvents
from clusters.served.kueue_kinds import KUEUE_KINDS, newest
from clusters.served.workload_specs import KIND

_LOOK_SECONDS: Final = 60.0
_lock: Final = threading.Lock()
_looked: Final[dict[str, tuple[float, Mapping[str, Kind]]]] = {}


def serve(cluster: Cluster, client: ClusterClient, clock: Callable[[], float]) -> None:
    """Write the rows, their statuses and their events to the cluster. Raises ClusterError."""
    served = _served(client)
    ServedObjects(cluster, client, served, clock).tell()
    if KIND in served:
        ServedWorkloads(cluster, client, served[KIND], clock).tell()
        if settings.KUBERNETES_EVENTS:
            WorkloadEvents(cluster, client, served[KIND]).tell()


def _served(client: ClusterClient) -> Mapping[str, Kind]:
    """Kind -> the newest version that the server has of it; asked once a minute."""
    now = time.monotonic()
    with _lock:
        found = _looked.get(client.server)
    if found is not None and now - found[0] < _LOOK_SECONDS:
        return found[1]
    kinds = (kind for versions in KUEUE_KINDS.values() for kind in versions)
    served = {kind.kind: kind for kind in newest(client.served(kinds))}
    with _lock:
        _looked[client.server] = (now, served)
    return served


def forget() -> None:
    """Ask again which kinds the cluster serves, as after an installation."""
    with _lock:
        _looked.clear()
