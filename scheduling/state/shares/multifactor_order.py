"""The order of pending workloads by multifactor priority, for ClusterQueues and cohorts that select it.

As in Slurm, the priorities of all pending workloads are computed every five minutes, and once for each new one. So an
order is stable for that long, whatever the cycles do. Preemption still follows the priority class: a workload must not
evict others because of its age.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from scheduling.model.cohort import DEFAULT_USAGE_WEIGHTS
from scheduling.model.quantity import NANOS, to_nanos
from scheduling.policies.fair_tree import Association, fair_tree
from scheduling.policies.multifactor import ClusterSize, Job, PriorityFactors, multifactor_priority
from scheduling.quota.cells import CohortNode, QuotaNode
from scheduling.state.cluster_queue import ClusterQueueState
from scheduling.state.shares.admission_fair_sharing import total_requests
from scheduling.state.workload_info import QueueOrder, WorkloadInfo

if TYPE_CHECKING:
    from scheduling.state.state import State

PERIOD_SECONDS: Final = 300.0
_CPU: Final = "cpu"


@dataclass(slots=True)
class _Tree:
    """The values that the factors of a cohort tree refer to, as of the last calculation. `fair_shares`: LocalQueue
    -> factor."""

    size: ClusterSize
    fair_shares: dict[str, float] = field(default_factory=dict)


class MultifactorOrder:
    """The multifactor priorities of a state's pending workloads."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._calculated_at: float | None = None
        self._trees: dict[str, _Tree] = {}
        self._ordered: set[str] = set()
        """The ClusterQueues that are ordered by it now."""
        self._weighed: set[str] | None = None
        """The ClusterQueues that have weights; None: to be found again."""

    def forget(self) -> None:
        """Compute the priorities again before the next cycle: quotas, weights or the tree changed, or a batch was
        undone.
        """
        self._calculated_at = self._weighed = None

    def refresh(self) -> None:
        """Order the queues again if the last calculation is from an earlier period."""
        queues = self._state.cluster_queues
        if self._weighed is None:
            self._weighed = {name for name, cq in queues.items() if cq.weights is not None}
        wanted = self._weighed
        period = self._state.now // PERIOD_SECONDS * PERIOD_SECONDS
        if period == self._calculated_at or not (wanted or self._ordered):
            return
        self._calculated_at = period
        self._trees = {}
        for cq in [queues[name] for name in wanted | self._ordered if name in queues]:
            cq.queue.reorder(partial(self.order_of, cq=cq))
        self._ordered = wanted

    def order_of(self, info: WorkloadInfo, cq: ClusterQueueState) -> QueueOrder:
        """Return the place of a workload in the order of its ClusterQueue."""
        factors = self.factors(info, cq)
        return info.class_order if factors is None else (-factors.priority, *info.class_order[1:])

    def factors(self, info: WorkloadInfo, cq: ClusterQueueState) -> PriorityFactors | None:
        """Return the priority of a workload with its parts; None if no weights are given, or nothing is
        calculated yet."""
        if cq.weights is None or self._calculated_at is None:
            return None
        tree = self._tree(cq)
        amounts = {name: nanos / NANOS for name, nanos in total_requests(info).items()}
        limit = info.workload.maximum_execution_time_seconds
        job = Job(
            waited_seconds=self._calculated_at - info.timestamp,
            fair_share=tree.fair_shares.get(info.queue_key, 1.0),
            nodes=min(sum(pod_set.count for pod_set in info.pod_sets), tree.size.nodes),
            cpus=amounts.get(_CPU, 0.0),
            time_limit_minutes=limit / 60 if limit is not None else None,
            partition=cq.spec.queue_priority,
            qos=max(0, min(info.priority, tree.size.highest_qos)),
            resources=amounts,
            nice=info.workload.nice,
        )
        return multifactor_priority(cq.weights, tree.size, job)

    def _tree(self, cq: ClusterQueueState) -> _Tree:
        root = cq.node.root
        key = f"{type(root).__name__}/{root.name}"
        if key not in self._trees:
            members = self._state.tree_of(cq)
            totals: dict[str, float] = {}
            for cell_key, cell in root.cells.items():
                amount = to_nanos(cell_key.resource, cell.subtree) / NANOS
                totals[cell_key.resource] = totals.get(cell_key.resource, 0.0) + amount
            waiting = (info.priority for member in members for info in member.queue.in_order())
            size = ClusterSize(
                nodes=len(self._state.fleet.nodes),
                cpus=totals.get(_CPU, 0.0),
                resources=totals,
                highest_partition=max(member.spec.queue_priority for member in members),
                highest_qos=max(waiting, default=0),
            )
            self._trees[key] = _Tree(size, self._fair_shares(root, members))
        return self._trees[key]

    def _fair_shares(self, root: QuotaNode, members: list[ClusterQueueState]) -> dict[str, float]:
        """Return the Fair Tree's factor of each LocalQueue: cohorts and ClusterQueues are the accounts, LocalQueues the
        users. A LocalQueue's past use is weighed by the weights of its ClusterQueue."""
        found = fair_tree(self._associations(root, members))
        return {
            key.removeprefix(_USER): standing.factor for key, standing in found.items() if standing.factor is not None
        }

    def _associations(self, root: QuotaNode, members: list[ClusterQueueState]) -> Iterator[Association]:
        names = {cq.name: cq for cq in members}
        yield Association(_account(root), None, is_user=False)
        above: dict[str, QuotaNode] = {}
        for cq in members:
            for node in (cq.node, *cq.node.ancestors()):
                if node.parent is not None:
                    above[_account(node)] = node
        for key in sorted(above):
            node = above[key]
            assert node.parent is not None
            yield Association(key, _account(node.parent), is_user=False, shares=node.weight)
        for key, queue in sorted(self._state.local_queues.items()):
            if queue.cluster_queue in names:
                cq = names[queue.cluster_queue]
                billed = cq.weights.usage if cq.weights is not None else DEFAULT_USAGE_WEIGHTS
                used = sum(weight * queue.past_use.get(name, 0.0) for name, weight in billed.items())
                parent = _account(cq.node)
                yield Association(f"{_USER}{key}", parent, is_user=True, shares=queue.fair_weight, usage=used)


_USER: Final = "LocalQueue "


def _account(node: QuotaNode) -> str:
    return f"{'Cohort' if isinstance(node, CohortNode) else 'ClusterQueue'} {node.name}"
