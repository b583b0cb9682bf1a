"""What the rules look up, in a cluster that runs: our rows, and the cluster's own objects."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from accounts.models import MIRRORED_MODES, Cluster
from clusters.client import NAMESPACES, REPLICA_SETS, ClusterClient, JsonObject, Kind
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.framework.manifest import labels_of, name_of, namespace_of, uid_of
from clusters.jobs.integrations import job_context
from clusters.jobs.objects import JOB_UID_LABEL
from clusters.jobs.registry import JOB_KINDS
from clusters.webhook.admission import Standing
from gpus.manifests import configured_vendors
from gpus.vendors import VENDORS
from queues.models import AdmissionCheck, ClusterQueue, Job, LocalQueue, Workload, WorkloadPriorityClass
from queues.services.cluster_objects import StoredObjects
from scheduling.model.vendor import DeviceVendor
from scheduling.model.vocabulary import WorkloadStatus

_CACHED_SECONDS: Final = 2.0
_MAX_CACHED: Final = 10_000
_LIVE: Final[Mapping[str, Kind]] = {
    **{kind.kind: kind.resource for kind in JOB_KINDS.values()},
    NAMESPACES.kind: NAMESPACES,
    REPLICA_SETS.kind: REPLICA_SETS,
}
"""What the cluster itself is asked for: namespaces, and the owners of jobs and pods."""


class RowsAndCluster:
    """Queues and classes from our rows, owners and namespaces from the cluster.

    What the cluster gave is cached for two seconds: the pods of a job come in bursts, and have one owner. That
    something is not there is not cached.
    """

    def __init__(self, cluster: Cluster, client: ClusterClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._client = client
        self._clock = clock
        self._stored = StoredObjects(cluster)
        self._lock = threading.Lock()
        self._cached: dict[tuple[str, str, str], tuple[float, JsonObject]] = {}

    def get(self, kind: str, namespace: str, name: str) -> JsonObject | None:
        """The object, or None. Raises ClusterError where the cluster does not answer."""
        reader = _ROWS.get(kind)
        if reader is not None:
            return reader(self._cluster, namespace, name)
        if kind in _LIVE:
            return self._live(_LIVE[kind], namespace, name)
        return self._stored.get(kind, namespace, name)

    def list(self, kind: str, namespace: str = "") -> list[JsonObject]:
        """Objects that jobs refer to, as the watcher stored them."""
        return self._stored.list(kind, namespace)

    def _live(self, kind: Kind, namespace: str, name: str) -> JsonObject | None:
        key, now = (kind.kind, namespace, name), self._clock()
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
                self._cached[key] = (now + _CACHED_SECONDS, found)
        return found


def _local_queue(cluster: Cluster, namespace: str, name: str) -> JsonObject | None:
    rows = LocalQueue.objects.filter(cluster=cluster, namespace=namespace, name=name, deletion_requested_at=None)
    found = rows.values_list("cluster_queue_name", flat=True).first()
    return None if found is None else {"spec": {"clusterQueue": found}}


def _cluster_queue(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = ClusterQueue.objects.filter(cluster=cluster, name=name).values_list("admission_checks", flat=True).first()
    return None if found is None else {"spec": {"admissionChecksStrategy": {"admissionChecks": found}}}


def _admission_check(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    found = AdmissionCheck.objects.filter(cluster=cluster, name=name).values_list("controller_name", flat=True).first()
    return None if found is None else {"spec": {"controllerName": found}}


def _priority_class(cluster: Cluster, _namespace: str, name: str) -> JsonObject | None:
    rows = WorkloadPriorityClass.objects.filter(cluster=cluster, name=name)
    found = rows.values_list("value", flat=True).first()
    return None if found is None else {"value": found}


_ROWS: Final[Mapping[str, Callable[[Cluster, str, str], JsonObject | None]]] = {
    "LocalQueue": _local_queue,
    "ClusterQueue": _cluster_queue,
    "AdmissionCheck": _admission_check,
    "WorkloadPriorityClass": _priority_class,
}


class ClusterSurroundings:
    """The surroundings of the jobs of one cluster. `trusted`: the accounts by which we write to it."""

    def __init__(self, cluster: Cluster, client: ClusterClient, trusted: frozenset[str]) -> None:
        self.trusted = trusted
        self._cluster = cluster
        self._objects = RowsAndCluster(cluster, client)

    def observes_only(self) -> bool:
        return self._column("mode") in MIRRORED_MODES

    def context(self) -> JobContext:
        return job_context(self._column("configuration"), self._objects)

    def vendors(self) -> Sequence[DeviceVendor]:
        configured = self._column("device_plugin_configuration")
        return configured_vendors(configured.get("settings") or {}, VENDORS)

    def _column(self, name: str) -> Any:
        return Cluster.objects.filter(pk=self._cluster.pk).values_list(name, flat=True).get()

    def standing(self, kind: JobKind, job: JsonObject) -> Standing:
        """By the rows of its workloads. Anybody can write a label: it counts on a job of the row's name only."""
        uids = {found for text in (uid_of(job), labels_of(job).get(JOB_UID_LABEL, "")) if (found := _uid(text))}
        rows = Job.objects.filter(
            cluster=self._cluster, kind=kind.kind, namespace=namespace_of(job), name=name_of(job), uid__in=uids
        )
        unfinished = Workload.objects.filter(job__in=rows).exclude(status=WorkloadStatus.FINISHED)
        states = list(unfinished.values_list("status", "evicted_at"))
        if not states:
            return Standing.UNKNOWN
        admitted = any(status == WorkloadStatus.ADMITTED and evicted_at is None for status, evicted_at in states)
        return Standing.ADMITTED if admitted else Standing.WAITING


def _uid(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
