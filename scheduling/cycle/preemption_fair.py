"""The search for preemption targets under fair sharing: queues with larger shares give up quota first.

Shares on the preemptor's side include its request. Each step walks down from the root to the ClusterQueue with the
largest share, and compares the shares of the two subtrees below the lowest common cohort.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain

from scheduling.cycle.preemption_candidates import CandidateFinder, exceeds_nominal
from scheduling.cycle.preemption_request import PreemptionRequest
from scheduling.model.vocabulary import PreemptionReason, PreemptionStrategy, ReclaimWithinCohortPolicy
from scheduling.quota.cells import CohortNode, QuotaNode, is_within_nominal
from scheduling.quota.fair_sharing import Share, dominant_resource_share, is_borrowing
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.what_if import Simulation
from scheduling.state.workload_info import WorkloadInfo

Found = list[tuple[WorkloadInfo, PreemptionReason]]


def passes(strategy: PreemptionStrategy, preemptor: Share, before: Share, after: Share) -> bool:
    """Return whether a strategy allows the preemption. It compares the preemptor's share (with its request) with the
    target's share before and after."""
    if strategy is PreemptionStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE:
        return preemptor <= after
    return preemptor < before


class FairPreemption:
    """Finds targets with the configured strategies."""

    def __init__(
        self,
        finder: CandidateFinder,
        simulation: Simulation,
        strategies: tuple[PreemptionStrategy, ...],
        *,
        within_nominal: bool,
    ) -> None:
        """The first strategy is tried on all candidates, the second on those that the first rejected.
        `within_nominal`: a preemptor within its own quota needs no strategy."""
        self._finder = finder
        self._simulation = simulation
        self._strategies = strategies
        self._within_nominal = within_nominal

    def find_targets(self, request: PreemptionRequest) -> Found:
        """Return the workloads to preempt; empty if preemption cannot help. Usage is left unchanged."""
        for cell, amount in request.requests.items():
            cell.add(amount)
        search = _Search(request, self._finder, self._simulation)
        fits = search.first_strategy(self._strategies[0], within_nominal=self._within_nominal)
        if not fits and len(self._strategies) > 1:
            fits = search.second_strategy(self._strategies[1])
        for cell, amount in request.requests.items():
            cell.remove(amount)
        kept = search.fill_back() if fits else []
        for info, _ in kept if fits else search.targets:
            self._simulation.restore(info)
        return kept


class _Search:
    """One search. The request is charged to the preemptor's ClusterQueue while the strategies run."""

    def __init__(self, request: PreemptionRequest, finder: CandidateFinder, simulation: Simulation) -> None:
        self._request = request
        self._finder = finder
        self._simulation = simulation
        self._shares = _Shares()
        self._retry: dict[str, list[WorkloadInfo]] = {}
        self.targets: Found = []

    def first_strategy(self, strategy: PreemptionStrategy, *, within_nominal: bool) -> bool:
        """Preempt in the queues with the largest shares while the strategy allows it (strategy 1). Return whether
        the request fits."""
        ordering = _QueueOrdering(self._request, self._finder, self._shares, self._candidates)
        own = self._request.cq
        within_nominal = within_nominal and is_within_nominal(own.node, self._request.needed)
        for cq in ordering:
            waiting = ordering.waiting(cq.node)
            # A victim of the own queue does not change another queue's share, so there is nothing to compare.
            if cq is own:
                if self._take(waiting.pop(), PreemptionReason.IN_CLUSTER_QUEUE):
                    return True
                continue
            # Within its nominal quota, a queue reclaims its own whatever the shares.
            if within_nominal:
                if self._take(waiting.pop(), PreemptionReason.IN_COHORT_RECLAMATION):
                    return True
                continue
            mine, theirs = _below_common_cohort(own.node, cq.node)
            preemptor, before = self._shares.of(mine), self._shares.of(theirs)
            while waiting:
                info = waiting.pop()
                if passes(strategy, preemptor, before, self._share_without(theirs, info)):
                    if self._take(info, PreemptionReason.IN_COHORT_FAIR_SHARING):
                        return True
                    break  # the victim has changed the shares, so another queue may now have the largest
                self._retry.setdefault(cq.name, []).append(info)
        return False

    def _candidates(self, cq: ClusterQueueState) -> Iterator[WorkloadInfo]:
        """Return the candidates of a queue in order. Another queue has candidates only while it borrows."""
        request, finder = self._request, self._finder
        if cq is request.cq:
            return iter(finder.own_candidates(request))
        if request.cq.spec.preemption.reclaim_within_cohort is ReclaimWithinCohortPolicy.NEVER:
            return iter(())
        if not exceeds_nominal(cq.node, request.needed):
            return iter(())
        return chain(*(finder.foreign_candidates(request, cq, evicted=evicted) for evicted in (True, False)))

    def second_strategy(self, strategy: PreemptionStrategy) -> bool:
        """Preempt at most one more candidate of each queue (strategy 2). Return whether the request fits."""
        ordering = _QueueOrdering(
            self._request, self._finder, self._shares, lambda cq: iter(self._retry.get(cq.name, ()))
        )
        for cq in ordering:
            mine, theirs = _below_common_cohort(self._request.cq.node, cq.node)
            preemptor, before = self._shares.of(mine), self._shares.of(theirs)
            info = ordering.waiting(cq.node).pop()
            # This strategy compares shares only before the preemption, so the first candidate stands for all.
            passed = passes(strategy, preemptor, before, before)
            if passed and self._take(info, PreemptionReason.IN_COHORT_FAIR_SHARING):
                return True
            ordering.drop(cq)
        return False

    def _share_without(self, node: QuotaNode, info: WorkloadInfo) -> Share:
        self._simulation.remove(info)
        share = dominant_resource_share(node)
        self._simulation.restore(info)
        return share

    def _take(self, info: WorkloadInfo, reason: PreemptionReason) -> bool:
        """Remove a target. Return whether the request then fits."""
        self._simulation.remove(info)
        self._shares.forget(self._finder.cluster_queue_of(info).node)
        self.targets.append((info, reason))
        for cell, amount in self._request.requests.items():
            cell.remove(amount)
        fits = self._request.fits(True)
        for cell, amount in self._request.requests.items():
            cell.add(amount)
        return fits

    def fill_back(self) -> Found:
        """Restore targets that are not needed. The request must no longer be charged."""
        kept = list(self.targets)
        for index in range(len(kept) - 2, -1, -1):
            self._simulation.restore(kept[index][0])
            if self._request.fits(True):
                kept[index] = kept[-1]
                kept.pop()
            else:
                self._simulation.remove(kept[index][0])
        return kept


class _Shares:
    """Current shares of nodes, cached until their usage changes."""

    def __init__(self) -> None:
        self._known: dict[int, Share] = {}

    def of(self, node: QuotaNode) -> Share:
        share = self._known.get(id(node))
        if share is None:
            share = self._known[id(node)] = dominant_resource_share(node)
        return share

    def forget(self, queue: QuotaNode) -> None:
        """Drop the cached shares of a queue whose usage changed, and of every cohort above it."""
        self._known.pop(id(queue), None)
        for cohort in queue.ancestors():
            self._known.pop(id(cohort), None)


class _Waiting:
    """Candidates of a queue, read lazily. `first` is the next candidate, or None at the end."""

    __slots__ = ("_rest", "first")

    def __init__(self, candidates: Iterator[WorkloadInfo]) -> None:
        self._rest = candidates
        self.first = next(candidates, None)

    def __bool__(self) -> bool:
        return self.first is not None

    def pop(self) -> WorkloadInfo:
        """Remove and return the first candidate. Raises IndexError when there are no more."""
        info = self.first
        if info is None:
            raise IndexError("no candidate is left")
        self.first = next(self._rest, None)
        return info


class _QueueOrdering:
    """Iterates over the ClusterQueues in which to preempt, each chosen by the current shares.

    The candidates of a queue are listed when it is first considered.
    """

    def __init__(
        self,
        request: PreemptionRequest,
        finder: CandidateFinder,
        shares: _Shares,
        candidates: Callable[[ClusterQueueState], Iterator[WorkloadInfo]],
    ) -> None:
        self._request = request
        self._finder = finder
        self._shares = shares
        self._candidates = candidates
        self._waiting: dict[str, _Waiting] = {}
        self._above = set(map(id, request.cq.node.ancestors()))
        self._pruned: set[int] = set()

    def waiting(self, queue: QuotaNode) -> _Waiting:
        """Return the remaining candidates of a queue."""
        found = self._waiting.get(queue.name)
        if found is None:
            found = self._waiting[queue.name] = _Waiting(self._candidates(self._finder.cluster_queue(queue)))
        return found

    def drop(self, cq: ClusterQueueState) -> None:
        """Exclude a queue from further choices."""
        self._pruned.add(id(cq.node))

    def __iter__(self) -> Iterator[ClusterQueueState]:
        root = self._request.cq.node.root
        if not isinstance(root, CohortNode):
            while self.waiting(self._request.cq.node):
                yield self._request.cq
            return
        while id(root) not in self._pruned:
            cq = self._choose(root)
            if cq is not None:
                yield cq

    def _choose(self, cohort: CohortNode) -> ClusterQueueState | None:
        queue = self._largest_queue(cohort)
        child, child_share = self._largest_cohort(cohort)
        if child is not None and (queue is None or child_share >= self._shares.of(queue)):
            return self._choose(child)
        if queue is not None:
            return self._finder.cluster_queue(queue)
        self._pruned.add(id(cohort))
        return None

    def _largest_queue(self, cohort: CohortNode) -> QuotaNode | None:
        best: QuotaNode | None = None
        best_share = Share(False, -1.0)
        for queue in cohort.queues:
            if id(queue) in self._pruned:
                continue
            if queue is not self._request.cq.node and not is_borrowing(queue):
                self._pruned.add(id(queue))
                continue
            share = self._shares.of(queue)
            if best is not None and share < best_share:
                continue
            if not self.waiting(queue):
                self._pruned.add(id(queue))
            elif best is None or share > best_share or self._sorts_first(queue, best):
                best, best_share = queue, share
        return best

    def _sorts_first(self, queue: QuotaNode, other: QuotaNode) -> bool:
        own = self._request.cq
        first, second = self.waiting(queue).first, self.waiting(other).first
        if first is None or second is None:
            return second is None
        return self._finder.order(first, own) < self._finder.order(second, own)

    def _largest_cohort(self, cohort: CohortNode) -> tuple[CohortNode | None, Share]:
        best: CohortNode | None = None
        best_share = Share(False, -1.0)
        for child in cohort.cohorts:
            if id(child) in self._pruned:
                continue
            if id(child) not in self._above and not is_borrowing(child):
                self._pruned.add(id(child))
                continue
            share = self._shares.of(child)
            if share >= best_share:
                best, best_share = child, share
        return best, best_share


def _below_common_cohort(own: QuotaNode, other: QuotaNode) -> tuple[QuotaNode, QuotaNode]:
    """Return the children of the lowest common cohort on the paths to both ClusterQueues (Kueue's almost-LCA)."""
    above: dict[int, QuotaNode] = {}
    below: QuotaNode = own
    for ancestor in own.ancestors():
        above[id(ancestor)] = below
        below = ancestor
    below = other
    for ancestor in other.ancestors():
        if id(ancestor) in above:
            return above[id(ancestor)], below
        below = ancestor
    return own, other
