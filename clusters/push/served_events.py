"""Events about Kueue's objects, for those who write them in the cluster."""

from __future__ import annotations

import logging
from datetime import datetime

from clusters.client import EVENTS, ClusterClient, ClusterError, ClusterUnreachable, Kind
from clusters.served.rows import Row
from queues.models import ServedObject
from scheduling.model.times import rfc3339

_log = logging.getLogger(__name__)

_COMPONENT = "kueueweb"
_HOME = "default"
"""Where Kubernetes keeps the events of what has no namespace."""


def tell_of_overwriting(
    client: ClusterClient, resource: Kind, entry: ServedObject, row: Row | None, now: datetime
) -> None:
    """Whose edit of the object is lost reads it in `kubectl describe`."""
    by = getattr(row.row, "changed_by", "") if row is not None else ""
    when = f" of {entry.edited_at:%Y-%m-%d %H:%M:%S}" if entry.edited_at else ""
    message = (
        f"The edit{f' by {entry.edited_by}' if entry.edited_by else ''}{when} is overwritten by a later one"
        f"{f' of {by}' if by else ''} in kueueweb. Read the object again, and repeat the edit if it is still wanted."
    )
    write_event(client, resource, entry, "EditOverwritten", message, now)


def write_event(
    client: ClusterClient, resource: Kind, entry: ServedObject, reason: str, message: str, now: datetime
) -> None:
    """A Warning event. That it can't be written is logged, and stops nothing."""
    namespace = entry.namespace or _HOME
    at = rfc3339(now)
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"generateName": f"{entry.name}.", "namespace": namespace},
        "type": "Warning",
        "reason": reason,
        "message": message[:1024],
        "involvedObject": {
            "apiVersion": resource.api_version,
            "kind": entry.kind,
            "name": entry.name,
            "uid": entry.uid,
            **({"namespace": entry.namespace} if entry.namespace else {}),
        },
        "source": {"component": _COMPONENT},
        "reportingComponent": _COMPONENT,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
    }
    try:
        client.create(EVENTS, event)
    except ClusterUnreachable:
        raise
    except ClusterError as refusal:
        _log.warning("The event %r of %s can't be written: %s", reason, entry, refusal)
