"""The quota that each user and each group holds below ClusterQueues and Cohorts that limit users or groups.

Amounts are the charges of the workloads, in base units, summed over flavors. Sums are computed when a limit is first
checked, and kept up to date from then on, until the tree or a limit changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.policies.headroom import NOTHING, Holding, QueueLevel, group_of
from scheduling.quota.cells import CellAmounts
from scheduling.state.cluster_queue import ClusterQueueState, LimitedNode
from scheduling.state.workload_info import WorkloadInfo


@dataclass(slots=True)
class _Sum:
    """The charges of a user's or a group's workloads below a node."""

    workloads: int = 0
    resources: dict[str, int] = field(default_factory=dict)

    def add(self, usage: CellAmounts, sign: int) -> None:
        """Add the charge of one workload, or with sign -1 remove it."""
        self.workloads += sign
        for cell, amount in usage:
            resource = cell.key.resource
            self.resources[resource] = self.resources.get(resource, 0) + sign * amount


@dataclass(slots=True)
class _Sums:
    """The sums below a node by user, and by the group in which a workload counts."""

    users: dict[str, _Sum] = field(default_factory=dict)
    groups: dict[str, _Sum] = field(default_factory=dict)

    def add(self, user: str, group: str, usage: CellAmounts, sign: int) -> None:
        """Add the charge of one workload, or with sign -1 remove it."""
        self.users.setdefault(user, _Sum()).add(usage, sign)
        if group:
            self.groups.setdefault(group, _Sum()).add(usage, sign)


class UserUsage:
    """Sums by limited node, and by user and group."""

    def __init__(self, cluster_queues: Mapping[str, ClusterQueueState]) -> None:
        self._cluster_queues = cluster_queues
        self._sums: dict[str, _Sums] = {}
        """By the name of a limited node."""

    def forget(self) -> None:
        """Compute all sums again: the tree or a limit changed, or a batch was undone."""
        self._sums.clear()

    def add(self, info: WorkloadInfo, cq: ClusterQueueState, usage: CellAmounts, sign: int = 1) -> None:
        """Count a workload that holds quota now, or with sign -1 no longer does."""
        group = group_in(cq, info.workload.user_groups)
        for node in cq.user_limits:
            sums = self._sums.get(node.name)
            if sums is not None:
                sums.add(info.workload.submitted_by, group, usage, sign)

    def path(self, info: WorkloadInfo, cq: ClusterQueueState, replaced: Sequence[WorkloadInfo]) -> list[QueueLevel]:
        """Return the limited nodes from the ClusterQueue up, each with the quota that the workload's user and group
        hold below it.

        `replaced`: workloads of the ClusterQueue that stop when this one starts, so that they do not count.
        """
        user, group = info.workload.submitted_by, group_in(cq, info.workload.user_groups)
        levels: list[QueueLevel] = []
        for node in cq.user_limits:
            sums = self._sums_of(node)
            held, shared = _holding(sums.users.get(user)), _holding(sums.groups.get(group))
            for other in replaced:
                if other.workload.submitted_by == user:
                    held = _without(held, other.usage)
                if group and group_in(cq, other.workload.user_groups) == group:
                    shared = _without(shared, other.usage)
            limits = node.limits_for(user, group)
            levels.append(QueueLevel(node.name, limits=limits, users={user: held}, groups={group: shared}))
        return levels

    def levels(self, cq: ClusterQueueState, user: str | None = None) -> list[QueueLevel]:
        """Return the limited nodes from the ClusterQueue up, each with the quota that every group and every user (or
        this one) holds below it."""
        found: list[QueueLevel] = []
        for node in cq.user_limits:
            sums = self._sums_of(node)
            own: Mapping[str, _Sum | None] = sums.users if user is None else {user: sums.users.get(user)}
            users, groups = ({name: _holding(held) for name, held in part.items()} for part in (own, sums.groups))
            found.append(QueueLevel(node.name, limits=node.limits, users=users, groups=groups))
        return found

    def _sums_of(self, node: LimitedNode) -> _Sums:
        if node.name not in self._sums:
            self._sum_up()
        return self._sums[node.name]

    def _sum_up(self) -> None:
        """Sum up all limited nodes at once, so that the cost does not grow with their number."""
        self._sums = {}
        for cq in self._cluster_queues.values():
            every = [self._sums.setdefault(node.name, _Sums()) for node in cq.user_limits]
            for info in cq.workloads.values() if every else ():
                user, group = info.workload.submitted_by, group_in(cq, info.workload.user_groups)
                for sums in every:
                    sums.add(user, group, info.usage, 1)


def group_in(cq: ClusterQueueState, groups: Sequence[str]) -> str:
    """Return the user's group that limits count in a ClusterQueue; "" if no group of the user is limited there."""
    if not groups or not any(node.by_group for node in cq.user_limits):
        return ""
    return group_of([QueueLevel(node.name, limits=node.limits) for node in cq.user_limits], groups)


def _holding(found: _Sum | None) -> Holding:
    return Holding(found.resources, found.workloads) if found is not None else NOTHING


def _without(held: Holding, usage: CellAmounts) -> Holding:
    """Return a holding without the charge of one of its workloads."""
    resources = dict(held.resources)
    for cell, amount in usage:
        resource = cell.key.resource
        resources[resource] = resources.get(resource, 0) - amount
    return Holding(resources, held.workloads - 1)
