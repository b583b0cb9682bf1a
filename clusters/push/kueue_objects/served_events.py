"""Events about Kueue's objects, for their authors in the cluster."""

from __future__ import annotations

from datetime import datetime

from clusters.api_objects import Kind
from clusters.client import ClusterClient
from clusters.push.event_recorder import EventRecorder, Regarding
from clusters.served.served_rows import Row
from queues.models import ServedObject


def tell_of_overwriting(
    client: ClusterClient, resource: Kind, entry: ServedObject, row: Row | None, now: datetime
) -> None:
    """Report an edit that was overwritten in `kubectl describe` of the object."""
    by = getattr(row.row, "changed_by", "") if row is not None else ""
    when = f" of {entry.edited_at:%Y-%m-%d %H:%M:%S}" if entry.edited_at else ""
    message = (
        f"The edit{f' by {entry.edited_by}' if entry.edited_by else ''}{when} is overwritten by a later one"
        f"{f' of {by}' if by else ''} in kueueweb. Read the object again, and repeat the edit if it is still wanted."
    )
    regarding = Regarding(resource.api_version, entry.kind, entry.namespace, entry.name, entry.uid)
    EventRecorder(client).record(regarding, "EditOverwritten", message, now, warning=True)
