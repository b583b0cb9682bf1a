"""The state of everything the scheduler decides on, updated in place, and undone when a batch is refused.

    world = World(configuration)
    world.set_cluster_queue(...); world.set_workload(...)
    point = world.savepoint()
    while world.has_active(): result = world.run_cycle(now)
    world.commit(point)          # or world.undo(point): as if the cycles had not been

Every `set_` adds or replaces, every `delete_` forgets; deleting what is not there does nothing. References are names and
may dangle. Events that may let parked workloads start mark the tree of cohorts they touch; the next cycle moves those
workloads back to their queues (Kueue's flush, 3.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from scheduler.core.admission_check import AdmissionCheck
from scheduler.core.cluster_queue import ClusterQueue
from scheduler.core.cohort import Cohort
from scheduler.core.configuration import Configuration
from scheduler.core.decisions import ClusterQueueReason, CycleResult, PendingReason
from scheduler.core.local_queue import LocalQueue
from scheduler.core.node import Node
from scheduler.core.resource_flavor import ResourceFlavor
from scheduler.core.topology import Topology
from scheduler.core.workload import Workload


@dataclass(frozen=True, slots=True)
class Usage:
    """One row of a usage table, in base units. `subtree_quota` is what the node and those below it may lend and use
    together (for a ClusterQueue: its nominal quota)."""

    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None
    subtree_quota: int
    used: int
    borrowed: int


@dataclass(frozen=True, slots=True)
class ClusterQueueView:
    """A ClusterQueue now. `weighted_share` is not rounded, may be infinite, and is computed without fair sharing too."""

    name: str
    cohort: str
    active: bool
    reason: ClusterQueueReason
    message: str
    pending: int
    inadmissible: int
    reserving: int
    admitted: int
    weighted_share: float
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class CohortView:
    """A Cohort now (implicit ones too)."""

    name: str
    parent: str
    weighted_share: float
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class PendingView:
    """A waiting workload: its 0-based place in the ClusterQueue, whether it is parked, and why it waits."""

    workload: str
    position: int
    inadmissible: bool
    reason: PendingReason
    message: str


@dataclass(slots=True)
class Savepoint:
    """A mark to undo to. Opaque."""

    journal_length: int = field(default=0)


class World:
    """See the module's text."""

    def __init__(self, configuration: Configuration = Configuration()) -> None:
        """An empty world."""

    def set_configuration(self, configuration: Configuration) -> None:
        """Replace the configuration; requests are computed anew and every parked workload is woken."""
        raise NotImplementedError

    def set_namespace(self, name: str, labels: Mapping[str, str]) -> None:
        """A namespace and its labels, which ClusterQueues select."""
        raise NotImplementedError

    def delete_namespace(self, name: str) -> None:
        """Forget a namespace."""
        raise NotImplementedError

    def set_resource_flavor(self, flavor: ResourceFlavor) -> None:
        """Add or replace a flavor."""
        raise NotImplementedError

    def delete_resource_flavor(self, name: str) -> None:
        """Forget a flavor; ClusterQueues that name it become inactive."""
        raise NotImplementedError

    def set_topology(self, topology: Topology) -> None:
        """Add or replace a topology."""
        raise NotImplementedError

    def delete_topology(self, name: str) -> None:
        """Forget a topology."""
        raise NotImplementedError

    def set_cohort(self, cohort: Cohort) -> None:
        """Add or replace a cohort; the whole tree is computed anew."""
        raise NotImplementedError

    def delete_cohort(self, name: str) -> None:
        """Forget a cohort; while it is named it stays as an implicit one."""
        raise NotImplementedError

    def set_cluster_queue(self, cluster_queue: ClusterQueue) -> None:
        """Add or replace a ClusterQueue; usage stays."""
        raise NotImplementedError

    def delete_cluster_queue(self, name: str) -> None:
        """Forget a ClusterQueue and its queue; its workloads are left without one."""
        raise NotImplementedError

    def set_local_queue(self, local_queue: LocalQueue) -> None:
        """Add or replace a LocalQueue; workloads that waited for it are queued."""
        raise NotImplementedError

    def delete_local_queue(self, key: str) -> None:
        """Forget the LocalQueue `namespace/name`; its pending workloads leave the queue."""
        raise NotImplementedError

    def set_admission_check(self, check: AdmissionCheck) -> None:
        """Add or replace an admission check."""
        raise NotImplementedError

    def delete_admission_check(self, name: str) -> None:
        """Forget an admission check."""
        raise NotImplementedError

    def set_node(self, node: Node) -> None:
        """Add or replace a node (capacity, labels, taints, readiness, devices)."""
        raise NotImplementedError

    def delete_node(self, name: str) -> None:
        """Forget a node."""
        raise NotImplementedError

    def set_workload(self, workload: Workload, now: float) -> None:
        """Add or replace a workload, placed by its state: pending -> its queue, holding quota -> usage, finished or
        deactivated -> gone. `now` decides whether its back-off is over."""
        raise NotImplementedError

    def delete_workload(self, key: str) -> None:
        """Forget a workload; what it held is free."""
        raise NotImplementedError

    def finish_workload(self, key: str, now: float, reason: str = "Succeeded") -> None:
        """The workload is done: its quota is free at once."""
        raise NotImplementedError

    def release_workload(self, key: str, now: float) -> None:
        """The pods of an evicted workload have stopped: its quota is free, it is pending again and keeps its place
        (Requeued True when it was preempted)."""
        raise NotImplementedError

    def workload(self, key: str) -> Workload | None:
        """The workload as the world sees it now, decisions of the last cycles included."""
        raise NotImplementedError

    def has_active(self) -> bool:
        """Whether some active ClusterQueue has a workload that is not parked: whether a cycle has anything to look at."""
        raise NotImplementedError

    def next_timer(self, now: float) -> float | None:
        """The next instant at which something happens by itself (a back-off ends), or None."""
        raise NotImplementedError

    def run_timers(self, now: float) -> tuple[str, ...]:
        """Queue the workloads whose back-off is over; returns their keys (Requeued True, reason BackoffFinished)."""
        raise NotImplementedError

    def run_cycle(self, now: float) -> CycleResult:
        """One scheduling cycle at that time: at most one head per ClusterQueue. See `scheduler.core.cycle`."""
        raise NotImplementedError

    def savepoint(self) -> Savepoint:
        """Start to remember how to go back. Savepoints do not nest."""
        raise NotImplementedError

    def undo(self, savepoint: Savepoint) -> None:
        """Go back: every `run_cycle`, `set_workload`, `release_workload`, ... since the savepoint has not been.
        Changes of queues, cohorts, flavors and nodes must not happen between savepoint and undo."""
        raise NotImplementedError

    def commit(self, savepoint: Savepoint) -> None:
        """Keep what happened and forget how to go back."""
        raise NotImplementedError

    def cluster_queue_view(self, name: str) -> ClusterQueueView:
        """A ClusterQueue's numbers; raises KeyError."""
        raise NotImplementedError

    def cohort_view(self, name: str) -> CohortView:
        """A Cohort's numbers; raises KeyError."""
        raise NotImplementedError

    def cluster_queue_names(self) -> tuple[str, ...]:
        """Every ClusterQueue, by name."""
        raise NotImplementedError

    def cohort_names(self) -> tuple[str, ...]:
        """Every cohort, implicit ones included, by name."""
        raise NotImplementedError

    def pending(self, cluster_queue: str) -> tuple[PendingView, ...]:
        """Who waits in a ClusterQueue, in queue order, the parked ones included (Kueue's visibility API)."""
        raise NotImplementedError

    def why_pending(self, key: str) -> str:
        """One sentence on why the workload waits: which resource in which flavor lacks how much and who holds it."""
        raise NotImplementedError
