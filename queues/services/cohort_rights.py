"""The rights of a queue admin: the ClusterQueues, Cohorts and LocalQueues below their cohorts."""

from collections.abc import Iterable

from accounts.exceptions import NotPermitted
from accounts.models import Cluster
from accounts.services.access import TREE_KINDS, Access
from queues.models import ClusterQueue, Cohort, LocalQueue

ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


def require_below(access: Access, cluster: Cluster, objects: Iterable[ObjectKey]) -> None:
    """Raise `NotPermitted` for existing objects that are not below the user's cohorts.

    Called before and after a change, in its transaction, so that no object is taken from others or given away. A
    cohort is not below itself: the quota of its whole subtree is for those above it.
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
    """Raise `NotPermitted` unless the user may change this object, as a cluster admin or as queue admin above it."""
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
    """The tree of cohorts by the present rows."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._parents = dict(Cohort.objects.filter(cluster=cluster).values_list("name", "parent_name"))
        self.queues = dict(ClusterQueue.objects.filter(cluster=cluster).values_list("name", "cohort_name"))

    def above(self, kind: str, namespace: str, name: str) -> frozenset[str] | None:
        """The cohorts above an object; None if it does not exist. Parents may be missing or form a cycle."""
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
