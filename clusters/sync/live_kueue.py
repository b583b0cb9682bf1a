"""Whether a Kueue decides in the cluster: its leader renews a lease."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from accounts.services.served_kinds import record_kueue
from clusters.client import LEASES, ClusterClient, ClusterError

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kueue-system"
LEASE: Final = "c1f6bfd2.kueue.x-k8s.io"
"""Kueue's leader election, as its Configuration has it unless somebody changes that."""


def look_for_kueue(cluster: Cluster, client: ClusterClient) -> None:
    """Notes the leader's last sign of life. What can't be read leaves what was known."""
    try:
        lease = client.get(LEASES, NAMESPACE, LEASE)
    except ClusterError as error:
        _log.warning("Whether a Kueue decides in cluster %s is not known: %s", cluster.name, error)
        return
    spec = (lease or {}).get("spec") or {}
    renewed = spec.get("renewTime")
    record_kueue(cluster, spec.get("holderIdentity") or "", datetime.fromisoformat(renewed) if renewed else None)
