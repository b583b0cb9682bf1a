"""The order in which a cycle decides its entries: classical or fair sharing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cmp_to_key
from heapq import heapify, heappop
from types import MappingProxyType
from typing import Any, Final

from scheduling.cycle.nomination import Entry
from scheduling.model.configuration import Features
from scheduling.policies.queue_order import Path, compare_queues
from scheduling.quota.cells import CohortNode, QuotaNode, add_usage, remove_usage
from scheduling.quota.fair_sharing import Share, dominant_resource_share

_ALL: Final = Features()
EntryOrder = tuple[int, float, str, str]
Paths = Mapping[str, Path]
"""The standings of ClusterQueues in cohorts with a sharing policy."""
_RANK: Final = cmp_to_key(compare_queues)


def classical_order(
    entries: Iterable[Entry], features: Features = _ALL, paths: Paths = MappingProxyType({})
) -> Iterator[Entry]:
    """Sort by borrowing level, lower first, then by the order within a queue: priority, time, uid.

    The entries of a cohort with a sharing policy take their places in the order of their queues.
    """
    found = sorted(entries, key=lambda entry: (entry.assignment.level, _order(entry, features)))
    return iter(_by_sharing_policy(found, paths) if paths else found)


def _by_sharing_policy(entries: list[Entry], paths: Paths) -> list[Entry]:
    """Exchange the places of entries whose queues have the same cohort with a policy. Equal ones keep their order."""
    places: dict[str, list[int]] = {}
    for place, entry in enumerate(entries):
        path = paths.get(entry.cq.name)
        if path is not None:
            places.setdefault(path[0].name, []).append(place)
    found = list(entries)
    for taken in places.values():
        in_turn = sorted((entries[place] for place in taken), key=lambda entry: _turn(entry, paths[entry.cq.name]))
        for place, entry in zip(taken, in_turn, strict=True):
            found[place] = entry
    return found


def _turn(entry: Entry, path: Path) -> tuple[bool, Any]:
    return (path[-1].share_first and entry.assignment.level > 0, _RANK(path))


def _order(entry: Entry, features: Features) -> EntryOrder:
    """Return the sort key across queues: class and time, or the multifactor priority where the root cohort weighs it.

    Without priority sorting it omits the priority.
    """
    order = entry.info.order if entry.cq.ordered_across else entry.info.class_order
    return order if features.priority_sorting else (0, *order[1:])


FairKey = tuple[bool, Share, EntryOrder]


class _Contender:
    """An entry with its rank at each cohort above its ClusterQueue."""

    __slots__ = ("entry", "key")

    def __init__(self, entry: Entry, key: FairKey) -> None:
        self.entry = entry
        self.key = key

    def __lt__(self, other: _Contender) -> bool:
        return self.key < other.key


class _Arena:
    """The tournament in one cohort: a heap of its own queues' entries, and the arenas of its child cohorts.

    An entry's share at a child depends only on that child's usage. Deciding an entry changes usage only on its own
    path to the root, and no other entry of its ClusterQueue is left there. So the heap stays valid, and only the
    winners on that path are compared again.
    """

    __slots__ = ("children", "cohort", "contenders", "features", "winner")

    def __init__(self, cohort: CohortNode, features: Features) -> None:
        self.cohort = cohort
        self.features = features
        self.contenders: list[_Contender] = []
        self.children: dict[int, _Arena] = {}
        self.winner: Entry | None = None

    def refresh(self) -> None:
        """Find the winner again. The winners of the child cohorts must be current."""
        best: Entry | None = self.contenders[0].entry if self.contenders else None
        key: FairKey | None = self.contenders[0].key if self.contenders else None
        for child in self.children.values():
            if child.winner is None:
                continue
            child_key = _fair_key(child.winner, child.cohort, self.features)
            if key is None or child_key < key:
                best, key = child.winner, child_key
        self.winner = best


def fair_order(
    entries: Iterable[Entry], features: Features = _ALL, paths: Paths = MappingProxyType({})
) -> Iterator[Entry]:
    """Yield the winner of the tournament until no entry is left. Each entry is decided before the next is drawn.
    Entries of queues without a cohort, or whose cohort has a sharing policy, come first."""
    arenas: dict[int, _Arena] = {}
    roots: list[_Arena] = []
    lone: list[Entry] = []
    for entry in entries:
        node = entry.cq.node
        if node.parent is None or entry.cq.name in paths:
            lone.append(entry)
            continue
        arena = _arena(node.parent, features, arenas, roots)
        arena.contenders.append(_Contender(entry, _fair_key(entry, node, features)))
    lone.sort(key=lambda entry: _order(entry, features))
    yield from _by_sharing_policy(lone, paths)
    for arena in arenas.values():
        heapify(arena.contenders)
    for arena in sorted(arenas.values(), key=lambda arena: -arena.cohort.depth):
        arena.refresh()
    for root in roots:
        while root.winner is not None:
            entry = root.winner
            parent = entry.cq.node.parent
            assert parent is not None
            heappop(arenas[id(parent)].contenders)
            yield entry
            for cohort in entry.cq.node.ancestors():
                arenas[id(cohort)].refresh()


def _arena(cohort: CohortNode, features: Features, arenas: dict[int, _Arena], roots: list[_Arena]) -> _Arena:
    arena = arenas.get(id(cohort))
    if arena is None:
        arena = arenas[id(cohort)] = _Arena(cohort, features)
        if cohort.parent is None:
            roots.append(arena)
        else:
            _arena(cohort.parent, features, arenas, roots).children[id(cohort)] = arena
    return arena


def _fair_key(entry: Entry, node: QuotaNode, features: Features) -> FairKey:
    """Return the sort key: entries that need not borrow first, then the smaller share (both as if the entry were
    admitted), then queue order."""
    amounts = entry.net_usage()
    add_usage(amounts)
    share = dominant_resource_share(node)
    borrows = False
    cells = node.cells
    for cell, _ in amounts if features.prefers_non_borrowing else ():
        own = cells[cell.key]
        if own.usage > own.subtree:
            borrows = True
            break
    remove_usage(amounts)
    return (borrows, share, _order(entry, features))
