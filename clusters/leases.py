"""Whether the holder of a Lease is alive, judged as in Kubernetes' leader election: by our own monotonic clock, from
the last observed change of the lease. The holder's times are never compared with ours.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from accounts.models import Cluster
from clusters.api_objects import JsonObject

OUR_PREFIX: Final = "kueueweb-"
"""Begins the identity of each installation of kueueweb."""
KUEUES_NAMESPACE: Final = "kueue-system"
KUEUES_LEASE: Final = "c1f6bfd2.kueue.x-k8s.io"


def kueues_lease(cluster: Cluster) -> tuple[str, str]:
    """Namespace and name of the lease of Kueue's leader election, by the Configuration that was applied here."""
    election = cluster.configuration.get("leaderElection") or {}
    namespace = election.get("resourceNamespace") or cluster.configuration.get("namespace") or KUEUES_NAMESPACE
    return str(namespace), str(election.get("resourceName") or KUEUES_LEASE)


def holder_of(lease: JsonObject | None) -> str:
    """Return the identity that holds the lease; empty if it is free."""
    return str(((lease or {}).get("spec") or {}).get("holderIdentity") or "")


def is_kueuewebs(holder: str) -> bool:
    """Return whether an installation of kueueweb holds the lease, and no Kueue."""
    return holder.startswith(OUR_PREFIX)


class LeaseWatch:
    """The state of one lease, as this process saw it."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self._steady = steady
        self._seen: tuple[str, str] | None = None
        self._since = 0.0
        self._lock = threading.Lock()

    def look(self, lease: JsonObject | None) -> float:
        """Return the seconds since the lease last changed; 0 at the first call, and after each change."""
        now, spec = self._steady(), (lease or {}).get("spec") or {}
        state = (str(spec.get("holderIdentity") or ""), str(spec.get("renewTime") or ""))
        with self._lock:
            if state != self._seen:
                self._seen, self._since = state, now
            return now - self._since
