"""The job kinds that a cluster serves, and a Kueue that runs there, as its watcher found them."""

import logging
from collections.abc import Sequence
from datetime import datetime

from accounts.models import Cluster
from foundation.wake_ups import request_push

_log = logging.getLogger(__name__)


def record_served_kinds(cluster: Cluster, served: Sequence[str], missing: Sequence[str]) -> None:
    """Store the served kinds, and push jobs that waited for a kind which the cluster serves now."""
    if (cluster.served_kinds, cluster.missing_kinds) == (list(served), list(missing)):
        return
    Cluster.objects.filter(pk=cluster.pk).update(served_kinds=list(served), missing_kinds=list(missing))
    came = sorted(set(served) - set(cluster.served_kinds))
    cluster.served_kinds, cluster.missing_kinds = list(served), list(missing)
    if came:
        _log.info("Cluster %s serves %s", cluster.name, ", ".join(came))
        request_push(cluster.name)


def record_kueue(cluster: Cluster, holder: str, renewed_at: datetime | None, *, alive: bool) -> None:
    """Store the time at which Kueue's leader in the cluster last renewed its lease; None: there is no lease."""
    if (cluster.kueue_holder, cluster.kueue_renewed_at, cluster.kueue_is_alive) == (holder, renewed_at, alive):
        return
    Cluster.objects.filter(pk=cluster.pk).update(kueue_holder=holder, kueue_renewed_at=renewed_at, kueue_is_alive=alive)
    cluster.kueue_holder, cluster.kueue_renewed_at, cluster.kueue_is_alive = holder, renewed_at, alive
    request_push(cluster.name)
