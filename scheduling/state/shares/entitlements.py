"""The quotas of cohorts with a sharing policy: the deserved quota of each queue below, computed again whenever demand
changes.

A cohort with a policy divides its own quota and that of everything below it among its children, level by level; a
cohort below with its own policy divides its part by that policy. The deserved quota then replaces the nominal quota:
the cycle lends it, reclaims it and preempts for it as for any quota.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scheduling.model.resources import PODS, FlavorResource
from scheduling.policies.queue_order import Standing
from scheduling.quota.cells import CohortNode, QuotaNode
from scheduling.quota.tree import aggregate_again
from scheduling.state.cluster_queue import ClusterQueueState, GroupState
from scheduling.state.shares.quota_claims import (
    PendingRequests,
    QuotaClaim,
    base_amount,
    entitled_quota,
    overflow,
    scaled,
    set_limits,
    share_out,
    standing_of,
    sum_requests,
)
from scheduling.state.workload_info import PodSetRequests, WorkloadInfo

if TYPE_CHECKING:
    from scheduling.state.state import State


class Entitlements:
    """The entitlements of all nodes below cohorts with a sharing policy."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._touched: set[str] | None = None
        """ClusterQueues whose demand changed; None: all."""
        self._top_of: dict[str, CohortNode] = {}
        """ClusterQueue -> the highest cohort above it that has a policy."""
        self.paths: dict[str, tuple[Standing, ...]] = {}
        """ClusterQueue with such a cohort -> the standings of its cohorts, from that one down, and its own."""

    def forget(self) -> None:
        """Compute the quotas again before the next cycle: quotas or the tree changed, or a batch was undone."""
        self._touched = None

    def touch(self, queue: str) -> None:
        """Note that a workload arrived in a ClusterQueue, left it, or holds quota there now."""
        if self._touched is not None and queue in self._top_of:
            self._touched.add(queue)

    def release(self) -> None:
        """Restore the declared quotas of all ClusterQueues before the tree is built again."""
        for name in self._top_of:
            cq = self._state.cluster_queues.get(name)
            for cell in cq.node.cells.values() if cq is not None else ():
                cell.set_quota(cell.declared)
        self._top_of = {}

    def rebuilt(self) -> None:
        """Find the cohorts with a policy in another tree: a tree that was built again, or that an undone batch
        restored.
        """
        self._top_of = {}
        self.paths = {}
        self.forget()
        declared = self._state.cohorts
        for name, cq in self._state.cluster_queues.items():
            for node in cq.node.ancestors():
                cohort = declared.get(node.name)
                if cohort is not None and cohort.sharing_policy is not None:
                    self._top_of[name] = node

    def refresh(self) -> None:
        """Divide the quota of every cohort whose demand changed."""
        touched, self._touched = self._touched, set()
        if touched is None:
            touched = set(self._top_of)
        tops = {id(self._top_of[name]): self._top_of[name] for name in touched if name in self._top_of}
        for top in tops.values():
            self._divide(top)

    # -- one cohort ------------------------------------------------------------------------------------------------

    def _divide(self, top: CohortNode) -> None:
        members = self._state.members[id(top.root)]
        by_parent: dict[int, list[ClusterQueueState]] = {}
        for cq in members:
            by_parent.setdefault(id(cq.node.parent), []).append(cq)
        claim = self._claim_of_cohort(top, by_parent)
        claim.deserved, claim.most = dict(claim.owned), dict(claim.owned)
        rounds = max((len(pending.flavors) for each in claim.walk() for pending in each.pending), default=1)
        for _ in range(rounds):
            sum_requests(claim)
            share_out(claim, None)
            if not overflow(claim):
                break
        self._note_standings(claim, ())
        if self._apply(claim, top, [cq.node for cq in members]):
            self._wake([name for name, found in self._top_of.items() if found is top])

    def _claim_of_cohort(self, node: CohortNode, by_parent: Mapping[int, list[ClusterQueueState]]) -> QuotaClaim:
        declared = self._state.cohorts.get(node.name)
        claim = QuotaClaim(node, 0, policy=declared.sharing_policy if declared is not None else None)
        claim.children = [self._claim_of_cohort(child, by_parent) for child in node.cohorts]
        claim.children += [self._claim_of_queue(cq) for cq in by_parent.get(id(node), ())]
        for key, cell in node.cells.items():
            owned = scaled(key, cell.declared.nominal if cell.declared is not None else 0)
            claim.owned[key] = owned + sum(child.owned.get(key, 0.0) for child in claim.children)
            set_limits(claim, key, cell)
        return claim

    def _claim_of_queue(self, cq: ClusterQueueState) -> QuotaClaim:
        claim = QuotaClaim(cq.node, cq.spec.queue_priority)
        for key, cell in cq.node.cells.items():
            claim.owned[key] = scaled(key, cell.declared.nominal if cell.declared is not None else 0)
            claim.used[key] = scaled(key, cell.usage)
            set_limits(claim, key, cell)
        # A queue that admits no workloads must not keep quota from others for its pending ones.
        claim.pending = list(self._pending(cq)) if cq.active else []
        return claim

    def _pending(self, cq: ClusterQueueState) -> Iterator[PendingRequests]:
        found: dict[tuple[str, ...], dict[str, float]] = {}
        for info, count in cq.queue.demand():
            for pod_set in info.pod_sets:
                requests = {**pod_set.requests, PODS: pod_set.count}
                for group in cq.groups:
                    covered = [name for name in requests if cq.group_of.get(name) is group]
                    flavors = self._flavors(cq, info, pod_set, group) if covered else ()
                    amounts = found.setdefault(flavors, {})
                    for name in covered:
                        amount = scaled(FlavorResource("", name), requests[name]) * count
                        amounts[name] = amounts.get(name, 0.0) + amount
        for flavors, amounts in found.items():
            if flavors and amounts:
                yield PendingRequests(amounts, flavors)

    def _flavors(
        self, cq: ClusterQueueState, info: WorkloadInfo, pod_set: PodSetRequests, group: GroupState
    ) -> tuple[str, ...]:
        allowed = info.workload.allowed_flavors
        return tuple(
            slot.name
            for slot in group.flavors
            if (not allowed or slot.name in allowed) and self._state.matcher.mismatch(cq, pod_set, group, slot) is None
        )

    def _note_standings(self, claim: QuotaClaim, above: tuple[Standing, ...]) -> None:
        path = (*above, standing_of(claim))
        for child in claim.children:
            self._note_standings(child, path)
        if not isinstance(claim.node, CohortNode):
            self.paths[claim.node.name] = path

    def _apply(self, claim: QuotaClaim, top: CohortNode, queues: list[QuotaNode]) -> bool:
        """Write the deserved quotas of the nodes into their cells. Return whether anything changed."""
        changed = False
        for each in claim.walk():
            for key, cell in each.node.cells.items():
                quota = entitled_quota(each, key, cell)
                if (cell.nominal, cell.borrowing_limit, cell.lending_limit) != (
                    quota.nominal,
                    quota.borrowing_limit,
                    quota.lending_limit,
                ):
                    changed = True
                cell.entitle(base_amount(key, each.deserved.get(key, 0.0)), quota)
        if changed:
            root = top.root
            assert isinstance(root, CohortNode)
            aggregate_again(root, queues)
        for each in claim.walk():
            if not isinstance(each.node, CohortNode):
                for key, cell in each.node.cells.items():
                    # More demand would entitle it to more: only amounts that it can never get are refused for good.
                    cell.potential = max(cell.potential, base_amount(key, each.most.get(key, 0.0)))
        return changed

    def _wake(self, names: list[str]) -> None:
        state = self._state
        for name in names:
            cq = state.cluster_queues[name]
            state.journal.note_once(cq)
            cq.generation += 1
        state.dirty_queues.update(names)
        state.waking.clear_pauses(names)
