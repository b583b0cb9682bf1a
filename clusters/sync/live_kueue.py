"""Whether a Kueue decides in the cluster: its leader renews a lease."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from accounts.services.served_kinds import record_kueue
from clusters.client import LEASES, ClusterClient, ClusterError
from clusters.leases import LeaseWatch

_log = logging.getLogger(__name__)

NAMESPACE: Final = "kueue-system"
LEASE: Final = "c1f6bfd2.kueue.x-k8s.io"
"""Kueue's leader election, as its Configuration has it unless somebody changes that."""
GONE_AFTER: Final = 180.0
"""Seconds: the lease is looked at once a minute."""


def look_for_kueue(cluster: Cluster, client: ClusterClient, watch: LeaseWatch) -> None:
    """Notes whether the leader's lease still changes. What can't be read leaves what was known.

    A lease that was left behind counts as renewed until it has been seen unchanged for long enough, unless it is known
    to be one that was left behind.
    """
    try:
        lease = client.get(LEASES, NAMESPACE, LEASE)
    except ClusterError as error:
        _log.warning("Whether a Kueue decides in cluster %s is not known: %s", cluster.name, error)
        return
    unchanged = watch.look(lease)
    spec = (lease or {}).get("spec") or {}
    holder, renewed = str(spec.get("holderIdentity") or ""), spec.get("renewTime")
    if not holder or not renewed:
        record_kueue(cluster, "", None, alive=False)
        return
    renewed_at = datetime.fromisoformat(renewed)
    known = (cluster.kueue_holder, cluster.kueue_renewed_at) == (holder, renewed_at)
    was_dead = known and not cluster.kueue_is_alive
    record_kueue(cluster, holder, renewed_at, alive=not was_dead and unchanged < GONE_AFTER)
