"""Judges by Kueue's rules for which workloads a node failed, and finds the pods that no kubelet ends there.

A node that is gone failed for every workload that is placed there. A node that is not ready, or has a taint that the
pods do not tolerate for good, failed for a workload once none of its pods progresses there: a bound pod progresses
until it ends or is being deleted. (Kueue's gates TASReplaceNodeOnPodTermination and TASReplaceNodeOnNodeTaints.) Where
our own placement chose the node, 30 seconds without readiness are enough, because nothing else gives the devices there
back.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from accounts.kinds.feature_gates import FAILURE_RECOVERY, is_on
from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.jobs.forced_deletion import UNREACHABLE, asks_for_it, is_overdue
from clusters.jobs.framework.manifest import dig, name_of, namespace_of
from clusters.sync.present import present, uid_of
from foundation.wake_ups import request_forced_deletion
from gpus.services import ObservedNode
from queues.models import ResourceFlavor
from queues.services.admission_rows import read_check_state
from queues.services.pods import (
    PlacedPodSet,
    noted_nodes,
    pod_sets_on,
    record_node_failed,
    record_node_recovered,
)
from scheduling.model.admission_check import updates_of
from scheduling.model.selectors import Taint, TaintEffect, Toleration
from scheduling.model.times import parse_rfc3339

FAILED_AFTER_SECONDS: Final = 30.0
"""Kueue's delay where its deprecated gate TASReplaceNodeDueToNotReadyOverFixedTime is on."""
_REPELLING: Final = (TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE)

_Tolerations = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Health:
    """The readiness of a node and its taints that repel pods. `is_gone`: the node was deleted."""

    is_ready: bool
    taints: tuple[Taint, ...] = ()
    is_gone: bool = False

    @property
    def is_well(self) -> bool:
        return self.is_ready and not self.taints


_GONE: Final = _Health(is_ready=False, is_gone=True)


class NodeFailures:
    """The nodes of one cluster that are not well, and the workloads to judge at the next tick."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._health: dict[str, _Health] = {}
        self._not_ready_since: dict[str, float] = {}
        self._late: set[str] = set()
        self._changed: dict[str, _Health] = {}
        """The nodes to judge for all of their workloads."""
        self._left: dict[str, set[str]] = {}
        """The uids of the workloads to judge, by node."""

    def note(self, node: JsonObject, observed: ObservedNode, now: float) -> None:
        """Add or update a node of the cluster."""
        name = observed.name
        repelling = [entry for entry in observed.taints if entry.get("effect") in _REPELLING]
        health = _Health(observed.ready, tuple(map(Taint.from_manifest, repelling)))
        if observed.ready:
            self._not_ready_since.pop(name, None)
            self._late.discard(name)
        else:
            self._not_ready_since.setdefault(name, _ready_since(node, now))
        if self._health.get(name) != health:
            self._health[name] = self._changed[name] = health

    def note_gone(self, name: str) -> None:
        """Remove a deleted node."""
        self._health.pop(name, None)
        self._not_ready_since.pop(name, None)
        self._late.discard(name)
        self._changed[name] = _GONE

    def has_taint(self, name: str, key: str) -> bool:
        """Return whether a node has a taint of that key that repels pods."""
        health = self._health.get(name)
        return health is not None and any(taint.key == key for taint in health.taints)

    def pods_left(self, left: Iterable[tuple[str, str]]) -> None:
        """Record pods that left a node or wait to be bound to it, each with the node and its workload's uid."""
        for name, workload in left:
            health = self._health.get(name)
            if health is not None and not health.is_well:
                self._left.setdefault(name, set()).add(workload)

    def tick(self, now: float) -> None:
        """Judge nodes that changed, nodes that pods left, and nodes that have not been ready for too long."""
        for name, since in self._not_ready_since.items():
            if now - since >= FAILED_AFTER_SECONDS and name not in self._late:
                self._late.add(name)
                self._changed[name] = self._health[name]
        if not (self._changed or self._left):
            return
        noted = noted_nodes(self._cluster) if any(health.is_well for health in self._changed.values()) else set()
        self._judge({name: health for name, health in self._changed.items() if name in noted or not health.is_well})
        left = {name for name in self._left if name in self._health and name not in self._changed}
        self._judge({name: self._health[name] for name in left}, set().union(*self._left.values()))
        # After the rows are stored, so that the next tick repeats what the database could not answer.
        self._changed.clear()
        self._left.clear()

    def _judge(self, nodes: Mapping[str, _Health], workloads: Collection[str] | None = None) -> None:
        placed = pod_sets_on(self._cluster, nodes.keys(), workloads)
        by_flavor = self._tolerations() if placed and any(health.taints for health in nodes.values()) else {}
        for name, pod_sets in placed.items():
            failed, recovered = [], []
            for workload, group in groupby(pod_sets, key=lambda pod_set: pod_set.workload_id):
                on_node = list(group)
                is_failed = self._is_failed(name, nodes[name], on_node, by_flavor)
                if is_failed and not on_node[0].is_noted:
                    failed.append(workload)
                elif on_node[0].is_noted and not is_failed:
                    recovered.append(workload)
            record_node_failed(self._cluster, name, failed)
            record_node_recovered(self._cluster, name, recovered)

    def _is_failed(
        self, name: str, health: _Health, pod_sets: Sequence[PlacedPodSet], by_flavor: Mapping[str, _Tolerations]
    ) -> bool:
        """Return whether the node failed for the workload of these pod sets."""
        if health.is_gone:
            return True
        if name in self._late and any(pod_set.is_chosen for pod_set in pod_sets):
            return True
        if pod_sets[0].progresses:
            return False
        return not health.is_ready or any(_repels(health.taints, pod_set, by_flavor) for pod_set in pod_sets)

    def _tolerations(self) -> dict[str, _Tolerations]:
        """Return the tolerations that flavors add to pods, by flavor."""
        rows = ResourceFlavor.objects.filter(cluster=self._cluster).exclude(tolerations=[])
        return dict(rows.values_list("name", "tolerations"))


class LostPodSync:
    """Follows the pods of one cluster that are being deleted and ask for forced deletion.

    * failures: the nodes of the cluster and their taints.
    """

    def __init__(self, cluster: Cluster, failures: NodeFailures) -> None:
        self._cluster = cluster
        self._failures = failures
        self._ending: dict[str, JsonObject] = {}
        self._asked: set[str] = set()

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = present(items, uid_of)
        if found.listed:
            self._ending.clear()
            self._asked.clear()  # a request may have been lost
        for uid in found.gone:
            self._ending.pop(uid, None)
            self._asked.discard(uid)
        for uid, pod in found.objects.items():
            if asks_for_it(pod):
                self._ending[uid] = pod
            else:
                self._ending.pop(uid, None)

    def tick(self, now: float) -> None:
        """Request the forced deletion of the pods that are due."""
        if not self._ending or not is_on(self._cluster.configuration, FAILURE_RECOVERY):
            return
        due = {
            uid: (namespace_of(pod), name_of(pod))
            for uid, pod in self._ending.items()
            if uid not in self._asked
            and is_overdue(pod, now)
            and self._failures.has_taint(dig(pod, "spec", "nodeName") or "", UNREACHABLE)
        }
        if due:
            self._asked |= due.keys()
            request_forced_deletion(self._cluster.name, list(due.values()))


def _repels(taints: Sequence[Taint], pod_set: PlacedPodSet, by_flavor: Mapping[str, _Tolerations]) -> bool:
    """Return whether a taint is not tolerated, or for a while only: then the pods leave the node sooner or later."""
    updates = updates_of(map(read_check_state, pod_set.checks), pod_set.name)
    stated = [
        *pod_set.tolerations,
        *(entry for flavor in pod_set.flavors for entry in by_flavor.get(flavor, ())),
        *(entry for update in updates for entry in update.tolerations),
    ]
    lasting = [Toleration.from_manifest(entry) for entry in stated if entry.get("tolerationSeconds") is None]
    return not all(any(toleration.tolerates(taint) for toleration in lasting) for taint in taints)


def _ready_since(node: JsonObject, now: float) -> float:
    """When the Ready condition got its present status, at most now."""
    for condition in (node.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "Ready" and condition.get("lastTransitionTime"):
            return min(now, parse_rfc3339(condition["lastTransitionTime"]))
    return now
