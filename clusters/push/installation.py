"""Makes sure that only one installation of kueueweb pushes to a cluster: it holds a lease in the cluster. Another
installation sees the lease and writes nothing.

An installation that does not renew its lease loses it to one that has seen it unchanged for a minute
(`clusters.leases`).
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Final

from django.db import connection

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import LEASES, NAMESPACES, JsonObject
from clusters.client import ClusterClient
from clusters.leases import OUR_PREFIX, LeaseWatch, holder_of

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kueueweb"
LEASE: Final = "push.kueueweb.io"
_LOST_SECONDS: Final = 60.0
_RENEW_SECONDS: Final = 10.0
_lock: Final = threading.Lock()
_known: Final[dict[tuple[str, int], Installation]] = {}


def pushes_alone(cluster: Cluster, client: ClusterClient) -> bool:
    """Return whether this installation holds the cluster's lease, which is taken, renewed or read every ten seconds. If
    our account may not write leases, installations do not exclude each other. Raises ClusterError."""
    key = (client.server, cluster.pk)
    with _lock:
        found = _known.get(key) or _known.setdefault(key, Installation(identity()))
    return found.holds(cluster, client)


def identity() -> str:
    """Return the identity of this installation, which is that of its database. A copy on another server is another
    installation."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT system_identifier, current_database() FROM pg_control_system()")
        system, database = cursor.fetchone()
    return f"{OUR_PREFIX}{system}-{database}"


def held_by(name: str, lease: JsonObject | None, seconds: int) -> JsonObject:
    """Return the spec of a lease that this holder renews or takes over."""
    text = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    before = (lease or {}).get("spec") or {}
    spec = {**before, "holderIdentity": name, "renewTime": text, "leaseDurationSeconds": seconds}
    if before.get("holderIdentity") != name:
        spec |= {"acquireTime": text, "leaseTransitions": int(before.get("leaseTransitions") or 0) + bool(before)}
    return spec


class Installation:
    """The lease of a cluster as this process has last seen it."""

    def __init__(self, name: str, steady: Callable[[], float] = time.monotonic) -> None:
        self._name = name
        self._steady = steady
        self._watch = LeaseWatch(steady)
        self._looked_at: float | None = None
        self._mine = False

    def holds(self, cluster: Cluster, client: ClusterClient) -> bool:
        """Return whether this installation may push, and record it in the cluster's row."""
        now = self._steady()
        if self._looked_at is not None and now - self._looked_at < _RENEW_SECONDS:
            return self._mine
        try:
            holder = self._look(client)
        except ClusterError as error:
            if error.status != HTTPStatus.FORBIDDEN:
                raise
            _log.warning("Cluster %s: could not check for another kueueweb that pushes there: %s", cluster.name, error)
            holder = ""
        self._looked_at, self._mine = now, not holder
        if cluster.lease_holder != holder:
            Cluster.objects.filter(pk=cluster.pk).update(lease_holder=holder)
            cluster.lease_holder = holder
        return self._mine

    def _look(self, client: ClusterClient) -> str:
        """Return the other holder of the lease; "" if we hold it."""
        lease = client.get(LEASES, NAMESPACE, LEASE)
        if lease is None:
            return self._take(client, None)
        unchanged = self._watch.look(lease)
        holder = holder_of(lease)
        if holder in ("", self._name) or unchanged >= _LOST_SECONDS:
            return self._take(client, lease)
        return holder

    def _take(self, client: ClusterClient, lease: JsonObject | None) -> str:
        """Renew the lease or take it over, if it has not changed since it was read."""
        spec = held_by(self._name, lease, int(_LOST_SECONDS))
        try:
            if lease is not None:
                client.replace(LEASES, {**lease, "spec": spec})
            else:
                self._make(client, spec)
        except ClusterError as error:
            if not error.conflict:
                raise
            there = client.get(LEASES, NAMESPACE, LEASE) or {"spec": {}}
            holder = str(there["spec"].get("holderIdentity") or "")
            return "" if holder == self._name else holder or "another kueueweb"
        return ""

    @staticmethod
    def _make(client: ClusterClient, spec: JsonObject) -> None:
        lease = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {"name": LEASE, "namespace": NAMESPACE},
            "spec": spec,
        }
        try:
            client.create(LEASES, lease)
        except ClusterError as error:
            if not error.not_found:
                raise
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
            client.create(NAMESPACES, namespace)
            client.create(LEASES, lease)
