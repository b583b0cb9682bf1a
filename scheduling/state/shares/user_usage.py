"""The quota that each user holds below ClusterQueues and Cohorts that limit users.

Amounts are the charges of the workloads, in base units, summed over flavors. Sums are computed when a limit is first
checked, and kept up to date from then on, until the tree or a limit changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.policies.headroom import NOTHING, Holding, QueueLevel
from scheduling.quota.cells import CellAmounts
from scheduling.state.cluster_queue import ClusterQueueState, LimitedNode
from scheduling.state.workload_info import WorkloadInfo


@dataclass(slots=True)
class _Sum:
    """The charges of a user's workloads below a node."""

    workloads: int = 0
    resources: dict[str, int] = field(default_factory=dict)

    def add(self, usage: CellAmounts, sign: int) -> None:
        """Add the charge of one workload, or with sign -1 remove it."""
        self.workloads += sign
        for cell, amount in usage:
            resource = cell.key.resource
            self.resources[resource] = self.resources.get(resource, 0) + sign * amount


class UserUsage:
    """Sums by limited node and user."""

    def __init__(self, cluster_queues: Mapping[str, ClusterQueueState]) -> None:
        self._cluster_queues = cluster_queues
        self._sums: dict[str, dict[str, _Sum]] = {}
        """Name of a limited node -> user -> what the user holds below it."""

    def forget(self) -> None:
        """Compute all sums again: the tree or a limit changed, or a batch was undone."""
        self._sums.clear()

    def add(self, info: WorkloadInfo, cq: ClusterQueueState, usage: CellAmounts, sign: int = 1) -> None:
        """Count a workload that holds quota now, or with sign -1 no longer does."""
        for node in cq.user_limits:
            users = self._sums.get(node.name)
            if users is not None:
                users.setdefault(info.workload.submitted_by, _Sum()).add(usage, sign)

    def path(self, info: WorkloadInfo, cq: ClusterQueueState, replaced: Sequence[WorkloadInfo]) -> list[QueueLevel]:
        """Return the limited nodes from the ClusterQueue up, each with what the workload's user holds below it.

        `replaced`: workloads of the ClusterQueue that stop when this one starts, so that they do not count.
        """
        user = info.workload.submitted_by
        levels: list[QueueLevel] = []
        for node in cq.user_limits:
            held = self._holding(node, user)
            for other in replaced:
                if other.workload.submitted_by == user:
                    held = _without(held, other.usage)
            levels.append(QueueLevel(node.name, limits=node.limits_for(user), users={user: held}))
        return levels

    def levels(self, cq: ClusterQueueState) -> list[QueueLevel]:
        """Return the limited nodes from the ClusterQueue up, each with what every user holds below it."""
        found: list[QueueLevel] = []
        for node in cq.user_limits:
            users = {user: Holding(held.resources, held.workloads) for user, held in self._users(node).items()}
            found.append(QueueLevel(node.name, limits=node.limits, users=users))
        return found

    def _holding(self, node: LimitedNode, user: str) -> Holding:
        found = self._users(node).get(user)
        return Holding(found.resources, found.workloads) if found is not None else NOTHING

    def _users(self, node: LimitedNode) -> dict[str, _Sum]:
        if node.name not in self._sums:
            self._sum_up()
        return self._sums[node.name]

    def _sum_up(self) -> None:
        """Sum up all limited nodes at once, so that the cost does not grow with their number."""
        self._sums = {}
        for cq in self._cluster_queues.values():
            for users in [self._sums.setdefault(node.name, {}) for node in cq.user_limits]:
                for info in cq.workloads.values():
                    users.setdefault(info.workload.submitted_by, _Sum()).add(info.usage, 1)


def _without(held: Holding, usage: CellAmounts) -> Holding:
    """Return a holding without the charge of one of its workloads."""
    resources = dict(held.resources)
    for cell, amount in usage:
        resource = cell.key.resource
        resources[resource] = resources.get(resource, 0) - amount
    return Holding(resources, held.workloads - 1)
