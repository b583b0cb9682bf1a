"""Whether a Kueue decides in the cluster: its leader renews a lease."""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from accounts.services.served_kinds import record_kueue
from clusters.api_errors import ClusterError
from clusters.api_objects import LEASES
from clusters.client import ClusterClient
from clusters.leases import LeaseWatch, holder_of, is_kueuewebs, kueues_lease
from foundation.wake_ups import request_push

_log = logging.getLogger(__name__)

GONE_AFTER: Final = 180.0
"""Seconds: the lease is looked at once a minute."""


def look_for_kueue(cluster: Cluster, client: ClusterClient, watch: LeaseWatch) -> None:
    """Record whether the leader's lease still changes.

    If the lease cannot be read, the record stays. An abandoned lease counts as renewed until it has been seen unchanged
    for long enough, unless it is known to be abandoned. A lease that kueueweb holds, so that no Kueue leads, does not
    count as Kueue's; if a Kueue should decide, a push worker releases it.
    """
    try:
        lease = client.get(LEASES, *kueues_lease(cluster))
    except ClusterError as error:
        _log.warning("Could not check whether a Kueue decides in cluster %s: %s", cluster.name, error)
        return
    unchanged = watch.look(lease)
    spec = (lease or {}).get("spec") or {}
    holder, renewed = holder_of(lease), spec.get("renewTime")
    if is_kueuewebs(holder) and cluster.is_mirrored:
        request_push(cluster.name)
    if not holder or not renewed or is_kueuewebs(holder):
        record_kueue(cluster, "", None, alive=False)
        return
    renewed_at = datetime.fromisoformat(renewed)
    known = (cluster.kueue_holder, cluster.kueue_renewed_at) == (holder, renewed_at)
    was_dead = known and not cluster.kueue_is_alive
    record_kueue(cluster, holder, renewed_at, alive=not was_dead and unchanged < GONE_AFTER)
