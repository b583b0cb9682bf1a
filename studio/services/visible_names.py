"""The names in an answer that its reader may see; their numbers stay."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from accounts.models import Cluster
from accounts.services.access import Access
from queues.models import ClusterQueue, Cohort
from queues.services.visibility import Reader, Visibility, visibility_of
from scheduling.outlook import NodeKind


class VisibleNames:
    """The rights of one reader of an answer."""

    def __init__(self, access: Access, cluster: Cluster) -> None:
        self.access = access
        self._cluster = cluster
        self._reader = Reader(access, cluster)

    def workload(self, key: str) -> str:
        """Return the key of a workload; empty if the reader may not see it."""
        return key if self.access.sees(key.partition("/")[0]) else ""

    def cluster_queue(self, name: str) -> str:
        """Return the name of a ClusterQueue; empty if the reader may not see it."""
        return name if self.sees_queue(name) else ""

    @property
    def cluster_queues(self) -> frozenset[str] | None:
        """The ClusterQueues that the reader may see; None means all."""
        return self._visibility.cluster_queues

    def sees_queue(self, name: str) -> bool:
        """Return whether the reader may see a ClusterQueue."""
        return self._visibility.sees_queue(name)

    def sees_holder(self, kind: str, name: str) -> bool:
        """Return whether the reader may see a holder of quota (NodeKind)."""
        if kind == NodeKind.CLUSTER_QUEUE:
            return self.sees_queue(name)
        return self._cohorts is None or name in self._cohorts

    def message(self, text: str) -> str:
        """Return a message without names that the reader may not see."""
        return self._reader.message(text)

    @cached_property
    def _visibility(self) -> Visibility:
        return visibility_of(self.access, self._cluster)

    @cached_property
    def _cohorts(self) -> frozenset[str] | None:
        if self._visibility.cluster_queues is None:
            return None
        queues: Mapping[str, Any] = {
            name: {"cohort": cohort}
            for name, cohort in ClusterQueue.objects.filter(cluster=self._cluster).values_list("name", "cohort_name")
        }
        parents = Cohort.objects.filter(cluster=self._cluster).values_list("name", "parent_name")
        above = self._visibility.cohorts(queues, {name: {"parent": parent} for name, parent in parents})
        return (above or frozenset()) | self.access.cohorts
