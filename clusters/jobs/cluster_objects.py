"""The objects that the rules for jobs look up in a running cluster: our rows, and the cluster's own objects."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from accounts.models import Cluster, Namespace
from clusters.api_objects import NAMESPACES, REPLICA_SETS, JsonObject, Kind
from clusters.client import ClusterClient
from clusters.jobs.framework.store import Objects
from clusters.jobs.registry import JOB_KINDS
from clusters.served.kueue_kinds import KUEUE_KINDS
from foundation.postgresql.instances import fetched_rows, instances
from queues.models import AdmissionCheck, ClusterQueue, PriorityClass, ResourceFlavor, WorkloadPriorityClass
from queues.services.cluster_objects import StoredObjects

_NAMED: Final = "cluster_id = %s AND name = %s"
_LOCAL_QUEUE: Final = """
    SELECT cluster_queue_name FROM queues_localqueue
    WHERE cluster_id = %s AND namespace = %s AND name = %s AND deletion_requested_at IS NULL
"""
_MAX_CACHED: Final = 10_000
_PRIORITY_CLASSES: Final = KUEUE_KINDS["WorkloadPriorityClass"][0]
_LIVE: Final[Mapping[str, Kind]] = {
    **{kind.kind: kind.resource for kind in JOB_KINDS.values()},
    NAMESPACES.kind: NAMESPACES,
    REPLICA_SETS.kind: REPLICA_SETS,
}
"""Kinds that are read from the cluster itself: namespaces, and the owners of jobs and pods."""


class RowsAndCluster:
    """Queues and classes from kueueweb's rows, owners and namespaces from the cluster.

    Objects of the cluster are cached for this many seconds; missing objects are not cached.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        cached_seconds: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._cached_seconds = cached_seconds
        self._clock = clock
        self._stored = StoredObjects(cluster)
        self._lock = threading.Lock()
        self._cached: dict[tuple[str, str, str], tuple[float, JsonObject]] = {}
        self._foreign_kinds: dict[str, Kind] = {}

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object; None if it does not exist. Raises ClusterError if the cluster does not answer."""
        reader = _ROWS.get(kind)
        if reader is not None:
            found = reader(self._cluster, namespace, name)
            # A class created a moment ago is in the cluster before the watcher has stored it.
            if found is None and kind == _PRIORITY_CLASSES.kind and self._cluster.serves_kueue:
                return self._live(_PRIORITY_CLASSES, namespace, name)
            return found
        live = _LIVE.get(kind) or (self._foreign(kind) if "." in kind else None)
        return self._stored.get(kind, namespace, name) if live is None else self._live(live, namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        """List objects that jobs refer to, as the watcher stored them, and the classes of pods."""
        if kind == "PriorityClass":
            found = instances(PriorityClass, "cluster_id = %s ORDER BY name", [self._cluster.pk])
            return [_written_class(row) for row in found]
        return self._stored.list(kind, namespace)

    def _foreign(self, name: str) -> Kind | None:
        """Return the kind named Kind.version.group, as the cluster serves it. A kind that was found is remembered."""
        if name not in self._foreign_kinds:
            kind, version, group = name.split(".", 2)
            found = self._client.kind_named(f"{group}/{version}", kind)
            if found is None:
                return None
            self._foreign_kinds[name] = found
        return self._foreign_kinds[name]

    def _live(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        key, now = (f"{kind.api_version}/{kind.kind}", namespace, name), self._clock()
        with self._lock:
            known = self._cached.get(key)
        if known is not None and known[0] > now:
            return known[1]
        found = self._client.get(kind, namespace if kind.namespaced else "", name)
        with self._lock:
            if len(self._cached) >= _MAX_CACHED:
                self._cached.clear()
            if found is None:
                self._cached.pop(key, None)
            else:
                self._cached[key] = (now + self._cached_seconds, found)
        return found


def _local_queue(cluster: Cluster, namespace: str, name: str) -> JsonObject | None:
    found = fetched_rows(_LOCAL_QUEUE, [cluster.pk, namespace, name])
    return {"spec": {"clusterQueue": found[0][0]}} if found else None


def _cluster_queue(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = instances(ClusterQueue, _NAMED, [cluster.pk, name])
    return {"spec": {"admissionChecksStrategy": {"admissionChecks": found[0].admission_checks}}} if found else None


def _admission_check(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = instances(AdmissionCheck, _NAMED, [cluster.pk, name])
    return {"spec": {"controllerName": found[0].controller_name}} if found else None


def _priority_class(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = instances(WorkloadPriorityClass, _NAMED, [cluster.pk, name])
    return {"value": found[0].value} if found else None


def _pod_priority_class(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = instances(PriorityClass, _NAMED, [cluster.pk, name])
    return _written_class(found[0]) if found else None


def _written_class(row: PriorityClass) -> JsonObject:
    return {"metadata": {"name": row.name}, "value": row.value, "globalDefault": row.global_default}


def _flavor(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = instances(ResourceFlavor, _NAMED, [cluster.pk, name])
    return {"spec": {"nodeLabels": found[0].node_labels, "tolerations": found[0].tolerations}} if found else None


_ROWS: Final[Mapping[str, Callable[[Cluster, str, str], JsonObject | None]]] = {
    "LocalQueue": _local_queue,
    "ClusterQueue": _cluster_queue,
    "AdmissionCheck": _admission_check,
    "WorkloadPriorityClass": _priority_class,
    "PriorityClass": _pod_priority_class,
    "ResourceFlavor": _flavor,
}

_KEPT: Final = frozenset({NAMESPACES.kind, "LocalQueue", "ClusterQueue", "AdmissionCheck", "ResourceFlavor"})
"""Kinds each edit of whose rows raises the generation of the configuration (`scheduler/migrations`). Classes are left
out: where kueueweb serves Kueue's objects, one may come from the cluster."""


class KeptObjects:
    """Objects of the configuration, as passes found them in rows, for as long as no row of it is edited.

    Triggers raise the generation of the configuration in the cluster's row with each edit of such a row, in the same
    transaction. Objects that are missing are looked up again: their creation is often what a job waits for.
    """

    def __init__(self, version: str = "") -> None:
        self._version = version
        self._found: dict[tuple[str, str, str], JsonObject] = {}

    def follow(self, version: str) -> None:
        """Forget the objects unless the cluster's row still has the version at which they were looked up. An empty
        version is unknown."""
        if version != self._version or not version:
            self._version, self._found = version, {}

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object if it is cached."""
        return self._found.get((kind, namespace, name))

    def keep(self, kind: str, namespace: str, name: str, found: JsonObject) -> None:
        """Cache the object, if each edit of its row increments the generation."""
        if kind in _KEPT:
            if len(self._found) >= _MAX_CACHED:
                self._found.clear()
            self._found[kind, namespace, name] = found


class OneLook:
    """The same objects, each looked up once, for the passes over one batch of jobs. Namespaces come from kueueweb's
    rows, which the watcher updates:

    a pass begins with the namespace of its job. `kept`: objects that earlier batches have looked up.
    """

    def __init__(self, cluster: Cluster, objects: Objects, kept: KeptObjects | None = None) -> None:
        self._cluster = cluster
        self._objects = objects
        self._kept = KeptObjects() if kept is None else kept
        self._found: dict[tuple[str, str, str], JsonObject | None] = {}
        self._lists: dict[tuple[str, str], list[JsonObject]] = {}

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """Return the object; None if it does not exist. Raises ClusterError if the cluster does not answer."""
        key = (kind, namespace, name)
        if key in self._found:
            return self._found[key]
        found = self._kept.get(*key)
        if found is None:
            found = self._namespace(name) if kind == NAMESPACES.kind else self._objects.get(*key)
            if found is not None:
                self._kept.keep(*key, found)
        self._found[key] = found
        return found

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        """Return all objects of a kind in a namespace, by name."""
        key = (kind, namespace)
        if key not in self._lists:
            self._lists[key] = self._objects.list(*key)
        return self._lists[key]

    def _namespace(self, name: str) -> JsonObject | None:
        found = instances(Namespace, _NAMED, [self._cluster.pk, name])
        return {"metadata": {"name": name, "labels": found[0].labels}} if found else None
