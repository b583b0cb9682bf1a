"""The entries of Kueue's objects that we serve, as the watcher reads and writes them."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence

from accounts.models import AuditVerb, Cluster
from accounts.services.audit import record
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.served.contents import is_newer
from clusters.served.served_rows import entries, split
from clusters.sync.present import Present
from queues.models import ServedObject

_log = logging.getLogger(__name__)

_MAX_WRITER = 150


def locked_entries(cluster: Cluster, kind: str, found: Present) -> dict[str, ServedObject]:
    """Return the entries of the objects of a batch, or of all of the kind after a list."""
    rows = entries(cluster, kind).select_for_update().order_by("pk")
    if not found.listed:
        rows = rows.filter(name__in={split(key)[1] for key in (*found.objects, *found.gone)})
    return {row.key: row for row in rows}


def new_entry(cluster: Cluster, kind: str, key: str) -> ServedObject:
    namespace, name = split(key)
    return ServedObject(cluster=cluster, kind=kind, namespace=namespace, name=name)


def gone_keys(known: Mapping[str, ServedObject], found: Present, items: Sequence[Listing | WatchEvent]) -> set[str]:
    """Return the keys of deleted objects. With a list, this includes objects that were deleted earlier, whose rows may
    have had to wait, but not objects created after the list."""
    gone = {key for key, obj in found.gone.items() if key in known and known[key].uid == obj["metadata"]["uid"]}
    if found.listed:
        listed_at = [item.resource_version for item in items if isinstance(item, Listing)][-1]
        gone |= {
            key
            for key, entry in known.items()
            if key not in found.objects and not (entry.uid and is_newer(entry.resource_version, listed_at))
        }
    return gone


def news_of(known: Mapping[str, ServedObject], found: Present) -> dict[str, JsonObject]:
    """Return the objects that have changed since they were recorded. kueueweb records its own writes when it makes
    them."""
    return {key: obj for key, obj in found.objects.items() if key not in known or _is_news(known[key], obj)}


def _is_news(entry: ServedObject, obj: JsonObject) -> bool:
    metadata = obj["metadata"]
    return entry.uid != metadata["uid"] or is_newer(str(metadata["resourceVersion"]), entry.resource_version)


def writer_of(entry: ServedObject | None) -> str:
    """Return the user who is named as the last editor of the row."""
    program = entry.edited_by if entry is not None else ""
    return f"{program or 'a client'} in the cluster"[:_MAX_WRITER]


def tell_loser(cluster: Cluster, entry: ServedObject, message: str) -> None:
    """Note in the audit log, for the user whose edit here is lost, which edit replaced it."""
    _log.warning("%s of cluster %s: %s", entry, cluster.name, message)
    record(
        AuditVerb.REFUSED, entry.kind, cluster=cluster.name, namespace=entry.namespace, name=entry.name,
        message=message,
    )  # fmt: skip
