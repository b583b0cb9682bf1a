"""Ends the workloads of namespaces that are being deleted in the cluster, or no longer exist."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Final

from django.db.models import QuerySet

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import NAMESPACES
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.framework.manifest import is_being_deleted
from clusters.sync.present import name_key, present
from queues.manifests.pod_group import POD_GROUP
from queues.models import Workload
from queues.services.workloads import cancel, record_finished
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_ACTOR: Final = "watcher"
_GONE: Final = "The namespace is no longer in the cluster"


class EndedNamespaceSync:
    """Follows the namespaces of one cluster.

    The namespace controller deletes all objects of a namespace. The watches report the end of jobs. A group of pods is
    no object, so its workload is cancelled here, and its pods lose the finalizers that would block the deletion.
    """

    def __init__(self, cluster: Cluster, client: ClusterClient) -> None:
        self._cluster = cluster
        self._client = client

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        if self._cluster.is_mirrored:
            return
        found = present(items, name_key)
        moment = datetime.fromtimestamp(now, UTC)
        ending = [name for name, namespace in found.objects.items() if is_being_deleted(namespace)]
        if ending:
            groups = self._unfinished(ending).filter(job__kind=POD_GROUP, deletion_requested_at=None)
            cancel(self._cluster, groups.values_list("namespace", "name"), actor=_ACTOR, now=moment)
        gone = set(found.gone) | (self._missing(found.objects) if found.listed else set())
        if gone:
            keys = self._unfinished(gone).values_list("namespace", "name")
            record_finished(self._cluster, keys, FinishedReason.OWNER_NOT_FOUND, _GONE, actor=_ACTOR, now=moment)

    def _unfinished(self, namespaces: Collection[str]) -> QuerySet[Workload]:
        rows = Workload.objects.filter(cluster=self._cluster, job__found_in_cluster=True, namespace__in=namespaces)
        return rows.exclude(status=WorkloadStatus.FINISHED)

    def _missing(self, listed: Collection[str]) -> set[str]:
        """Return the namespaces of found jobs whose deletion the cluster confirms: a list may be older than the
        jobs."""
        rows = Workload.objects.filter(cluster=self._cluster, job__found_in_cluster=True)
        used = set(rows.exclude(status=WorkloadStatus.FINISHED).values_list("namespace", flat=True).distinct())
        return {name for name in used - set(listed) if self._is_gone(name)}

    def _is_gone(self, name: str) -> bool:
        try:
            return self._client.get(NAMESPACES, "", name) is None
        except ClusterError:
            return False  # the next list tries again
