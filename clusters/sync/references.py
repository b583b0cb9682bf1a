"""Syncs objects that jobs refer to."""

from __future__ import annotations

from collections.abc import Sequence

from accounts.models import Cluster
from clusters.client import JsonObject, Kind, Listing, WatchEvent
from clusters.jobs.framework.manifest import name_of, namespace_of
from queues.services.cluster_objects import Key, store_cluster_objects


class ReferenceSync:
    """Keeps the rows of one such kind in step with the objects of one cluster."""

    def __init__(self, cluster: Cluster, kind: Kind) -> None:
        self._cluster = cluster
        self._kind = kind

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        present: dict[Key, JsonObject] = {}
        gone: set[Key] = set()
        listed = False
        for item in items:
            if isinstance(item, Listing):
                listed, gone = True, set()
                present = {_key(found): _kept(found) for found in item.items}
            elif item.type == "DELETED":
                present.pop(_key(item.object), None)
                gone.add(_key(item.object))
            else:
                present[_key(item.object)] = _kept(item.object)
                gone.discard(_key(item.object))
        store_cluster_objects(self._cluster, self._kind.kind, present, gone=None if listed else gone)


def _key(obj: JsonObject) -> Key:
    return namespace_of(obj), name_of(obj)


def _kept(obj: JsonObject) -> JsonObject:
    """The part of the object that concerns pods."""
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": name_of(obj)},
            "spec": obj.get("spec") or {}}  # fmt: skip
