"""Holds the lease of Kueue's leader election while we decide: a Kueue that is started meanwhile waits as a standby.

Each renewal holds it for a day, so that a shorter outage of kueueweb does not give the cluster to a standby, which does
not know the jobs that kueueweb started. Handing over releases it at once.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import datetime
from http import HTTPStatus
from typing import Final

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import LEASES, JsonObject
from clusters.client import ClusterClient
from clusters.leases import holder_of, is_kueuewebs, kueues_lease
from clusters.push.installation import held_by, identity

_log = logging.getLogger(__name__)

HELD_SECONDS: Final = 24 * 3600
_RENEW_SECONDS: Final = 10.0
_lock: Final = threading.Lock()
_known: Final[dict[tuple[str, int], KueuesLease]] = {}


def keeps_kueue_waiting(cluster: Cluster, client: ClusterClient) -> bool:
    """Return whether no Kueue can lead in the cluster; the lease is taken or renewed every ten seconds.

    If Kueue's namespace does not exist, no Kueue runs. If our account may not write the lease, only the watcher looks
    for a Kueue. Raises ClusterError.
    """
    key = (client.server, cluster.pk)
    with _lock:
        found = _known.get(key) or _known.setdefault(key, KueuesLease(identity()))
    return found.holds(cluster, client)


def taking_over() -> str:
    """Return the holder name of this installation before the mode is `schedule`. In any other mode, push workers
    release a lease that they hold under their own name."""
    return f"{identity()}-takeover"


def release(cluster: Cluster, client: ClusterClient, holder: str) -> bool:
    """Release the lease if this holder has it; a standby takes it within seconds. Returns whether it was released.
    Raises ClusterError."""
    with _lock:
        _known.pop((client.server, cluster.pk), None)
    lease = client.get(LEASES, *kueues_lease(cluster))
    if lease is None or holder_of(lease) != holder:
        return False
    client.replace(LEASES, {**lease, "spec": {**held_by("", lease, 1), "holderIdentity": ""}})
    return True


class KueuesLease:
    """The knowledge of this process about the lease of one cluster."""

    def __init__(self, name: str, steady: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._steady = steady
        self._looked_at: float | None = None
        self._keeps = False
        self._forbidden = False

    def holds(self, cluster: Cluster, client: ClusterClient) -> bool:
        """Return whether no Kueue can lead."""
        now = self._steady()
        if self._looked_at is not None and now - self._looked_at < _RENEW_SECONDS:
            return self._keeps
        self._keeps = self._look(cluster, client)
        self._looked_at = now
        return self._keeps

    def _look(self, cluster: Cluster, client: ClusterClient) -> bool:
        lease = client.get(LEASES, *kueues_lease(cluster))
        holder = holder_of(lease)
        if holder and not is_kueuewebs(holder) and not _is_left_behind(cluster, lease):
            return False
        try:
            take(cluster, client, lease, self._name)
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            if not self._forbidden:
                _log.warning(
                    "Cluster %s: a Kueue that is started would lead, because our account may not write its lease: %s",
                    cluster.name, error,
                )  # fmt: skip
            self._forbidden = True
        return True


def take(cluster: Cluster, client: ClusterClient, lease: JsonObject | None, name: str) -> bool:
    """Take or renew the lease as it was read; False if Kueue's namespace does not exist. Raises ClusterError, with
    `conflict` if another client was first."""
    spec = held_by(name, lease, HELD_SECONDS)
    if lease is not None:
        client.replace(LEASES, {**lease, "spec": spec})
        return True
    namespace, lease_name = kueues_lease(cluster)
    made = {
        "apiVersion": LEASES.api_version,
        "kind": LEASES.kind,
        "metadata": {"name": lease_name, "namespace": namespace},
        "spec": spec,
    }
    try:
        client.create(LEASES, made)
    except ClusterError as error:
        if not error.not_found:
            raise
        return False
    return True


def _is_left_behind(cluster: Cluster, lease: JsonObject | None) -> bool:
    """Return whether the watcher has seen the lease unchanged for longer than its duration, so that its holder
    is gone."""
    renewed = ((lease or {}).get("spec") or {}).get("renewTime")
    seen = (cluster.kueue_holder, cluster.kueue_renewed_at)
    now = (holder_of(lease), datetime.fromisoformat(renewed) if renewed else None)
    return seen == now and not cluster.kueue_is_alive
