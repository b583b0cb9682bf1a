"""Which ClusterQueues and cohorts a user may see: those that the LocalQueues of their namespaces lead to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from accounts.models import Cluster
from accounts.services.access import Access
from queues.models import LocalQueue

_OF_PREEMPTOR: Final = re.compile(r"(preemptor path: [^;]*; |preemptor effective priority: [^;]*; )")


def without_preemptor(message: str) -> str:
    """What a preempted tenant may read of a preemption: not where the other's queue stands, nor what its workload is
    worth."""
    return _OF_PREEMPTOR.sub("", message)


@dataclass(frozen=True, slots=True)
class Visibility:
    """The names that may be shown; None means all."""

    cluster_queues: frozenset[str] | None

    def sees_queue(self, name: str) -> bool:
        """Whether this ClusterQueue may be shown."""
        return self.cluster_queues is None or name in self.cluster_queues

    def cohorts(self, queues: Mapping[str, Any], cohorts: Mapping[str, Any]) -> frozenset[str] | None:
        """The cohorts above the queues that may be shown, by the entries of the live numbers; None means all."""
        if self.cluster_queues is None:
            return None
        found: set[str] = set()
        for name in self.cluster_queues & queues.keys():
            cohort = queues[name]["cohort"]
            while cohort and cohort not in found:
                found.add(cohort)
                cohort = cohorts.get(cohort, {}).get("parent", "")
        return frozenset(found)


def visibility_of(access: Access, cluster: Cluster) -> Visibility:
    """What the user may see in this cluster: one query for a tenant, none for who sees everything."""
    namespaces = access.visible_namespaces()
    if namespaces is None:
        return Visibility(None)
    queues = LocalQueue.objects.filter(cluster=cluster, namespace__in=namespaces)
    return Visibility(frozenset(queues.values_list("cluster_queue_name", flat=True)))
