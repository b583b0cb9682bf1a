"""Allocates the claims of pods that we bind ourselves, because the cluster's scheduler never sees these pods.

For each claim the same as Kubernetes' scheduler writes: the finalizer that keeps an allocated claim, the allocation,
and the pod that it is reserved for. Devices are chosen from the server's current list, not from our rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from clusters.api_errors import ClusterError
from clusters.api_objects import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES, JsonObject, Kind
from clusters.client import ClusterClient
from scheduling.devices.claims.allocation import Shares, allocate, allocation_status
from scheduling.devices.claims.claim_reading import (
    as_v1,
    read_claim_spec,
    read_class,
    read_pools,
    read_shares,
    read_taken,
)
from scheduling.devices.claims.objects import DeviceId, DeviceObjects

FINALIZER: Final = "resource.kubernetes.io/delete-protection"


class PodClaims:
    """The claims of one sweep's pods. The cluster's claims are listed once, for the first pod with claims."""

    def __init__(self, client: ClusterClient) -> None:
        self._client = client
        self._kinds: dict[str, Kind] = {}
        self._objects: DeviceObjects | None = None
        self._taken: set[DeviceId] = set()
        self._shares: Shares = {}

    def allocate(self, pod: JsonObject, node: str) -> bool:
        """Allocate the claims of a pod on the node; return whether the pod may be bound, which requires that every
        claim is allocated there and reserved for the pod. Raises ClusterError if there are not enough devices, or the
        cluster refuses."""
        if not pod["spec"].get("resourceClaims"):
            return True
        names = _claim_names(pod)
        if names is None:
            return False  # the claims have not been created from their templates yet
        self._look()
        claims = [self._claim(pod, name) for name in names]
        missing = [claim for claim in claims if not (claim.get("status") or {}).get("allocation")]
        for claim in claims:
            if claim not in missing:
                _require_node(claim, node)
        allocations = self._choose(missing, node) if missing else []
        for claim, allocation in zip(missing, allocations, strict=True):
            self._write(claim, pod, allocation)
        for claim in claims:
            if claim not in missing and not _is_reserved(claim, pod):
                self._write(claim, pod, None)
        return True

    def _look(self) -> None:
        if self._objects is not None:
            return
        self._kinds = _served(self._client)
        listed = {kind: self._client.list(found).items for kind, found in self._kinds.items()}
        classes = [read_class(as_v1(found)) for found in listed["DeviceClass"]]
        pools = read_pools(as_v1(found) for found in listed["ResourceSlice"])
        self._taken = {device for claim in listed["ResourceClaim"] for device in read_taken(claim)}
        self._shares = read_shares(listed["ResourceClaim"])
        self._objects = DeviceObjects({found.name: found for found in classes}, pools)

    def _claim(self, pod: JsonObject, name: str) -> JsonObject:
        metadata = pod["metadata"]
        found = self._client.get(self._kinds["ResourceClaim"], metadata["namespace"], name)
        if found is None:
            raise ClusterError(404, "ClaimNotFound", f"ResourceClaim {metadata['namespace']}/{name} does not exist")
        owners = [each for each in found["metadata"].get("ownerReferences") or () if each.get("kind") == "Pod"]
        if owners and all(each["uid"] != metadata["uid"] for each in owners):
            raise ClusterError(0, "ClaimOfAnotherPod", f"ResourceClaim {name} belongs to pod {owners[0]['name']}")
        return found

    def _choose(self, claims: Sequence[JsonObject], node: str) -> list[dict[str, Any]]:
        assert self._objects is not None  # `_look` has listed them
        specs = [read_claim_spec(as_v1({"kind": "ResourceClaim", **claim})["spec"]) for claim in claims]
        chosen = allocate(specs, node, self._objects, self._taken, self._shares)
        if chosen is None:
            names = ", ".join(claim["metadata"]["name"] for claim in claims)
            raise ClusterError(0, "DevicesTaken", f"on node {node}, some devices that {names} request are not free")
        for each in (each for found in chosen for each in found if not each.admin_access):
            if each.consumed is None:
                self._taken.add(each.device)
                continue
            held = self._shares.setdefault(each.device, {})
            for name, amount in each.consumed.items():
                held[name] = held.get(name, 0) + amount
        return [allocation_status(found, spec, self._objects, node) for found, spec in zip(chosen, specs, strict=True)]

    def _write(self, claim: JsonObject, pod: JsonObject, allocation: Mapping[str, Any] | None) -> None:
        kind, metadata = self._kinds["ResourceClaim"], claim["metadata"]
        version = metadata["resourceVersion"]
        finalizers = metadata.get("finalizers") or []
        if FINALIZER not in finalizers:
            patch = {"metadata": {"resourceVersion": version, "finalizers": [*finalizers, FINALIZER]}}
            version = self._client.patch(kind, metadata["namespace"], metadata["name"], patch)["metadata"][
                "resourceVersion"
            ]
        reserved = (claim.get("status") or {}).get("reservedFor") or []
        ours = {"resource": "pods", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        status: JsonObject = {"reservedFor": [*reserved, ours]}
        if allocation is not None:
            status["allocation"] = allocation
        told = {"metadata": {"resourceVersion": version}, "status": status}
        self._client.patch(kind, metadata["namespace"], metadata["name"], told, subresource="status")


def _served(client: ClusterClient) -> dict[str, Kind]:
    wanted = (DEVICE_CLASSES, RESOURCE_SLICES, RESOURCE_CLAIMS)
    served = client.served([kind for versions in wanted for kind in versions])
    found = {kinds[0].kind: next((kind for kind in kinds if kind in served), None) for kinds in wanted}
    missing = sorted(name for name, kind in found.items() if kind is None)
    if missing:
        raise ClusterError(0, "NotServed", f"the cluster does not serve {', '.join(missing)} of resource.k8s.io")
    return {name: kind for name, kind in found.items() if kind is not None}


def _claim_names(pod: JsonObject) -> list[str] | None:
    """Return the names of the pod's claims; None while one does not exist yet. The pod's status names the claims that
    were created from templates, or reports that none is needed."""
    made = {each["name"]: each for each in (pod.get("status") or {}).get("resourceClaimStatuses") or ()}
    names: list[str] = []
    for claim in pod["spec"]["resourceClaims"]:
        if claim.get("resourceClaimName"):
            names.append(claim["resourceClaimName"])
        elif claim["name"] not in made:
            return None
        elif made[claim["name"]].get("resourceClaimName"):
            names.append(made[claim["name"]]["resourceClaimName"])
    return names


def _is_reserved(claim: JsonObject, pod: JsonObject) -> bool:
    reserved = (claim.get("status") or {}).get("reservedFor") or ()
    return any(each.get("uid") == pod["metadata"]["uid"] for each in reserved)


def _require_node(claim: JsonObject, node: str) -> None:
    """An allocation on one node is named by that node, as we and Kubernetes write it."""
    selector = claim["status"]["allocation"].get("nodeSelector") or {}
    fields = [field for term in selector.get("nodeSelectorTerms") or () for field in term.get("matchFields") or ()]
    named = [value for field in fields if field.get("key") == "metadata.name" for value in field.get("values") or ()]
    if named and node not in named:
        name = claim["metadata"]["name"]
        raise ClusterError(0, "AllocatedElsewhere", f"ResourceClaim {name} is allocated on {named[0]}, not on {node}")
