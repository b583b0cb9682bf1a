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
                present = {_key(found): found for found in item.items}
            elif item.type == "DELETED":
                present.pop(_key(item.object), None)
                gone.add(_key(item.object))
            else:
                present[_key(item.object)] = item.object
                gone.discard(_key(item.object))
        kept, lost = self._kept(present), None if listed else gone
        if store_cluster_objects(self._cluster, self._kind.kind, kept, gone=lost):
            self._changed()

    def _changed(self) -> None:
        """Jobs read these objects when they are looked at next."""

    def _kept(self, present: dict[Key, JsonObject]) -> dict[Key, JsonObject]:
        """The parts of the objects that concern pods."""
        return {key: _spec_of(found) for key, found in present.items()}


def _key(obj: JsonObject) -> Key:
    return namespace_of(obj), name_of(obj)


def _spec_of(obj: JsonObject) -> JsonObject:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": name_of(obj)},
            "spec": obj.get("spec") or {}}  # fmt: skip
