"""Builds the tree of cohorts and ClusterQueues from their names, with all derived amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduling.model.cohort import Cohort, ResourceGroup
from scheduling.model.resources import FlavorResource
from scheduling.quota.cells import Cell, CohortNode, QuotaNode


def set_quotas(node: QuotaNode, groups: Iterable[ResourceGroup]) -> None:
    """Set the node's quotas from its resource groups. Cells that no longer have a quota keep their usage."""
    quotas = {
        FlavorResource(flavor.name, resource): quota
        for group in groups
        for flavor in group.flavors
        for resource, quota in flavor.resources.items()
    }
    for key in quotas:
        node.cell(key)
    for key, cell in node.cells.items():
        cell.set_quota(quotas.get(key))


def cohorts_in_cycles(parents: Mapping[str, str]) -> set[str]:
    """Return the cohorts whose chain of parents never ends: those in a cycle and their descendants."""
    cyclic: set[str] = set()
    settled: set[str] = set()
    for start in parents:
        path: list[str] = []
        name = start
        while name and name not in settled and name not in path:
            path.append(name)
            name = parents.get(name, "")
        if name in path or name in cyclic:
            cyclic.update(path)
        settled.update(path)
    return cyclic


class CohortTree:
    """All cohorts, declared or implicit. Call `rebuild` after any change of structure or quota."""

    def __init__(self) -> None:
        self.cohorts: dict[str, CohortNode] = {}
        self.cyclic: set[str] = set()

    def find_cycles(self, declared: Mapping[str, Cohort]) -> None:
        """Record the cohorts in or below a cycle. ClusterQueues there are inactive."""
        self.cyclic = cohorts_in_cycles({cohort.name: cohort.parent_name for cohort in declared.values()})

    def rebuild(self, declared: Mapping[str, Cohort], queues: Iterable[tuple[QuotaNode, str, bool]]) -> None:
        """Build the forest. Each of `queues` is (node with its own quotas, name of its cohort, whether it is active).

        Call `find_cycles` first: a cohort in a cycle gets no parent here. An inactive queue lends and uses quota, but
        is not a child: preemption finds no victims there, and it does not count in a cohort's height.
        """
        members = list(queues)
        parents = {cohort.name: cohort.parent_name for cohort in declared.values()}
        names = dict.fromkeys([*declared, *filter(None, parents.values()), *(c for _, c, _ in members if c)])
        nodes = self.cohorts = {name: CohortNode(name) for name in names}
        for name, node in nodes.items():
            parent = "" if name in self.cyclic else parents.get(name, "")
            if parent:
                node.parent = nodes[parent]
                node.parent.cohorts.append(node)
            node.weight = declared[name].fair_weight if name in declared else 1.0
        for node in nodes.values():
            node.depth = len(node.ancestors())
        for name, node in nodes.items():
            set_quotas(node, declared[name].resource_groups if name in declared else ())
        for queue, cohort, active in members:
            _attach(queue, nodes[cohort] if cohort else None, active)
        by_depth = sorted(nodes.values(), key=lambda node: -node.depth)
        _aggregate([queue for queue, _, _ in members], by_depth)
        _compute_shares([queue for queue, _, _ in members], by_depth)


def aggregate_again(root: CohortNode, queues: list[QuotaNode]) -> None:
    """Recompute the derived amounts of a tree whose cells got new quotas. `queues` are all its ClusterQueues, active or
    not."""
    cohorts = _cohorts_of(root)
    for node in cohorts:
        for cell in node.cells.values():
            cell.subtree = cell.usage = 0
    deepest_first = sorted(cohorts, key=lambda node: -node.depth)
    _aggregate(queues, deepest_first)
    _compute_shares(queues, deepest_first)


def _cohorts_of(root: CohortNode) -> list[CohortNode]:
    return [root, *(found for child in root.cohorts for found in _cohorts_of(child))]


def _attach(queue: QuotaNode, parent: CohortNode | None, active: bool) -> None:
    queue.parent = parent
    queue.depth = parent.depth + 1 if parent else 0
    for key, cell in queue.cells.items():
        cell.parent = parent.cell(key) if parent else None
    if parent is not None and active:
        parent.queues.append(queue)


def _aggregate(queues: list[QuotaNode], cohorts_deepest_first: list[CohortNode]) -> None:
    cells = [cell for queue in queues for cell in queue.cells.values()]
    for cell in cells:
        cell.subtree = 0
    for node in cohorts_deepest_first:
        below = [child.height for child in node.cohorts]
        node.height = max([1 if node.queues or below else 0, *(1 + height for height in below)])
    for cell in cells:
        _link(cell)
    for node in cohorts_deepest_first:
        for cell in node.cells.values():
            _link(cell)
    for node in reversed(cohorts_deepest_first):
        for cell in node.cells.values():
            cell.compute_potential()
    for cell in cells:
        cell.compute_potential()


def _link(cell: Cell) -> None:
    cell.link()
    parent = cell.parent
    if parent is not None:
        parent.listed = parent.listed or cell.listed
        parent.subtree += cell.subtree - cell.local
        parent.usage += max(0, cell.usage - cell.local)


def _compute_shares(queues: list[QuotaNode], cohorts: list[CohortNode]) -> None:
    lendable: dict[str, dict[str, int]] = {node.name: _lendable(node) for node in cohorts}
    for node in (*queues, *cohorts):
        rows: dict[str, list[Cell]] = {}
        for key, cell in node.cells.items():
            if cell.listed:
                rows.setdefault(key.resource, []).append(cell)
        parent = node.parent
        node.share_rows = [
            (resource, lendable[parent.name].get(resource, 0) if parent else 0, rows[resource])
            for resource in sorted(rows)
        ]


def _lendable(node: CohortNode) -> dict[str, int]:
    """Return per resource the highest amount that the cohort can ever give to one child: its potential over all
    flavors of its root."""
    total: dict[str, int] = {}
    for key, cell in node.root.cells.items():
        if cell.listed:
            total[key.resource] = total.get(key.resource, 0) + _potential(node, key)
    return total


def _potential(node: CohortNode, key: FlavorResource) -> int:
    above: CohortNode | None = node
    while above is not None:
        cell = above.cells.get(key)
        if cell is not None:
            return cell.potential
        above = above.parent
    return 0
