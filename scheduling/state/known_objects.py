"""Read access to the objects of a state: their specs, and the holders of quota."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.cohort import Cohort
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.resources import FlavorResource
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.workload import Workload
from scheduling.policies.headroom import QueueLevel, group_of, headroom_left, user_headroom, workloads_left
from scheduling.quota.cells import Cell, QuotaNode
from scheduling.reservations.reservation import Reservation
from scheduling.state.state import State
from scheduling.state.workload_info import QueueState, WorkloadInfo


class RaisedQuota(NamedTuple):
    """More quota at one node of the tree: `nominal` is added there, `borrowing` to its borrowing limit. `level` counts
    from the ClusterQueue, which is 0, to the root."""

    level: int
    nominal: int = 0
    borrowing: int = 0


class Headroom(NamedTuple):
    """The amounts that a user may still use in a ClusterQueue, in base units, each 0 or more.

    * quota: the free quota of each flavor and resource, with the quota that the ClusterQueue may borrow.
    * user: by resource, the least that the limits of the user and of the group leave, on the ClusterQueue and on the
      cohorts above.
    * workloads: the number of workloads that these limits leave; None: not limited.
    """

    quota: dict[FlavorResource, int]
    user: dict[str, int]
    workloads: int | None


class LevelHeadroom(NamedTuple):
    """The amounts that one level of a ClusterQueue's path leaves to a user, in base units, each 0 or more.

    * name: "ClusterQueue q" or "Cohort c".
    * quota: the free quota there, of each flavor and resource of the ClusterQueue, with what the level may borrow.
    * user, workloads: as those of a `Headroom`, by the limits of this level alone.
    """

    name: str
    quota: dict[FlavorResource, int]
    user: dict[str, int]
    workloads: int | None


class KnownObjects:
    """A read-only view of a state. It must be up to date: read it from the World."""

    def __init__(self, state: State) -> None:
        self._state = state

    @property
    def cohorts(self) -> Mapping[str, Cohort]:
        """The declared cohorts; implicit ones are left out."""
        return MappingProxyType(self._state.cohorts)

    @property
    def local_queues(self) -> Mapping[str, LocalQueue]:
        """LocalQueues by `namespace/name`."""
        return MappingProxyType(self._state.local_queues)

    @property
    def nodes(self) -> Mapping[str, Node]:
        """The nodes as last set."""
        return MappingProxyType(self._state.reported_nodes)

    @property
    def reservations(self) -> Mapping[str, Reservation]:
        """The reservations of nodes by name."""
        return MappingProxyType(self._state.reservations.known)

    def reserved_nodes(self, name: str) -> frozenset[str]:
        """Return the present nodes of a reservation; raises KeyError."""
        return self._state.reservations.nodes_of(name)

    def cluster_queue(self, name: str) -> ClusterQueue | None:
        """Return the ClusterQueue's spec."""
        found = self._state.cluster_queues.get(name)
        return found.spec if found is not None else None

    def is_preemptor(self, key: str) -> bool:
        """Return whether a workload comes first in its ClusterQueue because it preempts."""
        info = self._state.workloads.get(key)
        cq = self._state.cluster_queues.get(info.cluster_queue) if info is not None else None
        return cq is not None and cq.queue.sticky == key

    def head_of(self, cluster_queue: str) -> str:
        """Return the key of the workload that the next cycle tries first in a ClusterQueue; "" if there is none."""
        cq = self._state.cluster_queues.get(cluster_queue)
        info = cq.queue.head if cq is not None else None
        return info.key if info is not None else ""

    def cluster_queue_of(self, key: str) -> str:
        """Return the ClusterQueue of a workload; "" if it has none."""
        info = self._state.workloads.get(key)
        return info.cluster_queue if info is not None else ""

    def queues_beside(self, cluster_queue: str) -> frozenset[str]:
        """Return the ClusterQueues that share quota with one, itself included; empty if it does not exist."""
        cq = self._state.cluster_queues.get(cluster_queue)
        return frozenset(each.name for each in self._state.tree_of(cq)) if cq is not None else frozenset()

    def workload_by_uid(self, uid: str) -> Workload | None:
        """Return the workload with that uid; None if it is unknown. Looks at all workloads."""
        found = (info for info in self._state.workloads.values() if info.workload.uid == uid)
        return next((info.current() for info in found), None)

    def pending_keys(self, cluster_queue: str) -> list[str]:
        """Return the keys of the pending workloads of a ClusterQueue, in no order; raises KeyError."""
        return self._state.cluster_queues[cluster_queue].queue.keys()

    def selects_namespace(self, cluster_queue: str, namespace: str) -> bool:
        """Return whether the ClusterQueue takes workloads of the namespace; raises KeyError."""
        return self._state.selects_namespace(self._state.cluster_queues[cluster_queue], namespace)

    def cohorts_above(self, cluster_queue: str) -> list[str]:
        """Return the cohorts above a ClusterQueue, from its own to the root; raises KeyError."""
        return [node.name for node in self._state.cluster_queues[cluster_queue].node.ancestors()]

    def user_levels(self, cluster_queue: str, user: str | None = None) -> list[QueueLevel]:
        """Return the ClusterQueue and the cohorts above it that limit users or groups, from itself up, each with the
        quota that every group and every user (or this one) holds there; raises KeyError."""
        return self._state.user_usage.levels(self._state.cluster_queues[cluster_queue], user)

    def headroom(self, cluster_queue: str, user: str, user_groups: Sequence[str] = ()) -> Headroom:
        """Return the amounts that the user may still use in the ClusterQueue; raises KeyError."""
        path = self.user_levels(cluster_queue, user)
        node = self._state.cluster_queues[cluster_queue].node
        keys = self._quota_keys(cluster_queue)
        limited = user_headroom(path, user, user_groups) or {}
        return Headroom(
            quota={key: max(0, node.cells[key].available()) for key in keys},
            user={resource: max(0, int(left)) for resource, left in limited.items()},
            workloads=workloads_left(path, user, group_of(path, user_groups)),
        )

    def level_headrooms(self, cluster_queue: str, user: str, user_groups: Sequence[str] = ()) -> list[LevelHeadroom]:
        """Return the amounts that the ClusterQueue and each cohort above it leave to the user, from itself up; raises
        KeyError."""
        cq = self._state.cluster_queues[cluster_queue]
        path = self.user_levels(cluster_queue, user)
        group = group_of(path, user_groups)
        cohorts = [(f"Cohort {node.name}", node) for node in cq.node.ancestors()]
        nodes: list[tuple[str, QuotaNode]] = [(f"ClusterQueue {cq.name}", cq.node), *cohorts]
        found: list[LevelHeadroom] = []
        for name, node in nodes:
            limits = [level for level in path if level.name == name]
            left = headroom_left(limits, user, group) or {}
            quota = {
                key: max(0, node.cells[key].available()) for key in self._quota_keys(cluster_queue) if key in node.cells
            }
            own = {resource: max(0, int(amount)) for resource, amount in left.items()}
            found.append(LevelHeadroom(name, quota, own, workloads_left(limits, user, group)))
        return found

    def _quota_keys(self, cluster_queue: str) -> list[FlavorResource]:
        groups = self._state.cluster_queues[cluster_queue].spec.resource_groups
        return [
            FlavorResource(each.name, resource)
            for group in groups
            for each in group.flavors
            for resource in each.resources
        ]

    def holders(self, cluster_queue: str) -> list[str]:
        """Return the workloads that hold quota in the ClusterQueue's cohort tree, and all that are placed on nodes or
        devices: their end may let another workload start. Workloads that are already stopping are left out."""
        state = self._state
        members = {member.name for member in state.tree_of(state.cluster_queues[cluster_queue])}
        return sorted(
            key
            for key, info in state.workloads.items()
            if info.queue_state is QueueState.RESERVING
            and not info.evicted
            and (info.cluster_queue in members or info.placement is not None)
        )

    def reserving(self) -> dict[str, str]:
        """Return all workloads that hold quota, with their ClusterQueue."""
        return {
            key: info.cluster_queue
            for key, info in self._state.workloads.items()
            if info.queue_state is QueueState.RESERVING
        }

    def queued_at(self, key: str) -> float:
        """Return the time that orders the workload in its queue (Kueue's queue-order timestamp); raises KeyError."""
        return self._state.workloads[key].timestamp

    def reserved_at(self, key: str) -> float:
        """When the workload got the quota that it holds; raises KeyError."""
        return self._state.workloads[key].reserved_at

    def requests(self, key: str, cluster_queue: str) -> dict[str, int]:
        """Return the amounts, in base units, that the workload requests of the resources that the ClusterQueue covers;
        raises KeyError."""
        covered = self._state.cluster_queues[cluster_queue].spec.resource_groups
        names = {name for group in covered for name in group.covered_resources}
        found: dict[str, int] = {}
        for pod_set in self._state.workloads[key].pod_sets:
            for name in names & pod_set.requests.keys():
                found[name] = found.get(name, 0) + pod_set.requests[name]
        return found

    def workloads_on(self, node: str, device: str = "") -> list[str]:
        """Return the workloads with a pod on the node; with the UUID of a device, only workloads that hold a part of
        it."""
        return sorted(
            key
            for key, info in self._state.workloads.items()
            if info.queue_state is QueueState.RESERVING
            and (_is_placed(info, node, device) or (not device and _has_domain(info, node)))
        )

    def workloads_placed_on(self, node: str, device: str = "") -> list[str]:
        """Return the workloads with a pod that kueueweb placed on the node; with the UUID of a device, only workloads
        that hold a part of it."""
        return sorted(
            key
            for key, info in self._state.workloads.items()
            if info.queue_state is QueueState.RESERVING and _is_placed(info, node, device)
        )

    def device_count(self, key: str) -> int:
        """Return how many devices, or shares of devices, a workload holds."""
        placement = self._state.workloads[key].placement
        return 0 if placement is None else sum(len(part) for pod in placement.pods for part in pod.containers)

    def device_resources(self) -> frozenset[str]:
        """Return the names of the resources that count devices."""
        return frozenset(vendor.resources.count for vendor in self._state.vendors if vendor.resources.count)

    def room_with(self, cluster_queue: str, key: FlavorResource, raised: RaisedQuota) -> int:
        """Return the amount of a flavor's resource that the ClusterQueue could still use, borrowing included, if one
        node of its tree had more quota: Kueue's arithmetic along the path to the root. Raises KeyError if the node has
        no such quota."""
        path = list(_path(self._state.cluster_queues[cluster_queue].node, key))
        return _room(path, raised)


def _is_placed(info: WorkloadInfo, node: str, device: str) -> bool:
    pods = info.placement.pods if info.placement is not None else ()
    return any(pod.node == node and (not device or any(held.uuid == device for held in pod.slices)) for pod in pods)


def _has_domain(info: WorkloadInfo, node: str) -> bool:
    """Return whether its topology assignment names the node, which is the last level of a topology that ends
    with it."""
    admission = info.current().admission
    return any(
        domain.values[-1] == node
        for assignment in (admission.pod_set_assignments if admission is not None else ())
        if (topology := assignment.topology_assignment) is not None and topology.levels[-1] == HOSTNAME_LABEL
        for domain in topology.domains
    )


def used_nodes(info: WorkloadInfo) -> frozenset[str]:
    """Return the nodes on which a workload that holds quota has pods, as far as kueueweb chose them: from its placement
    and from topologies that end with the hostname."""
    placed = {pod.node for pod in info.placement.pods} if info.placement is not None else set()
    admission = info.current().admission
    named = (
        domain.values[-1]
        for assignment in (admission.pod_set_assignments if admission is not None else ())
        if (topology := assignment.topology_assignment) is not None and topology.levels[-1] == HOSTNAME_LABEL
        for domain in topology.domains
    )
    return frozenset(placed.union(named))


def _path(node: QuotaNode, key: FlavorResource) -> Iterator[Cell]:
    cell: Cell | None = node.cells[key]
    while cell is not None:
        yield cell
        cell = cell.parent


def _room(path: list[Cell], raised: RaisedQuota) -> int:
    lent_more, used_more = 0, 0
    amounts: list[tuple[int, int, int, int | None]] = []
    for level, cell in enumerate(path):
        here = level == raised.level
        subtree = cell.subtree + lent_more + (raised.nominal if here else 0)
        usage = cell.usage + used_more
        limited = cell.parent is not None and cell.lending_limit is not None
        local = max(0, subtree - (cell.lending_limit or 0)) if limited else 0
        limit = cell.borrowing_limit
        amounts.append((subtree, local, usage, None if limit is None else limit + (raised.borrowing if here else 0)))
        lent_more = (subtree - local) - (cell.subtree - cell.local)
        used_more = max(0, usage - local) - max(0, cell.usage - cell.local)
    subtree, _, usage, _ = amounts[-1]
    found = subtree - usage
    for subtree, local, usage, limit in reversed(amounts[:-1]):
        if limit is not None:
            found = min(found, subtree - local - max(0, usage - local) + limit)
        found += max(0, local - usage)
    return found
