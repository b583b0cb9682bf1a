"""Stores objects that jobs reference, as the watcher sees them, and finds them when a job is read."""

from collections.abc import Collection, Mapping
from typing import Any

from django.db import transaction

from accounts.models import Cluster
from queues.models import ClusterObject

Key = tuple[str, str]
"""(namespace, name)."""


class StoredObjects:
    """Read access to the referenced objects of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        rows = ClusterObject.objects.filter(cluster=self._cluster, kind=kind, namespace=namespace, name=name)
        manifest: dict[str, Any] | None = rows.values_list("manifest", flat=True).first()
        return manifest

    def list(self, kind: str, namespace: str = "") -> list[dict[str, Any]]:
        rows = ClusterObject.objects.filter(cluster=self._cluster, kind=kind)
        found = rows.filter(namespace=namespace) if namespace else rows
        return [*found.order_by("namespace", "name").values_list("manifest", flat=True)]


def store_cluster_objects(
    cluster: Cluster, kind: str, manifests: Mapping[Key, Mapping[str, Any]], *, gone: Collection[Key] | None
) -> bool:
    """Store objects of a kind. `gone` are those that no longer exist; None: all except the given ones. Returns whether
    anything changed."""
    rows = ClusterObject.objects.filter(cluster=cluster, kind=kind)
    there = {(row.namespace, row.name): row for row in rows}
    left = there.keys() - manifests.keys() if gone is None else there.keys() & set(gone)
    news = {key: new for key, new in manifests.items() if key not in there or there[key].manifest != new}
    if not (left or news):
        return False
    with transaction.atomic():
        ClusterObject.objects.filter(pk__in=[there[key].pk for key in left]).delete()
        for (namespace, name), manifest in news.items():
            rows.update_or_create(
                cluster=cluster, kind=kind, namespace=namespace, name=name, defaults={"manifest": manifest}
            )
    return True
