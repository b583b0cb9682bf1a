"""How many pods and slices each domain of a topology can hold (phase 1 of placing, Kueue's fillInCounts).

The counts depend on the pods' shape only: requests, leader, slices and node selection. They are kept per shape and
brought up to date leaf by leaf, since between two placements few leaves change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Self

from scheduling.topology.tree import TopologyTree

PodRequests = tuple[tuple[str, int], ...]
"""One pod's positive requests by resource name, sorted, `pods` included."""


@dataclass(frozen=True, slots=True)
class SliceLayers:
    """Slices of `size` pods that must each lie in one domain of `level`.

    `inner_sizes` has, per level of the topology, the size of the inner layer's slices that the domain's pods are
    counted in; 1 if no inner layer applies.
    """

    level: int
    size: int
    inner_sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LeafState:
    """Live views of the leaves, by leaf number.

    `free` is allocatable minus foreign usage; `used` is the usage of topology-aware workloads.
    """

    free: Sequence[Mapping[str, int]]
    used: Sequence[Mapping[str, int]]


LeafFilter = Callable[[int], bool]
"""Says whether the pods may use a leaf at all."""


def pods_that_fit(requests: PodRequests, free: Mapping[str, int], used: Mapping[str, int]) -> int:
    """Return how many pods the leaf has room for. A resource that it does not list counts as 0; overuse counts as no
    room."""
    fewest = -1
    for resource, amount in requests:
        count = (free.get(resource, 0) - used.get(resource, 0)) // amount
        if count <= 0:
            return 0
        if fewest < 0 or count < fewest:
            fewest = count
    return max(fewest, 0)


@dataclass(frozen=True, slots=True)
class PodShape:
    """The values that the counts depend on, apart from the leaves and from which of them may be used.

    `ignore_used` counts without the usage of topology-aware workloads.
    """

    requests: PodRequests
    leader_requests: PodRequests | None
    slices: SliceLayers
    ignore_used: bool = False


class Capacities:
    """The counts of all domains for one shape, as lists by level and domain number.

    `pods` and `slices` are the capacity of the domain; `pods_with_leader` and `slices_with_leader` its capacity beside
    the leader; `leaders` is 1 if the leader can be, and 0 everywhere when there is no leader. Slices are counted from
    the slice level upwards and are 0 below.
    """

    __slots__ = (
        "_state",
        "_tree",
        "_usable",
        "leaders",
        "pods",
        "pods_with_leader",
        "shape",
        "slices",
        "slices_with_leader",
    )

    def __init__(self, tree: TopologyTree, state: LeafState, shape: PodShape, usable: LeafFilter | None) -> None:
        self._tree = tree
        self._state = state
        self._usable = _every_leaf if usable is None else usable
        self.shape = shape
        self.pods = _zeros(tree)
        self.slices = _zeros(tree)
        self.leaders = _zeros(tree)
        has_leader = shape.leader_requests is not None
        self.pods_with_leader = _zeros(tree) if has_leader else self.pods
        self.slices_with_leader = _zeros(tree) if has_leader else self.slices
        self.update(range(len(tree.leaf_keys)))

    def update(self, leaves: Iterable[int]) -> None:
        """Recount these leaves and every domain above them."""
        used = self._state.used
        self.count({leaf: _NOTHING if self.shape.ignore_used else used[leaf] for leaf in leaves})

    def with_assumed(self, assumed: Mapping[int, Mapping[str, int]]) -> Self:
        """Return the counts that the leaves, given by number, would have with this additional usage."""
        own = self.copy()
        used = self._state.used
        own.count({leaf: more if self.shape.ignore_used else _sum(used[leaf], more) for leaf, more in assumed.items()})
        return own

    def limited_to(
        self, pods: Sequence[int] | None, beside_leader: Sequence[int] | None, leaders: Sequence[int] | None
    ) -> Self:
        """Return the counts if reasons outside the topology limit each leaf to these numbers of pods, pods beside the
        leader, and leaders; None means no limit."""
        own = self.copy()
        if pods is not None:
            own.pods[-1][:] = map(min, own.pods[-1], pods)
            own.pods_with_leader[-1][:] = map(min, own.pods_with_leader[-1], pods)
        if self.shape.leader_requests is not None:
            if leaders is not None:
                own.leaders[-1][:] = map(min, own.leaders[-1], leaders)
            if beside_leader is not None:
                own.pods_with_leader[-1][:] = map(min, own.pods_with_leader[-1], beside_leader)
        own.sum_up(range(len(self._tree.leaf_keys)))
        return own

    def copy(self) -> Self:
        """Return an independent copy of the counts."""
        own = copy(self)
        own.pods, own.slices = _copied(self.pods), _copied(self.slices)
        if self.shape.leader_requests is None:
            own.pods_with_leader, own.slices_with_leader = own.pods, own.slices
        else:
            own.leaders = _copied(self.leaders)
            own.pods_with_leader, own.slices_with_leader = (
                _copied(self.pods_with_leader),
                _copied(self.slices_with_leader),
            )
        return own

    def clear(self, leaves: Iterable[int]) -> None:
        """Set the leaves' counts to 0; call `sum_up` afterwards."""
        for leaf in leaves:
            self.pods[-1][leaf] = self.slices[-1][leaf] = 0
        self.clear_leaders(leaves)

    def clear_leaders(self, leaves: Iterable[int]) -> None:
        """Exclude leaders from the leaves; call `sum_up` afterwards."""
        for leaf in leaves if self.shape.leader_requests is not None else ():
            self.leaders[-1][leaf] = self.pods_with_leader[-1][leaf] = self.slices_with_leader[-1][leaf] = 0

    def count(self, used: Mapping[int, Mapping[str, int]]) -> None:
        """Recount the leaves, given by number with their usage, and every domain above them."""
        if self.shape.leader_requests is None:
            self._count_pods(used)
        else:
            self._count_pods_and_leader(used, self.shape.leader_requests)
        self.sum_up(used)

    def sum_up(self, domains: Iterable[int]) -> None:
        """Recompute the domains above the leaves."""
        level = self._tree.last_level
        self._count_slices(level, domains)
        while level > 0:
            parents = self._tree.parents[level]
            domains = {parents[domain] for domain in domains}
            level -= 1
            self._sum_children(level, domains)
            self._count_slices(level, domains)

    def _count_pods(self, used: Mapping[int, Mapping[str, int]]) -> None:
        pods, free, requests = self.pods[-1], self._state.free, self.shape.requests
        for leaf, leaf_used in used.items():
            pods[leaf] = pods_that_fit(requests, free[leaf], leaf_used) if self._usable(leaf) else 0

    def _count_pods_and_leader(self, used: Mapping[int, Mapping[str, int]], leader_requests: PodRequests) -> None:
        self._count_pods(used)
        for leaf, leaf_used in used.items():
            free = self._state.free[leaf]
            leads = self._usable(leaf) and pods_that_fit(leader_requests, free, leaf_used) > 0
            self.leaders[-1][leaf] = int(leads)
            self.pods_with_leader[-1][leaf] = (
                pods_that_fit(self.shape.requests, free, _sum(leaf_used, dict(leader_requests)))
                if leads
                else self.pods[-1][leaf]
            )

    def _sum_children(self, level: int, domains: Iterable[int]) -> None:
        ranges = self._tree.children[level]
        pods, lower_pods = self.pods[level], self._whole(self.pods, level + 1)
        beside_leader = self._whole(self.pods_with_leader, level + 1)
        slices, lower_slices = self.slices[level], self.slices[level + 1]
        sum_slices = level < self.shape.slices.level
        for domain in domains:
            first, end = ranges[domain].start, ranges[domain].stop
            pods[domain] = sum(lower_pods[first:end])
            if sum_slices:
                slices[domain] = sum(lower_slices[first:end])
            if self.shape.leader_requests is not None:
                self._seat_leader(level, domain, ranges[domain], lower_pods, beside_leader)

    def _seat_leader(
        self, level: int, domain: int, children: range, pods: Sequence[int], beside: Sequence[int]
    ) -> None:
        """Seat the leader in the child in which it displaces the fewest pods and, separately, the fewest slices.
        Without a seat nothing fits.

        `pods` is the capacity of the children, `beside` their capacity beside the leader.
        """
        lower = level + 1
        seats = [child for child in children if self.leaders[lower][child]]
        self.leaders[level][domain] = int(bool(seats))
        if not seats:
            self.pods_with_leader[level][domain] = self.slices_with_leader[level][domain] = 0
            return
        self.pods_with_leader[level][domain] = self.pods[level][domain] - min(pods[c] - beside[c] for c in seats)
        slices, beside = self.slices[lower], self.slices_with_leader[lower]
        self.slices_with_leader[level][domain] = self.slices[level][domain] - min(slices[c] - beside[c] for c in seats)

    def _whole(self, counts: list[list[int]], level: int) -> Sequence[int]:
        """Return the counts that the domains of a level pass up: whole slices of the slice layer that applies at this
        level.
        """
        size = self.shape.slices.inner_sizes[level]
        return counts[level] if size == 1 else [count - count % size for count in counts[level]]

    def _count_slices(self, level: int, domains: Iterable[int]) -> None:
        layers = self.shape.slices
        has_leader = self.shape.leader_requests is not None
        if level == layers.level:
            for domain in domains:
                self.slices[level][domain] = self.pods[level][domain] // layers.size
                if has_leader:
                    self.slices_with_leader[level][domain] = self.pods_with_leader[level][domain] // layers.size


_NOTHING: Mapping[str, int] = {}


def _every_leaf(leaf: int) -> bool:
    return True


def _zeros(tree: TopologyTree) -> list[list[int]]:
    return [[0] * len(level) for level in tree.values]


def _copied(levels: Sequence[Sequence[int]]) -> list[list[int]]:
    return [list(level) for level in levels]


def _sum(used: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    total = dict(used)
    for resource, amount in more.items():
        total[resource] = total.get(resource, 0) + amount
    return total
