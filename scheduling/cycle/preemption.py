"""The search for preemption targets: the part common to both algorithms, and the classical algorithm.

The usage of candidates is removed one by one until the workload fits. Then the targets that are not needed are
restored. The search leaves the usage unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

from scheduling.cycle.preemption_candidates import Candidate, CandidateFinder, Variant, exceeds_nominal
from scheduling.cycle.preemption_fair import FairPreemption
from scheduling.cycle.preemption_request import PreemptionRequest
from scheduling.model.vocabulary import BorrowWithinCohortPolicy, PreemptionReason, PreemptionStrategy
from scheduling.state.preemption_loops import PreemptionLoopGuard
from scheduling.state.what_if import Simulation
from scheduling.state.workload_info import WorkloadInfo


class Target(NamedTuple):
    """A workload to preempt, and the reason."""

    info: WorkloadInfo
    reason: PreemptionReason


_REASONS = {
    Variant.WITHIN_CLUSTER_QUEUE: PreemptionReason.IN_CLUSTER_QUEUE,
    Variant.HIERARCHICAL_RECLAIM: PreemptionReason.IN_COHORT_RECLAMATION,
    Variant.RECLAIM_WITHOUT_BORROWING: PreemptionReason.IN_COHORT_RECLAMATION,
    Variant.RECLAIM_WHILE_BORROWING: PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING,
}


class Preemptor:
    """Finds preemption targets against the current usage."""

    def __init__(
        self,
        finder: CandidateFinder,
        simulation: Simulation,
        strategies: tuple[PreemptionStrategy, ...] | None,
        preemption_loops: PreemptionLoopGuard,
        *,
        within_nominal: bool = True,
    ) -> None:
        """`strategies` are those of fair sharing; None selects classical preemption. Workloads that
        `preemption_loops` has paused preempt no workload. `within_nominal`: under fair sharing a ClusterQueue gets
        its own quota back regardless of the strategies."""
        self._finder = finder
        self._simulation = simulation
        self._preemption_loops = preemption_loops
        self._fair = (
            None
            if strategies is None
            else FairPreemption(finder, simulation, strategies, within_nominal=within_nominal)
        )

    def searches(self) -> AbstractContextManager[None]:
        """Share intermediate results among the searches of one cycle."""
        return self._finder.searches()

    def find_targets(self, request: PreemptionRequest) -> list[Target]:
        """Return the workloads to preempt; empty if preemption cannot help."""
        if not request.cq.can_preempt or self._preemption_loops.paused_until(request.info.key, request.now) is not None:
            return []
        found = self._fair.find_targets(request) if self._fair else self._find_classical_targets(request)
        return [Target(info, reason) for info, reason in found]

    def _find_classical_targets(self, request: PreemptionRequest) -> list[tuple[WorkloadInfo, PreemptionReason]]:
        own = self._finder.own_candidates(request)
        sources = self._finder.sources(request)
        if not own and not sources:
            return []
        has_hierarchy = any(source.advantage for source in sources)
        for allow_borrowing in self._attempts(request, bool(sources), has_hierarchy):
            candidates = self._finder.classical_order(request, own, sources)
            targets = self._attempt(request, candidates, allow_borrowing)
            if targets:
                return targets
        return []

    def _attempts(self, request: PreemptionRequest, has_foreign: bool, has_hierarchy: bool) -> tuple[bool, ...]:
        """Return the attempts to make: each is True if it may borrow."""
        # A workload that may not borrow has to fit the quota of its own queue once the victims are gone.
        if not request.info.may_borrow:
            return (False,)
        forbidden = request.cq.spec.preemption.borrow_within_cohort.policy is BorrowWithinCohortPolicy.NEVER
        cells = request.cq.node.cells
        under_nominal = all(cells[key].usage < cells[key].nominal for key in request.needed)
        # Victims of the own queue free the same quota with or without borrowing. A queue at or above its nominal quota
        # must borrow, and may then preempt in no other queue.
        if not has_foreign or (forbidden and not under_nominal):
            return (True,)
        # Reclaim from borrowers first, as the queue is entitled to; then try only the own queue's workloads.
        if forbidden and not has_hierarchy:
            return (False, True)
        # Some victims are valid only while borrowing, which needs fewer of them; without borrowing all candidates are
        # valid.
        return (True, False)

    def _attempt(
        self, request: PreemptionRequest, candidates: Iterable[Candidate], allow_borrowing: bool
    ) -> list[tuple[WorkloadInfo, PreemptionReason]]:
        targets: list[Candidate] = []
        fits = False
        for candidate in candidates:
            if not _is_valid_now(request, candidate, allow_borrowing):
                continue
            self._simulation.remove(candidate.info, note=False)
            targets.append(candidate)
            if request.fits(allow_borrowing):
                fits = True
                break
        kept = fill_back(request, self._simulation, targets, allow_borrowing) if fits else []
        for candidate in kept if fits else targets:
            self._simulation.restore(candidate.info, note=False)
        return [(candidate.info, _REASONS[candidate.variant]) for candidate in kept]


def fill_back(
    request: PreemptionRequest, simulation: Simulation, targets: list[Candidate], allow_borrowing: bool
) -> list[Candidate]:
    """Restore targets that are not needed, from the second last to the first. Return the targets that stay removed;
    the last target found is always needed."""
    kept = list(targets)
    # Backwards: the later a candidate in the order of preemption, the more it deserves to keep running.
    index = len(kept) - 2
    while index >= 0:
        simulation.restore(kept[index].info, note=False)
        if request.fits(allow_borrowing):
            kept[index] = kept[-1]
            kept.pop()
        else:
            simulation.remove(kept[index].info, note=False)
        index -= 1
    return kept


def _is_valid_now(request: PreemptionRequest, candidate: Candidate, allow_borrowing: bool) -> bool:
    """Return whether the candidate's queue and every cohort below the common one still borrow."""
    if candidate.variant is Variant.WITHIN_CLUSTER_QUEUE:
        return True
    if allow_borrowing and candidate.variant is Variant.RECLAIM_WITHOUT_BORROWING:
        return False
    # Earlier victims may have brought the queue, or a cohort above it, back to its nominal quota, which it keeps.
    if not exceeds_nominal(candidate.cq.node, request.needed):
        return False
    node = candidate.cq.node.parent
    while node is not None and node is not candidate.common:
        if not exceeds_nominal(node, request.needed):
            return False
        node = node.parent
    return True
