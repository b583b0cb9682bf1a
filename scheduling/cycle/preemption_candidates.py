"""Finds preemption candidates: applies the policies, walks through the cohort tree, and orders the result."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from heapq import heappop, heappush, merge
from itertools import takewhile
from typing import Final, NamedTuple

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
from scheduling.state.what_if import Simulation
from scheduling.state.workload_info import WorkloadInfo

LocalQueueUsage = Callable[[WorkloadInfo], float]


class Variant(IntEnum):
    """The policy that lets the request preempt a candidate."""

    WITHIN_CLUSTER_QUEUE = 0
    """The victim is in the preemptor's own queue: no quota changes hands."""
    HIERARCHICAL_RECLAIM = 1
    """The preemptor's side of the tree gets back quota that it owns, and still does not borrow."""
    RECLAIM_WITHOUT_BORROWING = 2
    """Valid only if the preemptor does not borrow afterwards: one borrower must not simply replace another."""
    RECLAIM_WHILE_BORROWING = 3
    """Valid even if the preemptor borrows: borrowWithinCohort allows it for this lower priority."""


class Candidate(NamedTuple):
    """A workload that may be preempted. `common` is the lowest cohort above both queues; None within one queue."""

    info: WorkloadInfo
    cq: ClusterQueueState
    variant: Variant
    common: CohortNode | None


Rank = tuple[int, float, str]
"""The order of candidates: lower priority, later reservation, uid."""


class First(NamedTuple):
    """A ClusterQueue and the rank of the first workload there that may be a candidate. `number` orders equal ranks."""

    rank: Rank
    number: int
    cq: ClusterQueueState


Firsts = tuple[list[First], list[First]]
"""The ClusterQueues with stopping and with running candidates."""


class Source(NamedTuple):
    """The ClusterQueues below one cohort that borrow and have candidates, in the order of their first candidates: one
    list for stopping candidates, one for running ones. `advantage`: the preemptor fits within the nominal quota of its
    side of the tree, which gives it precedence."""

    common: CohortNode
    advantage: bool
    stopping: list[First]
    running: list[First]


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
        simulation: Simulation,
        protected: dict[str, float],
        local_queue_usage: LocalQueueUsage | None,
    ) -> None:
        """`simulation`: removes workloads; those removed are no candidates. `protected`: receives, per preempting
        ClusterQueue, the time when the next candidate loses its protection. `local_queue_usage`: usage for admission
        fair sharing; None while it is off."""
        self._cluster_queues = cluster_queues
        self._simulation = simulation
        self._removed = simulation.removed
        self._protected = protected
        self._local_queue_usage = local_queue_usage
        self._borrowing: dict[tuple[int, int, frozenset[FlavorResource]], _Borrowers] | None = None

    @contextmanager
    def searches(self) -> Iterator[None]:
        """Remember which ClusterQueues borrow during the searches of a cycle. Each search looks again only at the
        ClusterQueues that the simulation has noted as changed."""
        self._borrowing, self._simulation.changed = {}, []
        try:
            yield
        finally:
            self._borrowing = self._simulation.changed = None

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
            for ranked in request.cq.ranking_of(request.needed)
            for info in takewhile(lambda info: info.priority <= priority, ranked)
            if (info.priority < priority or (newer and timestamp < info.timestamp))
            and self._is_candidate(info, request, request.cq)
        ]
        # The rankings are in order already, unless victims of LocalQueues with more usage come first.
        if self._local_queue_usage is not None and request.cq.usage_based:
            found.sort(key=lambda info: self.order(info, request.cq))
        return found

    def foreign_candidates(
        self, request: PreemptionRequest, cq: ClusterQueueState, *, evicted: bool
    ) -> Iterator[WorkloadInfo]:
        """Yield the workloads of another ClusterQueue that `reclaimWithinCohort` allows the request to preempt, in
        order: with `evicted` the stopping workloads, otherwise the running ones."""
        if cq.spec.never_reclaimed:
            return
        any_priority = request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.ANY
        priority = request.info.priority
        for info in cq.ranking_of(request.needed)[0 if evicted else 1]:
            # The ranking is by priority: no further workload has a lower one.
            if not any_priority and info.priority >= priority:
                return
            if not info.workload.never_reclaimed and self._is_candidate(info, request, cq):
                yield info

    def _is_candidate(self, info: WorkloadInfo, request: PreemptionRequest, cq: ClusterQueueState) -> bool:
        if info.key in self._removed:
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
            stopping, running = self._firsts(request, common, node)
            if stopping or running:
                found.append(Source(common, advantage, stopping, running))
            fits, rest = fits_without_borrowing(common, rest)
            advantage = advantage or fits
            node = common
        return found

    def _firsts(self, request: PreemptionRequest, common: CohortNode, skipped: QuotaNode) -> Firsts:
        """Return the ClusterQueues below a cohort that borrow and have stopping and running candidates, without the
        subtree visited before."""
        borrowers = self._borrowers(request, common, skipped)
        found = borrowers.stopping, borrowers.running
        own = request.cq
        # A protection ends by itself, so that each search must ask again which queues have candidates.
        if borrowers.any_protected:
            stopping, running = (
                [first for first in firsts if self._has_candidates(request, first.cq, evicted=evicted)]
                for firsts, evicted in zip(found, (True, False), strict=True)
            )
            return stopping, running
        if own.name in borrowers.firsts:
            found = [each for each in found[0] if each.cq is not own], [each for each in found[1] if each.cq is not own]
        if own.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.ANY:
            return found
        below = ((request.info.priority,),)  # sorts behind all ranks of lower priority, and before all others
        return found[0][: bisect_left(found[0], below)], found[1][: bisect_left(found[1], below)]

    def _borrowers(self, request: PreemptionRequest, common: CohortNode, skipped: QuotaNode) -> _Borrowers:
        """Return the same for all requests that need these cells: with the request's own ClusterQueue, and with
        candidates that only other requests may preempt."""
        cohort = skipped if isinstance(skipped, CohortNode) else None
        known, changed = self._borrowing, self._simulation.changed
        if known is None or changed is None:
            return _Borrowers(common, cohort, request.needed, self._first_of, self._cluster_queues)
        key = (id(common), id(cohort), request.needed)
        found = known.get(key)
        if found is None or not found.catch_up(changed):
            found = known[key] = _Borrowers(common, cohort, request.needed, self._first_of, self._cluster_queues)
            found.read = len(changed)
        return found

    def _first_of(self, cq: ClusterQueueState, ranked: Sequence[WorkloadInfo]) -> Rank | None:
        """Return the rank of the first workload that may be reclaimed; None if there is none."""
        if cq.spec.never_reclaimed:
            return None
        for info in ranked:
            if not info.workload.never_reclaimed and info.key not in self._removed:
                return _rank(info)
        return None

    def _has_candidates(self, request: PreemptionRequest, cq: ClusterQueueState, *, evicted: bool) -> bool:
        if cq is request.cq:
            return False
        return next(self.foreign_candidates(request, cq, evicted=evicted), None) is not None

    def classical_order(
        self, request: PreemptionRequest, own: list[WorkloadInfo], sources: list[Source]
    ) -> Iterator[Candidate]:
        """Yield all candidates in the order of classical preemption.

        Stopping workloads come first. Among equals, candidates over which the hierarchy gives an advantage come before
        candidates of other queues, and those before the preemptor's own queue.
        """
        for evicted in (True, False):
            for advantage in (True, False):
                yield from self._merged(request, [s for s in sources if s.advantage is advantage], evicted)
            for info in own:
                if info.evicted is evicted:
                    yield Candidate(info, request.cq, Variant.WITHIN_CLUSTER_QUEUE, None)

    def _merged(self, request: PreemptionRequest, sources: list[Source], evicted: bool) -> Iterator[Candidate]:
        """Yield the candidates of several queues in one order. A queue is looked into when its first workload is
        reached: most searches end after a few candidates, however many queues there are."""
        streams = [_closed(level, source, evicted) for level, source in enumerate(sources)]
        closed = streams[0] if len(streams) == 1 else iter(merge(*streams, key=lambda each: each[:3]))
        unopened = next(closed, None)
        opened: list[tuple[Rank, int, int, WorkloadInfo, ClusterQueueState, Iterator[WorkloadInfo]]] = []
        while unopened is not None or opened:
            if unopened is not None and (not opened or unopened[0] <= opened[0][0]):
                _, level, number, cq = unopened
                unopened = next(closed, None)
                waiting = self.foreign_candidates(request, cq, evicted=evicted)
            else:
                _, level, number, info, cq, waiting = heappop(opened)
                source = sources[level]
                yield Candidate(info, cq, _variant(request, info, source.advantage), source.common)
            following = next(waiting, None)
            if following is not None:
                heappush(opened, (_rank(following), level, number, following, cq, waiting))


def _closed(level: int, source: Source, evicted: bool) -> Iterator[tuple[Rank, int, int, ClusterQueueState]]:
    for first in source.stopping if evicted else source.running:
        yield first.rank, level, first.number, first.cq


def _place(first: First) -> tuple[Rank, int]:
    return first[:2]


class _Borrowers:
    """The ClusterQueues below a cohort that borrow any of the cells and have candidates, in the order of their first
    ones. `firsts`: the entries of each queue in the two lists. `read`: how many changes of queues it has seen."""

    __slots__ = (
        "_below",
        "_cells",
        "_cluster_queues",
        "_first_of",
        "any_protected",
        "firsts",
        "keys",
        "read",
        "running",
        "stopping",
    )

    def __init__(
        self,
        cohort: CohortNode,
        skipped: CohortNode | None,
        keys: frozenset[FlavorResource],
        first_of: Callable[[ClusterQueueState, Sequence[WorkloadInfo]], Rank | None],
        cluster_queues: Mapping[str, ClusterQueueState],
    ) -> None:
        cohorts, queues = cohort.children_with(keys)
        self.keys = keys
        self._first_of = first_of
        self._cluster_queues = cluster_queues
        self._below = any(child is not skipped for child, _ in cohorts)
        self._cells = {queue.name: (number, cells) for number, (queue, cells) in enumerate(queues)}
        self.read = 0
        self.firsts: dict[str, tuple[First | None, First | None]] = {}
        borrowing = _borrowing_queues(cohort, skipped, keys)
        for number, queue in enumerate(borrowing):
            place = number if self._below else self._cells[queue.name][0]
            self._add(queue.name, place)
        self.any_protected = any(cluster_queues[name].protections for name in (*self.firsts, *self._cells))
        self.stopping = sorted((found[0] for found in self.firsts.values() if found[0]), key=_place)
        self.running = sorted((found[1] for found in self.firsts.values() if found[1]), key=_place)

    def _add(self, name: str, number: int) -> None:
        cq = self._cluster_queues[name]
        stopping, running = (self._first_of(cq, ranked) for ranked in cq.ranking_of(self.keys))
        if stopping is not None or running is not None:
            self.firsts[name] = (
                None if stopping is None else First(stopping, number, cq),
                None if running is None else First(running, number, cq),
            )

    def catch_up(self, changed: Sequence[str]) -> bool:
        """Look again at the queues that have changed. Return False if that is not enough: usage within a child cohort
        decides whether the child borrows."""
        if self.read == len(changed):
            return True
        if self._below:
            return False
        for name in {*changed[self.read :]}:
            if name in self._cells:
                self._look_again(name)
        self.read = len(changed)
        return True

    def _look_again(self, name: str) -> None:
        before = self.firsts.pop(name, _NONE)
        number, cells = self._cells[name]
        if any(cell.usage > cell.subtree for cell in cells):
            self._add(name, number)
        after = self.firsts.get(name, _NONE)
        for firsts, old, new in zip((self.stopping, self.running), before, after, strict=True):
            if old == new:
                continue
            if old is not None:
                del firsts[bisect_left(firsts, old)]
            if new is not None:
                insort(firsts, new)


_NONE: Final[tuple[First | None, First | None]] = (None, None)


def _rank(info: WorkloadInfo) -> Rank:
    return (info.priority, -info.reserved_at, info.uid)


def _borrowing_queues(
    cohort: CohortNode, skipped: CohortNode | None, keys: frozenset[FlavorResource]
) -> Iterator[QuotaNode]:
    """Yield the queues below a cohort that exceed their nominal quota. Skip the subtree visited before, and cohorts
    within their quota."""
    cohorts, queues = cohort.children_with(keys)
    for child, cells in cohorts:
        if child is not skipped and any(cell.usage > cell.subtree for cell in cells):
            yield from _borrowing_queues(child, skipped, keys)
    for queue, cells in queues:
        for cell in cells:
            if cell.usage > cell.subtree:
                yield queue
                break


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
