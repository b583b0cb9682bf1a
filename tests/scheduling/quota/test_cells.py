"""Quota arithmetic against its definition."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.resources import FlavorResource
from scheduling.quota.cells import Cell, CohortNode, QuotaNode
from scheduling.world import World
from tests.scheduling.worlds import Plan, plans


def nodes(world: World) -> list[QuotaNode]:
    """Every node of the forest."""
    world.has_active()
    return [*world._state.tree.cohorts.values(), *(cq.node for cq in world._state.cluster_queues.values())]


def local_available(cell: Cell) -> int:
    """What is left of the part that is not lent."""
    return max(0, cell.local - cell.usage)


def available(cell: Cell) -> int:
    """5.3, word for word."""
    parent = cell.parent
    if parent is None:
        return cell.subtree - cell.usage
    from_parent = available(parent)
    if cell.borrowing_limit is not None:
        own = (cell.subtree - cell.local) - max(0, cell.usage - cell.local) + cell.borrowing_limit
        from_parent = min(from_parent, own)
    return local_available(cell) + from_parent


@given(plans())
def test_derived_numbers_follow_their_definition(plan: Plan) -> None:
    world = plan.build().world
    found = nodes(world)
    for node in found:
        children = [child for child in found if child.parent is node]
        for key, cell in node.cells.items():
            below = [child.cells[key] for child in children if key in child.cells]
            assert cell.subtree == cell.nominal + sum(c.subtree - c.local for c in below)
            limited = cell.parent is not None and cell.lending_limit is not None
            assert cell.local == (max(0, cell.subtree - (cell.lending_limit or 0)) if limited else 0)
            if cell.parent is None:
                assert cell.potential == cell.subtree
            else:
                ceiling = cell.subtree + (cell.borrowing_limit if cell.borrowing_limit is not None else 10**9)
                assert cell.potential == min(cell.local + cell.parent.potential, ceiling)


@given(plans(), st.lists(st.tuples(st.integers(0, 100), st.integers(0, 9000)), max_size=12))
def test_usage_and_availability_follow_their_definition(plan: Plan, steps: list[tuple[int, int]]) -> None:
    world = plan.build(submit=False).world
    found = nodes(world)
    cells = [cell for node in found if node.height == 0 and not hasattr(node, "queues") for cell in node.cells.values()]
    before = [cell.usage for node in found for cell in node.cells.values()]
    for number, amount in steps:
        cells[number % len(cells)].add(amount)
        for node in found:
            for key, cell in node.cells.items():
                assert cell.available() == available(cell)
                if hasattr(node, "queues"):
                    below = [c.cells[key] for c in found if c.parent is node and key in c.cells]
                    assert cell.usage == sum(max(0, c.usage - c.local) for c in below)
    for number, amount in reversed(steps):
        cells[number % len(cells)].remove(amount)
    assert [cell.usage for node in found for cell in node.cells.values()] == before


def test_the_children_of_a_cohort_are_looked_up_once_until_one_gets_another_cell() -> None:
    """Each search for preemption targets looks at every queue of the cohort."""
    cohort, queue, other = CohortNode("cohort"), QuotaNode("queue"), QuotaNode("other")
    cpu, memory = FlavorResource("default", "cpu"), FlavorResource("default", "memory")
    for node in (queue, other):
        node.parent = cohort
        cohort.queues.append(node)
    queue.cell(cpu)
    keys = frozenset((cpu, memory))
    found = cohort.children_with(keys)
    assert found == ([], [(queue, [queue.cells[cpu]])])
    assert cohort.children_with(keys) is found
    other.cell(memory)
    assert cohort.children_with(keys) == ([], [(queue, [queue.cells[cpu]]), (other, [other.cells[memory]])])
