"""Syncs objects of dynamic resource allocation: classes, slices, claim templates, and the devices that claims hold."""

from __future__ import annotations

from accounts.events import wake_scheduler
from clusters.client import JsonObject
from clusters.sync.references import ReferenceSync
from queues.services.cluster_objects import Key
from queues.services.pods import workloads_of_pods
from scheduling.devices.claims.reading import as_v1


class DeviceObjectSync(ReferenceSync):
    """Keeps the rows of one such kind in step with the objects of one cluster, all in the form of v1.

    Of a claim only what it holds is kept, with the pods that it is for, and their workload if they are of one.
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


def _object(found: JsonObject) -> JsonObject:
    metadata = {name: found["metadata"][name] for name in ("name", "creationTimestamp") if name in found["metadata"]}
    spec = found.get("spec") or {}  # its author may have written no more yet
    return {"apiVersion": found["apiVersion"], "kind": found["kind"], "metadata": metadata, "spec": spec}


def _pods(claim: JsonObject) -> list[str]:
    """The uids of the pods that use the claim, or for which it was made."""
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    owners = claim["metadata"].get("ownerReferences") or ()
    found = [each["uid"] for each in reserved if each.get("resource") == "pods"]
    return sorted({*found, *(each["uid"] for each in owners if each.get("kind") == "Pod")})
