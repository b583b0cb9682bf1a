"""Permission to change workloads and queues: owners change workloads, queue admins the objects below their cohorts.

A Namespace may restrict changes of a workload to its owner and admins. Without the restriction every submitter of the
namespace may change it, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from django.db.models import Q

from accounts.kinds.feature_gates import CONCURRENT_ADMISSION, is_on
from accounts.models import Cluster, Namespace
from accounts.services.access import TREE_KINDS, Access
from accounts.services.apply_result import Submitted
from accounts.services.reach import Reach
from foundation.exceptions import NotPermitted
from foundation.shown_past import present_rows
from queues.manifests.job import JobManifest
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.workload import WorkloadSpec
from queues.models import ClusterQueue, Cohort, LocalQueue, Workload
from scheduling.manifest import LocatedError, MistakeReason

ONLY_OWNERS: Final = "kueueweb.io/only-owners-change"
"""The annotation of a Namespace; "true" chooses it. Only cluster admins write Namespaces."""

_REMEDY: Final = "Ask its owner, or an admin of the namespace."


def require_owner(cluster: Cluster, access: Access, keys: Iterable[tuple[str, str]]) -> None:
    """Raise `NotPermitted` for workloads (namespace, name) of other users, in namespaces where only owners may change
    them; variants (concurrent admission) are refused everywhere."""
    wanted = set(keys)
    _refuse_variants(cluster, dict.fromkeys(wanted, (0, "name")))
    closed = _closed_to(cluster, access, {namespace for namespace, _ in wanted})
    if not closed:
        return
    names = {name for namespace, name in wanted if namespace in closed}
    rows = Workload.objects.filter(cluster=cluster, namespace__in=closed, name__in=names)
    foreign = rows.exclude(submitted_by=access.username).order_by("namespace", "name")
    found = [row for row in foreign.values_list("namespace", "name", "submitted_by") if row[:2] in wanted]
    _refuse([_mistake(0, "name", f"{namespace}/{name}", owner) for namespace, name, owner in found])


def require_owner_of_submitted(
    cluster: Cluster,
    access: Access,
    jobs: Sequence[Submitted[JobManifest]],
    workloads: Sequence[Submitted[WorkloadSpec]],
) -> None:
    """Raise `NotPermitted` for manifests that would replace workloads or jobs of other owners."""
    places = {
        (found.spec.namespace, found.spec.name): (found.report.document, found.at("metadata.name"))
        for found in workloads
    }
    _refuse_variants(cluster, places)
    namespaces = {job.spec.meta.namespace for job in jobs} | {found.spec.namespace for found in workloads}
    closed = _closed_to(cluster, access, namespaces)
    if not closed:
        return
    keys = {_owner_key(job.spec) for job in jobs} | {
        ("Workload", found.spec.namespace, found.spec.name) for found in workloads
    }
    owners = _owners(cluster, access, closed, {name for _, _, name in keys})
    mistakes = []
    for submitted in jobs:
        kind, namespace, name = _owner_key(submitted.spec)
        owner = owners.get((kind, namespace, name))
        if owner is not None:
            place = submitted.at("metadata.name")
            mistakes.append(_mistake(submitted.report.document, place, f"{namespace}/{name}", owner))
    for found in workloads:
        owner = owners.get(("Workload", found.spec.namespace, found.spec.name))
        if owner is not None:
            place = found.at("metadata.name")
            mistakes.append(_mistake(found.report.document, place, f"{found.spec.namespace}/{found.spec.name}", owner))
    _refuse(mistakes)


def _refuse_variants(cluster: Cluster, places: Mapping[tuple[str, str], tuple[int, str]]) -> None:
    """Raise `NotPermitted` for variants, which follow their parents. Without the feature gate there are none."""
    if not (places and is_on(cluster.configuration, CONCURRENT_ADMISSION)):
        return
    namespaces, names = {key[0] for key in places}, {key[1] for key in places}
    rows = Workload.objects.filter(cluster=cluster, namespace__in=namespaces, name__in=names).exclude(parent_name="")
    found = [row for row in rows.order_by("pk").values_list("namespace", "name", "parent_name") if row[:2] in places]
    _refuse(
        [
            LocatedError(
                *places[namespace, name],
                f"{namespace}/{name}",
                f"is a variant of Workload {namespace}/{parent} and follows it",
                f"Change Workload {namespace}/{parent}.",
                MistakeReason.NOT_PERMITTED,
            )
            for namespace, name, parent in found
        ],
        "Change the workload that it is a variant of.",
    )


def _closed_to(cluster: Cluster, access: Access, namespaces: set[str]) -> list[str]:
    """Return the namespaces in which this user may change only their own workloads."""
    mine = [name for name in namespaces if not access.may("protect", "Workload", name)]
    if not mine:
        return []
    chosen = Namespace.objects.filter(cluster=cluster, name__in=mine).filter(**{f"annotations__{ONLY_OWNERS}": "true"})
    return list(chosen.values_list("name", flat=True))


def _owners(
    cluster: Cluster, access: Access, namespaces: list[str], names: set[str]
) -> dict[tuple[str, str, str], str]:
    """Return the owners of workloads and jobs with these names that are not this user, by (kind, namespace, name)."""
    named = Q(name__in=names) | Q(job__name__in=names)
    rows = Workload.objects.filter(named, cluster=cluster, namespace__in=namespaces).exclude(
        submitted_by=access.username
    )
    found: dict[tuple[str, str, str], str] = {}
    for namespace, name, owner, kind, job in rows.values_list(
        "namespace", "name", "submitted_by", "job__kind", "job__name"
    ):
        found["Workload", namespace, name] = owner
        if kind:
            found[kind, namespace, job] = owner
    return found


def _owner_key(job: JobManifest) -> tuple[str, str, str]:
    """Return the key under which the owner is found; for a pod of a group, the group's key."""
    if job.group is not None:
        return POD_GROUP, job.meta.namespace, job.group.name
    return job.kind, job.meta.namespace, job.meta.name


def _mistake(document: int, path: str, value: str, owner: str) -> LocatedError:
    whose = f"was submitted by {owner}" if owner else "was created in the cluster"
    rule = f"{whose}, and in this namespace only its owner and admins may change it"
    return LocatedError(document, path, value, rule, _REMEDY, MistakeReason.NOT_PERMITTED)


def _refuse(mistakes: Sequence[LocatedError], remedy: str = _REMEDY) -> None:
    if mistakes:
        first = mistakes[0]
        more = f" ({len(mistakes) - 1} more objects are concerned.)" if len(mistakes) > 1 else ""
        raise NotPermitted(f"{first.value} {first.rule}. {remedy} Nothing was changed.{more}", mistakes)


ObjectKey = tuple[str, str, str]
"""Kind, namespace and name."""


def require_below(access: Access, cluster: Cluster, objects: Iterable[ObjectKey], *, may_create: bool = False) -> None:
    """Raise `NotPermitted` for existing objects that are not below the user's cohorts, and alike for missing ones in
    namespaces that the user may not read, unless the change `may_create` them: the answer does not tell whether they
    exist.

    Called before and after a change, in its transaction, so that no object is taken from others or given away. A
    cohort is not below itself: the quota of its whole subtree is for those above it.
    """
    found = [key for key in objects if key[0] in TREE_KINDS and not access.may("submit", key[0], key[1])]
    if not found:
        return
    tree = _trees([cluster.pk])[cluster.pk]
    for kind, namespace, name in found:
        above = tree.above(kind, namespace, name)
        if above is None and (may_create or not namespace or access.sees(namespace)):
            continue
        if access.cohorts.isdisjoint(above or ()):
            key = f"{namespace}/{name}" if namespace else name
            raise NotPermitted(
                f"{access.username} may not change {kind} {key}: it is not below a cohort of which "
                f"{access.username} is queue-admin ({', '.join(sorted(access.cohorts)) or 'none'})."
            )


def require_edit(access: Access, cluster: Cluster, kind: str, name: str) -> None:
    """Raise `NotPermitted` unless the user may change this object, as a cluster admin or as queue admin above it."""
    if not access.may_in_tree(kind):
        access.require("submit", kind)
    require_below(access, cluster, [(kind, "", name)])


def queues_below(reach: Reach) -> dict[int, frozenset[str]]:
    """By cluster: the ClusterQueues below the user's cohorts now. Two queries at most, however many clusters."""
    cohorts = {cluster.pk: reach.access(cluster.pk).cohorts for cluster in reach.clusters}
    with present_rows():
        trees = _trees([cluster.pk for cluster in reach.clusters if cohorts[cluster.pk]])
    found = dict.fromkeys(cohorts, frozenset[str]())
    for pk, tree in trees.items():
        found[pk] = frozenset(
            name for name in tree.queues if not cohorts[pk].isdisjoint(tree.above("ClusterQueue", "", name) or ())
        )
    return found


def cohorts_above(cluster_id: int, queues: Iterable[str]) -> frozenset[str]:
    """Return the cohorts above these ClusterQueues."""
    tree = _trees([cluster_id])[cluster_id]
    return frozenset[str]().union(*(tree.above("ClusterQueue", "", name) or () for name in queues))


class _Tree:
    """The tree of cohorts by the rows."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self.parents: dict[str, str] = {}
        self.queues: dict[str, str] = {}

    def above(self, kind: str, namespace: str, name: str) -> frozenset[str] | None:
        """Return the cohorts above an object; None if it does not exist. Parents may be missing or form a cycle."""
        if kind == "Cohort":
            return self._ancestors(self.parents[name]) if name in self.parents else None
        if kind == "LocalQueue":
            rows = LocalQueue.objects.filter(cluster_id=self._cluster_id, namespace=namespace, name=name)
            queue = rows.values_list("cluster_queue_name", flat=True).first()
            return None if queue is None else self._ancestors(self.queues.get(queue, ""))
        return self._ancestors(self.queues[name]) if name in self.queues else None

    def _ancestors(self, cohort: str) -> frozenset[str]:
        found: set[str] = set()
        while cohort and cohort not in found:
            found.add(cohort)
            cohort = self.parents.get(cohort, "")
        return frozenset(found)


def _trees(cluster_ids: Sequence[int]) -> dict[int, _Tree]:
    """Return the tree of each cluster by its key, in two queries."""
    trees = {pk: _Tree(pk) for pk in cluster_ids}
    if not trees:
        return trees
    cohorts = Cohort.objects.filter(cluster__in=cluster_ids).values_list("cluster_id", "name", "parent_name")
    for pk, name, parent in cohorts:
        trees[pk].parents[name] = parent
    queues = ClusterQueue.objects.filter(cluster__in=cluster_ids).values_list("cluster_id", "name", "cohort_name")
    for pk, name, cohort in queues:
        trees[pk].queues[name] = cohort
    return trees
