"""Kueue's visibility API: the pending workloads of a ClusterQueue or a LocalQueue, with their positions.

Two doors serve it: an API server behind the cluster's (`clusters.webhook.visibility`), and the web process
(`kueueweb.wire.pending_views`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from accounts.services.object_status import timestamp
from queues.models import Workload
from queues.querysets import PendingPositions
from queues.services.workload_objects import owner_references

JsonObject = dict[str, Any]

GROUP: Final = "visibility.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")
"""The preferred version first; both have the same content."""
PENDING_WORKLOADS: Final = "pendingworkloads"
"""The subresource of a queue."""
SUMMARY: Final = "PendingWorkloadsSummary"
QUEUES: Final = (("clusterqueues", "ClusterQueue", False), ("localqueues", "LocalQueue", True))
"""(plural, kind, whether it has a namespace) of the queues that have the subresource."""
_LIMIT: Final = 1000
_MAX_LIMIT: Final = 100_000
_MAX_OFFSET: Final = 2**31
_WHOLE_NUMBER: Final = re.compile(r"-?[0-9]{1,30}")
_OWNER: Final = ("apiVersion", "kind", "name", "uid")


def limited(positions: PendingPositions, query: Mapping[str, str]) -> PendingPositions:
    """Return the part of the positions that `limit` and `offset` select. Raises ValueError with a message for the
    client."""
    limit, offset = (query.get(name, "0") for name in ("limit", "offset"))
    if not (_WHOLE_NUMBER.fullmatch(limit) and _WHOLE_NUMBER.fullmatch(offset)):
        raise ValueError("limit, offset: Invalid value: must be whole numbers")
    found = int(limit) or _LIMIT  # as Kueue's API server completes the options
    return replace(positions, limit=min(max(found, 0), _MAX_LIMIT), offset=min(max(int(offset), 0), _MAX_OFFSET))


def summary(positions: PendingPositions, version: str) -> JsonObject:
    """Return a PendingWorkloadsSummary."""
    kind = {"kind": SUMMARY, "apiVersion": f"{GROUP}/{version}"}
    return {**kind, "metadata": {}, "items": list(_items(positions.read()))}


def _items(positions: Iterable[tuple[int, int, int]]) -> Iterable[JsonObject]:
    found = list(positions)
    rows = Workload.objects.filter(pk__in=[pk for pk, _, _ in found]).select_related("job").in_bulk()
    for pk, position, own in found:
        if pk not in rows:
            continue
        row = rows[pk]
        metadata: JsonObject = {
            "name": row.name,
            "namespace": row.namespace,
            "creationTimestamp": timestamp(row.created_at),
        }
        owners = owner_references(row)
        if owners:
            metadata["ownerReferences"] = [{key: owner[key] for key in _OWNER} for owner in owners]
        yield {
            "metadata": metadata,
            "priority": row.priority,
            "localQueueName": row.queue_name,
            "positionInClusterQueue": position,
            "positionInLocalQueue": own,
        }


def group() -> JsonObject:
    """Return the group, as an entry of an APIGroupList."""
    versions = [{"groupVersion": f"{GROUP}/{version}", "version": version} for version in VERSIONS]
    return {"name": GROUP, "versions": versions, "preferredVersion": versions[0]}


def resource_list(version: str) -> JsonObject:
    """Return the APIResourceList of a version."""
    resources: list[JsonObject] = []
    for plural, kind, namespaced in QUEUES:
        common = {"singularName": "", "namespaced": namespaced}
        resources += [
            {"name": plural, **common, "kind": kind, "verbs": []},
            {"name": f"{plural}/{PENDING_WORKLOADS}", **common, "kind": SUMMARY, "verbs": ["get"]},
        ]
    return {
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{GROUP}/{version}", "resources": resources,
    }  # fmt: skip
