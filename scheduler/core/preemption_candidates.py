"""Who might be preempted: policies, order, and the walk through the cohort tree (7.2 to 7.4)."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

from scheduler.core.cluster_queue_state import ClusterQueueState
from scheduler.core.decisions import (
    BorrowWithinCohortPolicy,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)
from scheduler.core.quota import CohortNode, QuotaNode, fits_without_borrowing, is_within_nominal
from scheduler.core.resources import FlavorResource
from scheduler.core.workload_info import WorkloadInfo

if TYPE_CHECKING:
    from scheduler.core.preemption import PreemptionRequest

LocalQueueUsage = Callable[[WorkloadInfo], float]


class Variant(IntEnum):
    """What gives the right to preempt a candidate (7.4)."""

    WITHIN_CLUSTER_QUEUE = 0
    HIERARCHICAL_RECLAIM = 1
    RECLAIM_WITHOUT_BORROWING = 2
    RECLAIM_WHILE_BORROWING = 3


class Candidate(NamedTuple):
    """A workload that may be preempted. `common` is the lowest cohort above both queues, None within one queue."""

    info: WorkloadInfo
    cq: ClusterQueueState
    variant: Variant
    common: CohortNode | None


class ClassicalCandidates(NamedTuple):
    """Candidates in the order of trial, and which lists are not empty."""

    in_order: list[Candidate]
    has_foreign: bool
    has_hierarchy: bool


def exceeds_nominal(node: QuotaNode, keys: frozenset[FlavorResource]) -> bool:
    """Whether the node uses more than its subtree quota of one of them."""
    return not is_within_nominal(node, keys)


def uses(info: WorkloadInfo, keys: frozenset[FlavorResource]) -> bool:
    """Whether the workload holds quota of one of them."""
    return any(cell.key in keys for cell, _ in info.usage)


class CandidateFinder:
    """Finds candidates among the workloads that hold quota in active ClusterQueues."""

    def __init__(
        self,
        cluster_queues: Mapping[str, ClusterQueueState],
        removed: Container[str],
        local_queue_usage: LocalQueueUsage | None,
    ) -> None:
        """`removed` are the keys of workloads that are taken away already; `local_queue_usage` is admission fair
        sharing's, None when that is off."""
        self._cluster_queues = cluster_queues
        self._removed = removed
        self._local_queue_usage = local_queue_usage

    def order(self, info: WorkloadInfo, own: ClusterQueueState) -> tuple[bool, bool, float, int, float, str]:
        """The order of candidates (7.3): evicted first, other queues before the own one, LocalQueues with more usage
        first, lower priority, later reservation, uid."""
        is_own = info.cluster_queue == own.name
        usage = 0.0
        if is_own and self._local_queue_usage is not None and own.usage_based:
            usage = -self._local_queue_usage(info)
        return (not info.evicted, is_own, usage, info.priority, -info.reserved_at, info.uid)

    def own_candidates(self, request: PreemptionRequest) -> list[WorkloadInfo]:
        """The workloads of the own ClusterQueue that its withinClusterQueue policy gives free."""
        policy = request.cq.spec.preemption.within_cluster_queue
        if policy is WithinClusterQueuePolicy.NEVER:
            return []
        newer = policy is WithinClusterQueuePolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
        priority, timestamp = request.info.priority, request.info.timestamp
        return [
            info
            for info in request.cq.workloads.values()
            if (info.priority < priority or (newer and info.priority == priority and timestamp < info.timestamp))
            and self._is_candidate(info, request, request.cq)
        ]

    def foreign_candidates(self, request: PreemptionRequest, cq: ClusterQueueState) -> list[WorkloadInfo]:
        """The workloads of another ClusterQueue that the own reclaimWithinCohort policy gives free."""
        any_priority = request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.ANY
        priority = request.info.priority
        return [
            info
            for info in cq.workloads.values()
            if (any_priority or info.priority < priority)
            and not info.workload.never_reclaimed
            and self._is_candidate(info, request, cq)
        ]

    def _is_candidate(self, info: WorkloadInfo, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
        return (
            info.key not in self._removed
            and uses(info, request.needed)
            and not (cq.protections and is_protected(info, request, cq))
        )

    def cluster_queue(self, node: QuotaNode) -> ClusterQueueState:
        """The ClusterQueue of a node of the tree."""
        return self._cluster_queues[node.name]

    def classical_candidates(self, request: PreemptionRequest) -> ClassicalCandidates:
        """All candidates in the order in which classical preemption tries them (7.5)."""
        own = [Candidate(info, request.cq, Variant.WITHIN_CLUSTER_QUEUE, None) for info in self.own_candidates(request)]
        hierarchy, priority = self._foreign_lists(request)
        lists = [
            sorted(found, key=lambda candidate: self.order(candidate.info, request.cq))
            for found in (hierarchy, priority, own)
        ]
        in_order = [c for found in lists for c in found if c.info.evicted]
        in_order += [c for found in lists for c in found if not c.info.evicted]
        return ClassicalCandidates(in_order, bool(hierarchy or priority), bool(hierarchy))

    def _foreign_lists(self, request: PreemptionRequest) -> tuple[list[Candidate], list[Candidate]]:
        """Candidates over which the request has the advantage of the hierarchy, and the others (7.4)."""
        hierarchy: list[Candidate] = []
        others: list[Candidate] = []
        node: QuotaNode = request.cq.node
        if node.parent is None or request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.NEVER:
            return hierarchy, others
        amounts = [(cell.key, amount) for cell, amount in request.requests.items()]
        advantage, rest = fits_without_borrowing(node, amounts)
        for common in node.ancestors():
            self._walk(request, common, node, common, advantage, hierarchy if advantage else others)
            fits, rest = fits_without_borrowing(common, rest)
            advantage = advantage or fits
            node = common
        return hierarchy, others

    def _walk(
        self,
        request: PreemptionRequest,
        cohort: CohortNode,
        skipped: QuotaNode,
        common: CohortNode,
        advantage: bool,
        found: list[Candidate],
    ) -> None:
        for child in cohort.cohorts:
            if child is not skipped and exceeds_nominal(child, request.needed):
                self._walk(request, child, skipped, common, advantage, found)
        for queue in cohort.queues:
            if queue is skipped or not exceeds_nominal(queue, request.needed):
                continue
            cq = self._cluster_queues[queue.name]
            found.extend(
                Candidate(info, cq, _variant(request, info, advantage), common)
                for info in self.foreign_candidates(request, cq)
            )


def _variant(request: PreemptionRequest, info: WorkloadInfo, advantage: bool) -> Variant:
    if advantage:
        return Variant.HIERARCHICAL_RECLAIM
    borrowing = request.cq.spec.preemption.borrow_within_cohort
    if borrowing.policy is BorrowWithinCohortPolicy.NEVER:
        return Variant.RECLAIM_WITHOUT_BORROWING
    threshold = borrowing.max_priority_threshold
    if info.priority >= request.info.priority or (threshold is not None and info.priority > threshold):
        return Variant.RECLAIM_WITHOUT_BORROWING
    return Variant.RECLAIM_WHILE_BORROWING


def is_protected(info: WorkloadInfo, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
    """Whether our own protection (minimum run time, cool-down) keeps the workload for now; one that is already stopping
    is never protected."""
    if info.evicted:
        return False
    for protection in cq.protections:
        if request.now < info.reserved_at + protection.minimum_run_seconds:
            return True
        if info.preempted_at is not None and request.now < info.preempted_at + protection.cool_down_seconds:
            return True
    return False
