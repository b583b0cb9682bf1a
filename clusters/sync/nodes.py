"""Syncs nodes of the cluster to node and device rows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from django.db import DataError

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.sync.node_failures import NodeFailures
from foundation.postgresql.instances import fetched_rows
from foundation.wake_ups import wake_scheduler
from gpus.manifests import configured_vendors
from gpus.services import ObservedNode, forget_node, observed_node, sync_node
from gpus.vendors import VENDORS
from scheduling.model.vendor import DeviceVendor

_log = logging.getLogger(__name__)


class NodeSync:
    """Keeps the rows in step with the nodes of one cluster.

    * failures: receives the states of the nodes; None if another scheduler manages the workloads.
    """

    def __init__(self, cluster: Cluster, failures: NodeFailures | None = None) -> None:
        self._cluster = cluster
        self._failures = failures
        self._seen: dict[str, ObservedNode] = {}
        self._versions: dict[str, tuple[str, str]] = {}
        """The uid and version of each node as last read: most nodes of a list are unchanged."""

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

    def _replace(self, nodes: Iterable[JsonObject], now: float) -> bool:
        # Store rows again that were deleted meanwhile.
        stored = dict(fetched_rows("SELECT name, api_version FROM gpus_node WHERE cluster_id = %s", [self._cluster.pk]))
        self._seen = {name: observed for name, observed in self._seen.items() if name in stored}
        changed, present = False, set()
        for node in nodes:
            present.add(node["metadata"]["name"])
            changed |= self._store(node, now)
        # Nodes applied as manifests are deleted only through manifests.
        for name in sorted(name for name, version in stored.items() if not version and name not in present):
            changed |= self._remove(name, now)
        return changed

    def _store(self, node: JsonObject, now: float) -> bool:
        metadata = node["metadata"]
        version = (metadata.get("uid", ""), metadata.get("resourceVersion", ""))
        if metadata["name"] in self._seen and all(version) and self._versions.get(metadata["name"]) == version:
            return False
        observed = observed_node(node)
        if self._failures is not None:
            self._failures.note(node, observed, now)
        lasting = replace(observed, annotations=observed.lasting_annotations)
        changed = False
        if self._seen.get(observed.name) != lasting:
            moment = datetime.fromtimestamp(now, UTC)
            try:
                changed = sync_node(self._cluster.pk, observed, self._vendors(), moment)
            except DataError as error:
                # An editor of a node can write values that fit no column. That must not delay other nodes.
                _log.error("Node %s of cluster %s can't be stored: %s", observed.name, self._cluster.name, error)
        self._seen[observed.name], self._versions[observed.name] = lasting, version
        return changed

    def _vendors(self) -> tuple[DeviceVendor, ...]:
        return configured_vendors(self._cluster.device_plugin_configuration.get("settings") or {}, VENDORS)

    def _remove(self, name: str, now: float) -> bool:
        self._seen.pop(name, None)
        self._versions.pop(name, None)
        if self._failures is not None:
            self._failures.note_gone(name)
        return forget_node(self._cluster.pk, name, datetime.fromtimestamp(now, UTC), keeps_applied=True)
