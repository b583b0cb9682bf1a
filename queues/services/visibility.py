"""The objects that a user may see: the ClusterQueues of their namespaces' LocalQueues, and the cohorts above."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

from accounts.models import Cluster
from accounts.services.access import Access
from accounts.services.reach import Reach
from foundation.shown_past import current_past, present_rows
from queues.models import LocalQueue
from queues.services.owners import cohorts_above, queues_below

HIDDEN_QUEUE: Final = "its ClusterQueue"
"""Stands in messages for a name that the reader may not see."""
_PREEMPTOR_PATH: Final = re.compile(r"preemptor path: ([^;]*)(?:; |$)")
_OF_PREEMPTOR: Final = re.compile(r"preemptor (?:path|effective priority): [^;]*(?:; |$)")
_OF_VICTIM: Final = re.compile(r"Preempted ([^/\s]+)/\S+ \((\w+)\)")


@dataclass(frozen=True, slots=True)
class Visibility:
    """The names that may be shown; None means all. `cohorts_now`: of the past only the cohorts that are above those
    ClusterQueues now may be shown."""

    cluster_queues: frozenset[str] | None
    cohorts_now: frozenset[str] | None = None

    def sees_queue(self, name: str) -> bool:
        """Return whether this ClusterQueue may be shown."""
        return self.cluster_queues is None or name in self.cluster_queues

    def cohorts(self, queues: Mapping[str, Any], cohorts: Mapping[str, Any]) -> frozenset[str] | None:
        """Return the cohorts above the visible queues, from the entries of the live figures; None means all cohorts."""
        if self.cluster_queues is None:
            return None
        found: set[str] = set()
        for name in self.cluster_queues & queues.keys():
            cohort = queues[name]["cohort"]
            while cohort and cohort not in found:
                found.add(cohort)
                cohort = cohorts.get(cohort, {}).get("parent", "")
        return frozenset(found if self.cohorts_now is None else found & self.cohorts_now)

    def sees_cohort(self, name: str) -> bool:
        """Return whether the cohort of a visible ClusterQueue may be named."""
        return self.cohorts_now is None or name in self.cohorts_now


def visibility_of(access: Access, cluster: Cluster) -> Visibility:
    """Return what the user may see in this cluster: one query for a tenant, none for users who see everything."""
    return visibilities_of(Reach([(cluster, access)]))[cluster.pk]


def visibilities_of(reach: Reach) -> dict[int, Visibility]:
    """Return what the user may see now, by cluster: as many queries for several clusters as for one."""
    past = current_past()
    with present_rows():
        found = _present_visibilities(reach)
        return found if past is None else {pk: _with_cohorts(pk, seen) for pk, seen in found.items()}


def _with_cohorts(cluster_id: int, seen: Visibility) -> Visibility:
    if seen.cluster_queues is None:
        return seen
    return replace(seen, cohorts_now=cohorts_above(cluster_id, seen.cluster_queues))


def _present_visibilities(reach: Reach) -> dict[int, Visibility]:
    tenancies = Reach(
        (cluster, reach.access(cluster.pk))
        for cluster in reach.clusters
        if not reach.access(cluster.pk).sees_everything
    )
    found = {cluster.pk: Visibility(None) for cluster in reach.clusters}
    if not tenancies.clusters:
        return found
    own: dict[int, set[str]] = {cluster.pk: set() for cluster in tenancies.clusters}
    queues = LocalQueue.objects.filter(tenancies.rows_in_namespaces())
    for pk, name in queues.values_list("cluster_id", "cluster_queue_name"):
        own[pk].add(name)
    below = queues_below(tenancies)
    return found | {pk: Visibility(frozenset(names) | below[pk]) for pk, names in own.items()}


class _Visibilities:
    """The visibility in each cluster, read at its first use."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    @cached_property
    def found(self) -> dict[int, Visibility]:
        return visibilities_of(self._reach)


class Reader:
    """Removes from messages the names that the reader may not see: the position of a preemptor's queue and its
    workload's priority, unless they see that queue; and names of victims in namespaces that they do not see.

    Rows keep the whole message, because readers with different rights read the same row.
    """

    def __init__(self, access: Access, cluster: Cluster, visibilities: _Visibilities | None = None) -> None:
        self._access = access
        self._cluster = cluster
        self._visibilities = visibilities or _Visibilities(Reach([(cluster, access)]))

    @property
    def sees_everything(self) -> bool:
        return self._access.sees_everything

    def sees_namespace(self, name: str) -> bool:
        """Return whether workloads of this namespace may be named."""
        return self._access.sees(name)

    def message(self, text: str) -> str:
        """Return the message for this reader."""
        if self._access.sees_everything:
            return text
        victim = _OF_VICTIM.fullmatch(text)
        if victim and not self._access.sees(victim[1]):
            return f"Preempted a workload ({victim[2]})"
        path = _PREEMPTOR_PATH.search(text)
        if path and self._visibilities.found[self._cluster.pk].sees_queue(path[1].rpartition("/")[2]):
            return text
        return _OF_PREEMPTOR.sub("", text)

    def conditions(self, conditions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Conditions, or states of admission checks, with reduced messages."""
        return [
            {**condition, "message": self.message(condition["message"])} if "message" in condition else dict(condition)
            for condition in conditions
        ]

    def manifest(self, manifest: dict[str, Any]) -> dict[str, Any]:
        """Return a manifest with reduced messages in its status."""
        status = manifest.get("status")
        if not isinstance(status, dict) or self._access.sees_everything:
            return manifest
        cut = {key: self.conditions(status[key]) for key in ("conditions", "admissionChecks") if key in status}
        return {**manifest, "status": {**status, **cut}}


def readers_of(reach: Reach) -> dict[str, Reader]:
    """Return a `Reader` for each cluster, by its name."""
    shared = _Visibilities(reach)
    return {cluster.name: Reader(reach.access(cluster.pk), cluster, shared) for cluster in reach.clusters}
