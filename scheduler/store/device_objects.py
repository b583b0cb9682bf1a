"""Turns the watcher's rows of dynamic resource allocation into objects of the rules."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final, TypeVar

import orjson
from django.db import connection

from queues.models import ClusterObject
from scheduling.devices.claims.objects import DeviceId, DeviceObjects
from scheduling.devices.claims.reading import read_claim_spec, read_class, read_pools, read_taken

_log = logging.getLogger(__name__)

DEVICE_OBJECT: Final = "deviceobject"
"""Their kind in a Change, whose key is `kind namespace/name`."""
DEVICE_KINDS: Final = ("DeviceClass", "ResourceSlice", "ResourceClaimTemplate", "ResourceClaim")

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
    cluster_id: int, kinds: Collection[str] = DEVICE_KINDS, before: DeviceObjects = _NONE
) -> DeviceObjects:
    """The objects of resource.k8s.io in a cluster that affect decisions. Objects of the given kinds are read again, and
    so are the devices that claims hold; the others are those of `before`."""
    by_kind: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    rows = ClusterObject.objects.filter(cluster_id=cluster_id, kind__in=set(kinds) - {"ResourceClaim"})
    for kind, namespace, name, manifest in rows.values_list("kind", "namespace", "name", "manifest"):
        by_kind[kind][f"{namespace}/{name}" if namespace else name] = manifest
    found = replace(before, taken=_taken(cluster_id))
    if "DeviceClass" in kinds:
        found = replace(found, classes=_readable(by_kind["DeviceClass"], read_class))
    if "ResourceSlice" in kinds:
        found = replace(found, pools=read_pools(_readable(by_kind["ResourceSlice"], _checked_slice).values()))
    if "ResourceClaimTemplate" in kinds:
        specs = _readable(
            by_kind["ResourceClaimTemplate"], lambda each: read_claim_spec(each["spec"].get("spec") or {})
        )
        found = replace(found, templates=specs)
    return found


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


def _taken(cluster_id: int) -> frozenset[DeviceId]:
    with connection.cursor() as cursor:
        cursor.execute(_TAKEN, [cluster_id])
        claims = cursor.fetchall()
    return frozenset(device for (claim,) in claims for device in read_taken(orjson.loads(claim)))
