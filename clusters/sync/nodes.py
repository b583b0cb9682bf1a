"""Syncs nodes of the cluster to node and device rows, and records workloads whose node failed."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from django.db import DataError

from accounts.events import wake_scheduler
from accounts.models import Cluster
from clusters.client import JsonObject, Listing, WatchEvent
from gpus.manifests import configured_vendors
from gpus.models import Node
from gpus.services import ObservedNode, forget_node, observed_node, sync_node
from gpus.vendors import VENDORS
from queues.services.pods import record_node_failed, record_node_recovered
from scheduling.model.times import parse_rfc3339
from scheduling.model.vendor import DeviceVendor

_log = logging.getLogger(__name__)

FAILED_AFTER_SECONDS: Final = 30.0
"""A node that is not ready counts as failed after this time, as in Kueue."""


class NodeSync:
    """Keeps the rows in step with the nodes of one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._seen: dict[str, ObservedNode] = {}
        self._not_ready_since: dict[str, float] = {}
        self._failed: set[str] = set()

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        changed = False
        for item in items:
            if isinstance(item, Listing):
                changed |= self._replace(item.items, now)
            elif item.type == "DELETED":
                changed |= self._remove(item.object["metadata"]["name"], now)
            else:
                changed |= self._store(item.object, now)
        if changed:
            wake_scheduler(self._cluster.name)

    def tick(self, now: float) -> None:
        """Record nodes that have not been ready for too long."""
        for name, since in self._not_ready_since.items():
            if now - since >= FAILED_AFTER_SECONDS and name not in self._failed:
                self._failed.add(name)
                self._tell_of_failure(name)

    def _replace(self, nodes: Iterable[JsonObject], now: float) -> bool:
        # Store rows again that were deleted meanwhile.
        stored = set(Node.objects.filter(cluster=self._cluster).values_list("name", flat=True))
        self._seen = {name: observed for name, observed in self._seen.items() if name in stored}
        changed, present = False, set()
        for node in nodes:
            present.add(node["metadata"]["name"])
            changed |= self._store(node, now)
        # Nodes applied as manifests are deleted only through manifests.
        gone = Node.objects.filter(cluster=self._cluster, api_version="").exclude(name__in=present)
        for name in list(gone.values_list("name", flat=True)):
            changed |= self._remove(name, now)
        return changed

    def _store(self, node: JsonObject, now: float) -> bool:
        observed = observed_node(node)
        self._note_readiness(node, observed, now)
        lasting = replace(observed, annotations=observed.lasting_annotations)
        if self._seen.get(observed.name) == lasting:
            return False
        self._seen[observed.name] = lasting
        moment = datetime.fromtimestamp(now, UTC)
        try:
            return sync_node(self._cluster.pk, observed, self._vendors(), moment)
        except DataError as error:
            # An editor of a node can write values that no row can hold. Other nodes must not be held up by it.
            _log.error("Node %s of cluster %s can't be stored: %s", observed.name, self._cluster.name, error)
            return False

    def _vendors(self) -> tuple[DeviceVendor, ...]:
        return configured_vendors(self._cluster.device_plugin_configuration.get("settings") or {}, VENDORS)

    def _remove(self, name: str, now: float) -> bool:
        self._seen.pop(name, None)
        self._not_ready_since.pop(name, None)
        self._failed.discard(name)
        self._tell_of_failure(name)
        return forget_node(self._cluster.pk, name, datetime.fromtimestamp(now, UTC))

    def _note_readiness(self, node: JsonObject, observed: ObservedNode, now: float) -> None:
        if not observed.ready:
            self._not_ready_since.setdefault(observed.name, _ready_since(node, now))
            return
        self._not_ready_since.pop(observed.name, None)
        first_seen = observed.name not in self._seen
        if observed.name in self._failed or first_seen:
            self._failed.discard(observed.name)
            if not self._cluster.is_mirrored:
                record_node_recovered(self._cluster, observed.name)

    def _tell_of_failure(self, name: str) -> None:
        """Workloads hear of it, unless another scheduler looks after them."""
        if not self._cluster.is_mirrored:
            record_node_failed(self._cluster, name)


def _ready_since(node: JsonObject, now: float) -> float:
    """When the Ready condition got its present status, at most now."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("lastTransitionTime"):
            return min(now, parse_rfc3339(condition["lastTransitionTime"]))
    return now
