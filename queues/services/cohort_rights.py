"""What a queue admin may touch: ClusterQueues, cohorts and LocalQueues below the cohorts that it is bound to."""

from collections.abc import Iterable

from accounts.exceptions import NotPermitted
from accounts.models import Cluster
from accounts.services.access import TREE_KINDS, Access
from queues.models import ClusterQueue, Cohort, LocalQueue

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


def require_below(access: Access, cluster: Cluster, objects: Iterable[ObjectKey]) -> None:
    """Raises `NotPermitted` for objects of the tree that are there and not below the user's cohorts.

    Asked before a change and after it, in its transaction: nothing is taken from others, and nothing is given away. The
    cohort itself is not below itself: what its subtree has in all is for those who stand above.
    """
    found = [key for key in objects if key[0] in TREE_KINDS and not access.may("submit", key[0], key[1])]
    if not found:
        return
    tree = _Tree(cluster)
    for kind, namespace, name in found:
        above = tree.above(kind, namespace, name)
        if above is not None and access.cohorts.isdisjoint(above):
            key = f"{namespace}/{name}" if namespace else name
            raise NotPermitted(
                f"{access.username} may not change {kind} {key}: it is not below a cohort that "
                f"{access.username} is queue-admin of ({', '.join(sorted(access.cohorts)) or 'none'})."
            )


def require_edit(access: Access, cluster: Cluster, kind: str, name: str) -> None:
    """Raises `NotPermitted` unless the user may change this object, as a cluster admin or above it in the tree."""
    if not access.may_in_tree(kind):
        access.require("submit", kind)
    require_below(access, cluster, [(kind, "", name)])


def queues_below(access: Access, cluster: Cluster) -> frozenset[str]:
    """The ClusterQueues below the user's cohorts."""
    if not access.cohorts:
        return frozenset()
    tree = _Tree(cluster)
    return frozenset(
        name for name in tree.queues if not access.cohorts.isdisjoint(tree.above("ClusterQueue", "", name) or ())
    )


class _Tree:
    """The tree of cohorts as the rows say it now."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._parents = dict(Cohort.objects.filter(cluster=cluster).values_list("name", "parent_name"))
        self.queues = dict(ClusterQueue.objects.filter(cluster=cluster).values_list("name", "cohort_name"))

    def above(self, kind: str, namespace: str, name: str) -> frozenset[str] | None:
        """The cohorts above an object; None where there is no such object. Parents may be missing, or form a cycle."""
        if kind == "Cohort":
            return self._ancestors(self._parents[name]) if name in self._parents else None
        if kind == "LocalQueue":
            rows = LocalQueue.objects.filter(cluster=self._cluster, namespace=namespace, name=name)
            queue = rows.values_list("cluster_queue_name", flat=True).first()
            return None if queue is None else self._ancestors(self.queues.get(queue, ""))
        return self._ancestors(self.queues[name]) if name in self.queues else None

    def _ancestors(self, cohort: str) -> frozenset[str]:
        found: set[str] = set()
        while cohort and cohort not in found:
            found.add(cohort)
            cohort = self._parents.get(cohort, "")
        return frozenset(found)
