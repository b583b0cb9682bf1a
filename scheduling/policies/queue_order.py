"""The order in which Volcano's queues are served: by priority, then by the share of what they deserve.

A queue with a higher priority goes first; then the one with the smaller share; at equal shares, one that deserves
something before one that deserves nothing; then the older one; then by name. In a tree the shares are those of the
ancestors just below the lowest common one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from heapq import heapify, heappop


@dataclass(frozen=True, slots=True)
class Standing:
    """A queue as compared with others. `best_effort`: it deserves nothing. `created`: a number that is smaller for an
    older queue. `share_first`: a workload that would make it exceed its share waits for all others, whatever the
    priorities (KAI).
    """

    name: str
    priority: int
    share: float
    best_effort: bool
    created: float = 0.0
    share_first: bool = False


Path = Sequence[Standing]
"""A queue's ancestors from below the root down to itself."""


def order_of_queues(paths: Mapping[str, Path]) -> list[str]:
    """Return the names of the queues in the order in which they are served."""

    def compare(first: str, second: str) -> int:
        own, other = paths[first], paths[second]
        return compare_queues(own, other) or (-1 if _age(own) < _age(other) else 1)

    # The order is not transitive in a tree, so a heap, as in Volcano, may give another result than a sort.
    rank = cmp_to_key(compare)
    waiting = [(rank(name), name) for name in paths]
    heapify(waiting)
    return [heappop(waiting)[1] for _ in paths]


def compare_queues(path: Path, other: Path) -> int:
    """Return -1 if the first queue comes before the other, 1 if it comes after it, 0 if they differ only in age and
    name.
    """
    ours, theirs = _rank(path, other), _rank(other, path)
    return -1 if ours < theirs else int(ours > theirs)


def _rank(path: Path, other: Path) -> tuple[int, float, bool]:
    """Return the sort key of a queue against another one; the smaller goes first."""
    own = path[-1]
    compared = next((a for a, b in zip(path, other, strict=False) if a.name != b.name), own)
    return (-own.priority, compared.share, compared.best_effort)


def _age(path: Path) -> tuple[float, str]:
    return (path[-1].created, path[-1].name)
