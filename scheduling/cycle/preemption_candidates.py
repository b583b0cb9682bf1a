"""Finds preemption candidates: applies the policies, walks through the cohort tree, and orders the result."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from enum import IntEnum
from heapq import merge
from typing import NamedTuple

from scheduling.cycle.preemption_request import PreemptionRequest
from scheduling.model.resources import FlavorResource
from scheduling.model.vocabulary import (
    BorrowWithinCohortPolicy,
    ConditionType,
    ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
)
from scheduling.quota.cells import CohortNode, QuotaNode, fits_without_borrowing
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.workload_info import WorkloadInfo

LocalQueueUsage = Callable[[WorkloadInfo], float]


class Variant(IntEnum):
    """The policy that lets the request preempt a candidate."""

    WITHIN_CLUSTER_QUEUE = 0
    HIERARCHICAL_RECLAIM = 1
    RECLAIM_WITHOUT_BORROWING = 2
    RECLAIM_WHILE_BORROWING = 3


class Candidate(NamedTuple):
    """A workload that may be preempted. `common` is the lowest cohort above both queues; None within one queue."""

    info: WorkloadInfo
    cq: ClusterQueueState
    variant: Variant
    common: CohortNode | None


class Source(NamedTuple):
    """A ClusterQueue with candidates. `advantage`: the preemptor fits within the nominal quota of its side of the
    tree, which gives it precedence."""

    cq: ClusterQueueState
    common: CohortNode
    advantage: bool


def exceeds_nominal(node: QuotaNode, keys: frozenset[FlavorResource]) -> bool:
    """Return whether the node uses more than its subtree quota of any of the keys."""
    cells = node.cells
    for key in keys:
        cell = cells.get(key)
        if cell is not None and cell.usage > cell.subtree:
            return True
    return False


class CandidateFinder:
    """Finds candidates among the workloads that hold quota in active ClusterQueues."""

    def __init__(
        self,
        cluster_queues: Mapping[str, ClusterQueueState],
        removed: Container[str],
        protected: dict[str, float],
        local_queue_usage: LocalQueueUsage | None,
    ) -> None:
        """`removed`: keys of workloads that are already removed. `protected`: receives, per preempting ClusterQueue,
        the time when the next candidate loses its protection. `local_queue_usage`: usage for admission fair sharing;
        None while it is off."""
        self._cluster_queues = cluster_queues
        self._removed = removed
        self._protected = protected
        self._local_queue_usage = local_queue_usage

    def order(self, info: WorkloadInfo, own: ClusterQueueState) -> tuple[bool, bool, float, int, float, str]:
        """Return the sort key of candidates: evicted first, other queues before the preemptor's own, LocalQueues
        with more usage first, lower priority, later reservation, uid."""
        is_own = info.cluster_queue == own.name
        usage = 0.0
        if is_own and self._local_queue_usage is not None and own.usage_based:
            usage = -self._local_queue_usage(info)
        return (not info.evicted, is_own, usage, info.priority, -info.reserved_at, info.uid)

    def own_candidates(self, request: PreemptionRequest) -> list[WorkloadInfo]:
        """Return the workloads of the preemptor's ClusterQueue that `withinClusterQueue` allows it to preempt, in
        order."""
        policy = request.cq.spec.preemption.within_cluster_queue
        if policy is WithinClusterQueuePolicy.NEVER:
            return []
        newer = policy is WithinClusterQueuePolicy.LOWER_OR_NEWER_EQUAL_PRIORITY
        priority, timestamp = request.info.priority, request.info.timestamp
        found = [
            info
            for ranked in request.cq.ranking()
            for info in ranked
            if (info.priority < priority or (newer and info.priority == priority and timestamp < info.timestamp))
            and self._is_candidate(info, request, request.cq)
        ]
        if self._local_queue_usage is not None and request.cq.usage_based:
            found.sort(key=lambda info: self.order(info, request.cq))
        return found

    def foreign_candidates(
        self, request: PreemptionRequest, cq: ClusterQueueState, *, evicted: bool
    ) -> Iterator[WorkloadInfo]:
        """Yield the workloads of another ClusterQueue that `reclaimWithinCohort` allows the request to preempt, in
        order: with `evicted` the stopping workloads, otherwise the running ones."""
        any_priority = request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.ANY
        priority = request.info.priority
        for info in cq.ranking()[0 if evicted else 1]:
            if not any_priority and info.priority >= priority:
                return
            if not info.workload.never_reclaimed and self._is_candidate(info, request, cq):
                yield info

    def _is_candidate(self, info: WorkloadInfo, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
        if request.needed.isdisjoint(info.keys) or info.key in self._removed:
            return False
        return not cq.protections or not self._is_protected(info, request, cq)

    def _is_protected(self, info: WorkloadInfo, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
        until = protected_until(info, cq)
        if until <= request.now:
            return False
        asking = request.cq.name
        self._protected[asking] = min(until, self._protected.get(asking, until))
        return True

    def cluster_queue(self, node: QuotaNode) -> ClusterQueueState:
        return self._cluster_queues[node.name]

    def cluster_queue_of(self, info: WorkloadInfo) -> ClusterQueueState:
        """Return the ClusterQueue where a workload holds quota."""
        return self._cluster_queues[info.cluster_queue]

    def sources(self, request: PreemptionRequest) -> list[Source]:
        """Return the other ClusterQueues that borrow and have candidates, walking up the tree from the preemptor's
        own."""
        found: list[Source] = []
        node: QuotaNode = request.cq.node
        if node.parent is None or request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.NEVER:
            return found
        amounts = [(cell.key, amount) for cell, amount in request.requests.items()]
        advantage, rest = fits_without_borrowing(node, amounts)
        for common in node.ancestors():
            for queue in _borrowing_queues(common, node, request.needed):
                source = Source(self._cluster_queues[queue.name], common, advantage)
                if self._has_candidates(request, source.cq):
                    found.append(source)
            fits, rest = fits_without_borrowing(common, rest)
            advantage = advantage or fits
            node = common
        return found

    def _has_candidates(self, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
        stopping, running = cq.ranking()
        if running and next(self.foreign_candidates(request, cq, evicted=False), None) is not None:
            return True
        return bool(stopping) and next(self.foreign_candidates(request, cq, evicted=True), None) is not None

    def classical_order(
        self, request: PreemptionRequest, own: list[WorkloadInfo], sources: list[Source]
    ) -> Iterator[Candidate]:
        """Yield all candidates in the order of classical preemption. Stopping workloads come first; among equals,
        those over which the hierarchy gives an advantage, then those of other queues, then those of the preemptor's
        own queue."""
        for evicted in (True, False):
            for advantage in (True, False):
                yield from self._merged(request, [s for s in sources if s.advantage is advantage], evicted)
            for info in own:
                if info.evicted is evicted:
                    yield Candidate(info, request.cq, Variant.WITHIN_CLUSTER_QUEUE, None)

    def _merged(self, request: PreemptionRequest, sources: list[Source], evicted: bool) -> Iterator[Candidate]:
        ranked = 0 if evicted else 1
        streams = [self._stream(request, source, evicted) for source in sources if source.cq.ranking()[ranked]]
        return streams[0] if len(streams) == 1 else merge(*streams, key=_rank)

    def _stream(self, request: PreemptionRequest, source: Source, evicted: bool) -> Iterator[Candidate]:
        for info in self.foreign_candidates(request, source.cq, evicted=evicted):
            yield Candidate(info, source.cq, _variant(request, info, source.advantage), source.common)


def _rank(candidate: Candidate) -> tuple[int, float, str]:
    info = candidate.info
    return (info.priority, -info.reserved_at, info.uid)


def _borrowing_queues(cohort: CohortNode, skipped: QuotaNode, keys: frozenset[FlavorResource]) -> Iterator[QuotaNode]:
    """Yield the queues below a cohort that exceed their nominal quota. Skip the subtree visited before, and cohorts
    within their quota."""
    for child in cohort.cohorts:
        if child is not skipped and exceeds_nominal(child, keys):
            yield from _borrowing_queues(child, skipped, keys)
    for queue in cohort.queues:
        if queue is not skipped and exceeds_nominal(queue, keys):
            yield queue


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


def protected_until(info: WorkloadInfo, cq: ClusterQueueState) -> float:
    """Return the time when the protection by minimum run time and cool-down (beyond Kueue) ends. A stopping workload
    is not protected. The run time starts at admission, or at the reservation while checks are pending."""
    if info.evicted:
        return 0.0
    until = 0.0
    admitted = info.current().condition(ConditionType.ADMITTED) if info.admitted else None
    since = info.reserved_at if admitted is None else admitted.last_transition_time
    for protection in cq.protections:
        until = max(until, since + protection.minimum_run_seconds)
        if info.preempted_at is not None:
            until = max(until, info.preempted_at + protection.cool_down_seconds)
    return until
