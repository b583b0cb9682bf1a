"""Figures to show: usage of ClusterQueues and Cohorts, and pending workloads in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from scheduling.model.cohort import ResourceQuota
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import ClusterQueueReason, PendingReason, StopPolicy
from scheduling.quota.cells import Cell, CohortNode, QuotaNode
from scheduling.quota.fair_sharing import dominant_resource_share
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.workload_info import QueueState, WorkloadInfo


@dataclass(frozen=True, slots=True)
class Usage:
    """One row of a usage table, in base units.

    `subtree_quota` is the quota that the node and its descendants may lend and use together (for a ClusterQueue: its
    nominal quota). `deserved` is the quota that a sharing policy gives to the node and its descendants, and that cycles
    use instead of the nominal quota; None without such a policy. `listed`: the node has a quota for this resource.
    Usage without one belongs to workloads that were admitted before the quota was removed.
    """

    flavor: str
    resource: str
    nominal: int
    borrowing_limit: int | None
    lending_limit: int | None
    deserved: int | None
    subtree_quota: int
    used: int
    borrowed: int
    listed: bool


@dataclass(frozen=True, slots=True)
class ClusterQueueStatus:
    """The figures of a ClusterQueue. `weighted_share` is not rounded, may be infinite, and is computed without fair
    sharing too."""

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
class PendingCounts:
    """The pending workloads of a ClusterQueue as (active, inadmissible) per LocalQueue key, and the number of
    distinct scheduling hashes."""

    local_queues: Mapping[str, tuple[int, int]]
    hashes: tuple[int, int]


@dataclass(frozen=True, slots=True)
class CohortStatus:
    """The figures of a Cohort, implicit ones included."""

    name: str
    parent: str
    weighted_share: float
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class PendingPosition:
    """A pending workload: its 0-based position in the ClusterQueue, whether it is inadmissible, and why it waits."""

    workload: str
    position: int
    inadmissible: bool
    reason: PendingReason
    message: str


def usage_of(node: QuotaNode) -> tuple[Usage, ...]:
    """Return the usage of every (flavor, resource) for which the node has a quota or usage, in the order of its
    spec."""
    return tuple(
        Usage(
            key.flavor,
            key.resource,
            *_declared(cell),
            cell.deserved,
            cell.subtree,
            cell.usage,
            max(0, cell.usage - cell.subtree) if node.parent is not None else 0,
            cell.listed,
        )
        for key, cell in node.cells.items()
        if cell.listed or cell.usage
    )


def _declared(cell: Cell) -> tuple[int, int | None, int | None]:
    """Return the quota that the object states, regardless of a sharing policy."""
    quota = cell.declared or ResourceQuota(0)
    return quota.nominal, quota.borrowing_limit, quota.lending_limit


def cluster_queue_status(cq: ClusterQueueState) -> ClusterQueueStatus:
    """Return the figures of a ClusterQueue. While it is inactive, all its pending workloads count as inadmissible. The
    variants of a workload (concurrent admission) count as one workload, which waits while none of them is admitted."""
    active, inadmissible = cq.queue.active_count, cq.queue.inadmissible_count
    reserving = len(cq.workloads)
    if cq.spec.concurrent_admission is not None:
        waiting = list(_waiting_jobs(cq).values())
        active = sum(info.queue_state is QueueState.ACTIVE for info in waiting)
        inadmissible = len(waiting) - active
        reserving = len({info.workload.parent or key for key, info in cq.workloads.items()})
    return ClusterQueueStatus(
        cq.name,
        cq.spec.cohort_name,
        cq.active,
        cq.inactive_reason,
        cq.inactive_message,
        active if cq.active else 0,
        inadmissible if cq.active else active + inadmissible,
        reserving,
        sum(info.admitted for info in cq.workloads.values()),
        dominant_resource_share(cq.node).weighted,
        usage_of(cq.node),
    )


def _waiting_jobs(cq: ClusterQueueState) -> dict[str, WorkloadInfo]:
    """Return the pending workloads; of the variants of one none while one is admitted, else one, an active one
    first."""
    running = {info.workload.parent for info in cq.workloads.values() if info.admitted and info.workload.parent}
    found: dict[str, WorkloadInfo] = {}
    for info in cq.queue.waiting():
        key = info.workload.parent or info.key
        if key not in running and (key not in found or info.queue_state is QueueState.ACTIVE):
            found[key] = info
    return found


def pending_counts(cq: ClusterQueueState) -> PendingCounts:
    """Count pending workloads by LocalQueue. While the ClusterQueue is inactive, all of them count as inadmissible."""
    active, inadmissible = (cq.queue.equals(state) for state in (QueueState.ACTIVE, QueueState.INADMISSIBLE))
    if not cq.active:
        active, inadmissible = [], active + inadmissible
    counts: dict[str, list[int]] = {}
    for position, equals in enumerate((active, inadmissible)):
        for found in equals:
            counts.setdefault(found.queue_key, [0, 0])[position] += found.size
    if cq.spec.concurrent_admission is not None:
        counts = {}
        for info in _waiting_jobs(cq).values():
            position = int(not cq.active or info.queue_state is not QueueState.ACTIVE)
            counts.setdefault(info.queue_key, [0, 0])[position] += 1
    hashes = (len({found.scheduling_hash for found in equals}) for equals in (active, inadmissible))
    return PendingCounts(
        {key: (counts[key][0], counts[key][1]) for key in sorted(counts)}, (next(hashes), next(hashes))
    )


def cohort_status(node: CohortNode) -> CohortStatus:
    parent = node.parent.name if node.parent else ""
    return CohortStatus(node.name, parent, dominant_resource_share(node).weighted, usage_of(node))


def pending_positions(cq: ClusterQueueState) -> tuple[PendingPosition, ...]:
    """Return the pending workloads in queue order."""
    return tuple(
        PendingPosition(
            info.key,
            position,
            not cq.active or info.queue_state is QueueState.INADMISSIBLE,
            *(cq.queue.outcome(info) or (PendingReason.PENDING_EVALUATION, "")),
        )
        for position, info in enumerate(cq.queue.in_order())
    )


def drained_workloads(
    cluster_queues: Iterable[ClusterQueueState], local_queues: Mapping[str, LocalQueue]
) -> dict[str, str]:
    """Return the admitted workloads that must stop because their queue is drained, with their ClusterQueue."""
    found: dict[str, str] = {}
    for cq in cluster_queues:
        for key, info in cq.workloads.items():
            queue = local_queues.get(info.queue_key)
            policies = (cq.spec.stop_policy, queue.stop_policy if queue is not None else StopPolicy.NONE)
            if info.admitted and StopPolicy.HOLD_AND_DRAIN in policies:
                found[key] = cq.name
    return found
