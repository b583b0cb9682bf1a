"""A flavor's topology tree: the domains of each level and how they nest.

Domains of a level are numbered in the lexicographic order of their level values. So the children of a domain have
consecutive numbers, and comparing numbers compares values. A tree is immutable; a node that adds or removes domains
leads to a new tree.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping

LeafKey = tuple[str, ...]
"""How assignments name a leaf: its hostname alone where that is the last level, else all its level values."""


class TopologyTree:
    """Domains by level and number.

    `values[level][domain]` are the level values from the first level down to this one; `children[level][domain]` is
    the range of its children's numbers one level down; `parents[level][domain]` the number of its parent one level up.
    """

    __slots__ = ("children", "leaf_keys", "leaf_numbers", "parents", "values")

    def __init__(self, leaf_values: Mapping[LeafKey, tuple[str, ...]], depth: int) -> None:
        """Build the tree of `depth` levels from each leaf's key and its values on all levels."""
        leaves = sorted(leaf_values.items(), key=lambda leaf: leaf[1])
        self.leaf_keys: list[LeafKey] = [key for key, _ in leaves]
        self.leaf_numbers: dict[LeafKey, int] = {key: number for number, key in enumerate(self.leaf_keys)}
        self.values: list[list[tuple[str, ...]]] = [[] for _ in range(depth)]
        self.parents: list[list[int]] = [[] for _ in range(depth)]
        self.values[-1] = [values for _, values in leaves]
        for level in range(depth - 1, 0, -1):
            self._group(level)
        self.children: list[list[range]] = [self._ranges(level) for level in range(depth - 1)]

    def _group(self, level: int) -> None:
        """Build the domains above `level` from those on it."""
        upper = self.values[level - 1]
        for values in self.values[level]:
            parent = values[:level]
            if not upper or upper[-1] != parent:
                upper.append(parent)
            self.parents[level].append(len(upper) - 1)

    def _ranges(self, level: int) -> list[range]:
        starts: list[int] = []
        for number, parent in enumerate(self.parents[level + 1]):
            if parent == len(starts):
                starts.append(number)
        ends = [*starts, len(self.parents[level + 1])][1:]
        return [range(start, end) for start, end in zip(starts, ends, strict=True)]

    @property
    def depth(self) -> int:
        return len(self.values)

    @property
    def last_level(self) -> int:
        """The number of the last level, that of the leaves."""
        return len(self.values) - 1

    def leaves_below(self, level: int, domain: int) -> range:
        """Return the numbers of the leaves in a domain."""
        first, last = domain, domain
        for lower in range(level, self.last_level):
            first, last = self.children[lower][first].start, self.children[lower][last].stop - 1
        return range(first, last + 1)

    def leaves_with_prefix(self, values: tuple[str, ...]) -> range:
        """Return the numbers of the leaves in the domain with these values of the first levels; empty if there
        is none."""
        level = len(values) - 1
        domain = bisect_left(self.values[level], values)
        if domain == len(self.values[level]) or self.values[level][domain] != values:
            return range(0)
        return self.leaves_below(level, domain)
