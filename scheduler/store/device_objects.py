"""Turns the watcher's rows of dynamic resource allocation into objects of the rules."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson
from django.db import connection

from queues.models import ClusterObject
from scheduling.devices.claims.claim_reading import read_claim_spec, read_class, read_pools, read_shares, read_taken
from scheduling.devices.claims.objects import ClaimSpec, DeviceObjects

_log = logging.getLogger(__name__)

DEVICE_OBJECT: Final = "deviceobject"
"""Their kind in a Change, whose key is `kind namespace/name`."""
_TEMPLATE: Final = "ResourceClaimTemplate"
DEVICE_KINDS: Final = ("DeviceClass", "ResourceSlice", _TEMPLATE, "ResourceClaim")

# A claim of a pod that we placed is charged by the workload's placement already.
_TAKEN: Final = """
SELECT claim.manifest::text FROM queues_clusterobject AS claim
WHERE claim.cluster_id = %s AND claim.kind = 'ResourceClaim' AND claim.manifest -> 'status' ? 'allocation'
    AND NOT EXISTS (SELECT FROM queues_workload AS workload JOIN queues_podset AS pod_set
        ON pod_set.workload_id = workload.id
        WHERE workload.cluster_id = claim.cluster_id AND workload.uid::text = claim.manifest ->> 'workload'
            AND workload.quota_reserved_at IS NOT NULL AND workload.status <> 'Finished'
            AND pod_set.nodes <> '[]'::jsonb)
"""

_NONE: Final = DeviceObjects()

Found = TypeVar("Found")


def read_device_objects(
    cluster_id: int, noted: Collection[str] | None = None, before: DeviceObjects = _NONE
) -> DeviceObjects:
    """Read the objects of resource.k8s.io in a cluster that affect decisions.

    `noted` are the changed objects, as the keys of their notes; None reads all objects. Unchanged objects are taken
    from `before`. All DeviceClasses and all ResourceSlices are read again if one of them has changed, because the
    meaning of a device depends on the others; only administrators write them. Of claim templates, which tenants write,
    only the noted ones are read. The devices that claims hold are read after any change.
    """
    kinds = DEVICE_KINDS if noted is None else {key.partition(" ")[0] for key in noted}
    claims = _allocated_claims(cluster_id)
    taken = frozenset(device for claim in claims for device in read_taken(claim))
    found = replace(before, taken=taken, shares=read_shares(claims))
    if "DeviceClass" in kinds:
        found = replace(found, classes=_readable(_manifests(cluster_id, "DeviceClass"), read_class))
    if "ResourceSlice" in kinds:
        slices = _readable(_manifests(cluster_id, "ResourceSlice"), _checked_slice)
        found = replace(found, pools=read_pools(slices.values()))
    if _TEMPLATE in kinds:
        names = None if noted is None else {key.partition(" ")[2] for key in noted if key.startswith(f"{_TEMPLATE} ")}
        changed = _readable(_manifests(cluster_id, _TEMPLATE, names), _claim_spec)
        kept = {} if names is None else {key: each for key, each in before.templates.items() if key not in names}
        found = replace(found, templates=kept | changed)
    return found


def _manifests(cluster_id: int, kind: str, names: Collection[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return the stored objects of a kind by `namespace/name`, or by their name where they have no namespace; if
    `names` is given, only these."""
    rows = ClusterObject.objects.filter(cluster_id=cluster_id, kind=kind)
    if names is not None:
        rows = rows.filter(name__in={name.rpartition("/")[2] for name in names})
    found = {
        f"{namespace}/{name}" if namespace else name: manifest
        for namespace, name, manifest in rows.values_list("namespace", "name", "manifest")
    }
    return found if names is None else {name: each for name, each in found.items() if name in names}


def _claim_spec(manifest: dict[str, Any]) -> ClaimSpec:
    return read_claim_spec(manifest["spec"].get("spec") or {})


def _checked_slice(found: dict[str, Any]) -> dict[str, Any]:
    read_pools([found])
    return found


def _readable(manifests: Mapping[str, Any], read: Callable[[dict[str, Any]], Found]) -> dict[str, Found]:
    """Return the objects that can be read. The API server validates them; one that cannot be read counts as absent."""
    found: dict[str, Found] = {}
    for key, manifest in manifests.items():
        try:
            found[key] = read(manifest)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            _log.error("%s %s cannot be read, so it is ignored: %r", manifest.get("kind"), key, error)
    return found


def _allocated_claims(cluster_id: int) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKEN, [cluster_id])
        return [orjson.loads(claim) for (claim,) in cursor.fetchall()]
