"""Quota arithmetic: one cell per (flavor, resource) at each node of the cohort tree.

    S  subtree   what the node owns, plus what its children lend
    L  local     the part of S that is not lent to the parent
    U  usage     for a ClusterQueue what its workloads use, for a cohort what its children use beyond their local part

Cells of one (flavor, resource) are linked from the ClusterQueue up to the root, so that arithmetic follows pointers.
All amounts are integers in base units.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

from scheduling.model.cohort import ResourceQuota
from scheduling.model.resources import FlavorResource

CellAmounts = tuple[tuple["Cell", int], ...]
"""Amounts charged to cells of one ClusterQueue."""


class Cell:
    """Quota and usage of one (flavor, resource) at one node. `listed`: the node, or one below it, gives it a quota.

    `declared` is the node's own quota. `deserved`: a sharing policy has replaced its amounts, and gives this amount to
    the node and everything below it; None without one.
    """

    __slots__ = (
        "borrowing_limit",
        "declared",
        "deserved",
        "key",
        "lending_limit",
        "listed",
        "local",
        "node",
        "nominal",
        "parent",
        "potential",
        "subtree",
        "usage",
    )

    def __init__(self, key: FlavorResource, node: QuotaNode) -> None:
        self.key = key
        self.node = node
        self.parent: Cell | None = None
        self.declared: ResourceQuota | None = None
        self.deserved: int | None = None
        self.nominal = 0
        self.borrowing_limit: int | None = None
        self.lending_limit: int | None = None
        self.listed = False
        self.subtree = 0
        self.local = 0
        self.usage = 0
        self.potential = 0

    def set_quota(self, quota: ResourceQuota | None) -> None:
        """Set the node's own quota; None if it has none."""
        self.declared = quota
        self.deserved = None
        self.listed = quota is not None
        self.nominal = quota.nominal if quota else 0
        self.borrowing_limit = quota.borrowing_limit if quota else None
        self.lending_limit = quota.lending_limit if quota else None

    def entitle(self, deserved: int, quota: ResourceQuota) -> None:
        """Set the amounts of a sharing policy in place of the cell's own quota."""
        self.deserved = deserved
        self.nominal, self.borrowing_limit, self.lending_limit = (
            quota.nominal,
            quota.borrowing_limit,
            quota.lending_limit,
        )

    @property
    def kept(self) -> int:
        """The amount that stays with the node: its subtree quota. Amounts from a sharing policy may move to other
        nodes; only their declared part stays."""
        if self.deserved is None:
            return self.subtree
        return min(self.subtree, self.declared.nominal if self.declared is not None else 0)

    def available(self) -> int:
        """Return the free amount; negative (the caller clamps it) if quota was cut below usage."""
        parent = self.parent
        usage = self.usage
        if parent is None:
            return self.subtree - usage
        local = self.local
        found = parent.available()
        if self.borrowing_limit is not None:
            lent = self.subtree - local
            own = lent - (usage - local if usage > local else 0) + self.borrowing_limit
            found = min(own, found)
        return found + local - usage if local > usage else found

    def room(self, *, borrowing: bool) -> int:
        """Return the free amount, either with borrowing or within the node's own quota; may be negative, as in
        `available`."""
        found = self.available()
        return found if borrowing else min(found, self.kept - self.usage)

    def add(self, amount: int) -> None:
        """Add usage. The part that exceeds the local quota is added at the parent too."""
        cell: Cell | None = self
        while cell is not None:
            free = cell.local - cell.usage
            cell.usage += amount
            if free > 0:
                amount -= free
                if amount <= 0:
                    return
            cell = cell.parent

    def remove(self, amount: int) -> None:
        """Remove usage: the exact inverse of `add` with the same amount."""
        cell: Cell | None = self
        while cell is not None:
            stored = cell.usage - cell.local
            cell.usage -= amount
            if stored <= 0:
                return
            amount = min(amount, stored)
            cell = cell.parent

    def borrow_level(self, amount: int) -> tuple[int, bool]:
        """Return how many levels up the tree there is room for `amount` more (0: the node itself), and whether the
        subtree there is smaller than the whole tree."""
        if self.parent is None:
            return 0, False
        if self.usage + amount <= self.subtree:
            return 0, True
        rest = amount - max(0, self.local - self.usage)
        cell = self.parent
        while cell.usage + rest > cell.subtree:
            if cell.parent is None:
                return cell.node.height, False
            rest -= max(0, cell.local - cell.usage)
            cell = cell.parent
        return cell.node.height, cell.parent is not None

    def reservable(self, amount: int, borrows: bool) -> int:
        """Return the part of an amount that a waiting preemptor reserves: within the nominal quota, or within the
        borrowing limit if it borrows. Negative if usage is above that limit."""
        if not borrows:
            return max(0, min(amount, self.nominal - self.usage))
        if self.borrowing_limit is None:
            return amount
        return min(amount, self.nominal + self.borrowing_limit - self.usage)

    def link(self) -> None:
        """Compute subtree and local quota. The children's lendable quota must have been added to `subtree`."""
        self.subtree += self.nominal
        limited = self.parent is not None and self.lending_limit is not None
        self.local = max(0, self.subtree - (self.lending_limit or 0)) if limited else 0

    def compute_potential(self) -> None:
        """Compute the highest possible usage of the node. The parent must be computed first."""
        if self.parent is None:
            self.potential = self.subtree
            return
        self.potential = self.local + self.parent.potential
        if self.borrowing_limit is not None:
            self.potential = min(self.potential, self.subtree + self.borrowing_limit)


class QuotaNode:
    """A ClusterQueue or a cohort in the tree. `height` is 0 for a ClusterQueue; `depth` counts from the root."""

    __slots__ = ("cells", "depth", "height", "name", "parent", "share_rows", "weight")

    def __init__(self, name: str) -> None:
        self.name = name
        self.parent: CohortNode | None = None
        self.cells: dict[FlavorResource, Cell] = {}
        self.height = 0
        self.depth = 0
        self.weight = 1.0
        self.share_rows: list[tuple[str, int, list[Cell]]] = []
        """Per resource, sorted by name: the most that the parent can lend of it, and the node's own cells."""

    def cell(self, key: FlavorResource) -> Cell:
        """Return the cell of (flavor, resource). A missing cell is created, with the cells above it."""
        found = self.cells.get(key)
        if found is None:
            found = self.cells[key] = Cell(key, self)
            if self.parent is not None:
                found.parent = self.parent.cell(key)
                self.parent.forget_children()
        return found

    def ancestors(self) -> list[CohortNode]:
        """Return the cohorts above, from the parent to the root."""
        found: list[CohortNode] = []
        node = self.parent
        while node is not None:
            found.append(node)
            node = node.parent
        return found

    @property
    def root(self) -> QuotaNode:
        """The root of the tree; the node itself if it has no cohort."""
        node: QuotaNode = self
        while node.parent is not None:
            node = node.parent
        return node


class CohortNode(QuotaNode):
    """A cohort. `cohorts` and `queues` are its children, without inactive queues."""

    __slots__ = ("_children", "cohorts", "queues")

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.cohorts: list[CohortNode] = []
        self.queues: list[QuotaNode] = []
        self._children: dict[frozenset[FlavorResource], Children] = {}

    def children_with(self, keys: frozenset[FlavorResource]) -> Children:
        """Return the children that have cells of these keys, with those cells. The result is cached, because every
        preemption search needs it; a changed tree is built from new cohorts."""
        found = self._children.get(keys)
        if found is None:
            found = self._children[keys] = (_with_cells(self.cohorts, keys), _with_cells(self.queues, keys))
        return found

    def forget_children(self) -> None:
        """Drop the cache, because a child got a new cell."""
        self._children.clear()


Node = TypeVar("Node", bound=QuotaNode)
Children = tuple[list[tuple[CohortNode, list[Cell]]], list[tuple[QuotaNode, list[Cell]]]]
"""Cohorts and ClusterQueues, each with some of its cells."""


def _with_cells(nodes: Iterable[Node], keys: frozenset[FlavorResource]) -> list[tuple[Node, list[Cell]]]:
    pairs = ((node, [node.cells[key] for key in keys if key in node.cells]) for node in nodes)
    return [(node, cells) for node, cells in pairs if cells]


def fits_without_borrowing(
    node: QuotaNode, requests: Iterable[tuple[FlavorResource, int]]
) -> tuple[bool, list[tuple[FlavorResource, int]]]:
    """Return whether the subtree quota of the node holds the requests, and the amounts that it would request from
    its parent."""
    fits = True
    rest: list[tuple[FlavorResource, int]] = []
    for key, amount in requests:
        cell = node.cells.get(key)
        usage, subtree, local = (cell.usage, cell.subtree, cell.local) if cell else (0, 0, 0)
        if usage + amount > subtree:
            fits = False
        rest.append((key, max(0, amount - max(0, local - usage))))
    return fits, rest


def is_within_nominal(node: QuotaNode, keys: Iterable[FlavorResource]) -> bool:
    """Return whether the node uses no more than its subtree quota of each (flavor, resource)."""
    cells = node.cells
    for key in keys:
        cell = cells.get(key)
        if cell is not None and cell.usage > cell.subtree:
            return False
    return True


def add_usage(amounts: CellAmounts) -> None:
    for cell, amount in amounts:
        cell.add(amount)


def remove_usage(amounts: CellAmounts) -> None:
    for cell, amount in amounts:
        cell.remove(amount)
