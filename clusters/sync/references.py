"""Syncs objects that jobs and pods refer to, including those of dynamic resource allocation."""

from __future__ import annotations

from collections.abc import Sequence

from accounts.models import Cluster
from clusters.api_objects import JsonObject, Kind
from clusters.client import Listing, WatchEvent
from clusters.jobs.framework.manifest import name_of, namespace_of
from foundation.wake_ups import wake_scheduler
from queues.services.cluster_objects import Key, store_cluster_objects
from queues.services.pods import workloads_of_pods
from scheduling.devices.claims.claim_reading import as_v1


class ReferenceSync:
    """Keeps the rows of one kind to which jobs or pods refer in step with the objects of one cluster."""

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
        """Jobs read these objects in their next pass."""

    def _kept(self, present: dict[Key, JsonObject]) -> dict[Key, JsonObject]:
        """Return the parts of the objects that concern pods."""
        return {key: _spec_of(found) for key, found in present.items()}


class DeviceObjectSync(ReferenceSync):
    """Keeps the rows of one kind of dynamic resource allocation in step with the cluster, all in the form of v1.

    Of a claim, only its devices are kept, with the pods for which it is reserved and their workload, if they have one.
    """

    def _kept(self, present: dict[Key, JsonObject]) -> dict[Key, JsonObject]:
        if self._kind.kind == "ResourceClaim":
            return self._claims(present)
        return {key: _object(as_v1(found)) for key, found in present.items()}

    def _changed(self) -> None:
        wake_scheduler(self._cluster.name)

    def _claims(self, present: dict[Key, JsonObject]) -> dict[Key, JsonObject]:
        pods = {key: _pods(found) for key, found in present.items()}
        workloads = workloads_of_pods(self._cluster, {uid for uids in pods.values() for uid in uids})
        found = {}
        for key, claim in present.items():
            status = claim.get("status") or {}
            held = {name: status[name] for name in ("allocation", "reservedFor") if status.get(name)}
            whose = next((workloads[uid] for uid in pods[key] if uid in workloads), "")
            found[key] = {**_object({**claim, "spec": {}}), "status": held, "pods": pods[key], "workload": whose}
        return found


def _key(obj: JsonObject) -> Key:
    return namespace_of(obj), name_of(obj)


def _spec_of(obj: JsonObject) -> JsonObject:
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": {"name": name_of(obj)},
            "spec": obj.get("spec") or {}}  # fmt: skip


def _object(found: JsonObject) -> JsonObject:
    metadata = {name: found["metadata"][name] for name in ("name", "creationTimestamp") if name in found["metadata"]}
    spec = found.get("spec") or {}  # its author may not have written the rest yet
    return {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": spec}


def _pods(claim: JsonObject) -> list[str]:
    """Return the uids of the pods that use the claim, or for which it was created."""
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    owners = claim["metadata"].get("ownerReferences") or ()
    found = [each["uid"] for each in reserved if each.get("resource") == "pods"]
    return sorted({*found, *(each["uid"] for each in owners if each.get("kind") == "Pod")})
