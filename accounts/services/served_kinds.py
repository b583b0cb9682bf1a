"""Which kinds of jobs a cluster serves, as its watcher found."""

import logging
from collections.abc import Sequence

from accounts.events import request_push
from accounts.models import Cluster

_log = logging.getLogger(__name__)


def record_served_kinds(cluster: Cluster, served: Sequence[str], missing: Sequence[str]) -> None:
    """Notes both, and has jobs that waited for a kind told to the cluster that serves it now."""
    known = Cluster.objects.filter(pk=cluster.pk).values_list("served_kinds", "missing_kinds").get()
    if known == (list(served), list(missing)):
        return
    Cluster.objects.filter(pk=cluster.pk).update(served_kinds=list(served), missing_kinds=list(missing))
    came = sorted(set(served) - set(known[0]))
    if came:
        _log.info("Cluster %s serves %s", cluster.name, ", ".join(came))
        request_push(cluster.name)
