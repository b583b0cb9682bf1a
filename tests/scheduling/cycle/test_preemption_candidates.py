"""The order in which workloads of many borrowing queues are preempted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.scheduling.world_helpers import Builder, cycle, preemption, preemptions

RECLAIM = preemption(within="LowerPriority", reclaim="Any")
HELD = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=2, max_size=24)
"""Workloads of one cpu each: the number of their queue, and their priority."""


def full(held: list[tuple[int, int]], *owners: int) -> Builder:
    """Queues without quota that borrow all of what the owners have."""
    builder = Builder()
    for number, nominal in enumerate(owners):
        builder.queue(f"owner-{number}", {"default": nominal}, "all", preemption=RECLAIM)
    for number in range(6):
        builder.queue(f"borrower-{number}", {"default": 0}, "all")
    for index, (number, priority) in enumerate(held):
        builder.running(f"w{index:02}", f"borrower-{number}", 1, priority=priority)
    return builder


def ranked(held: list[tuple[int, int]]) -> list[str]:
    return [f"w{index:02}" for index, _ in sorted(enumerate(held), key=lambda item: (item[1][1], item[0]))]


@given(HELD, st.data())
def test_victims_are_the_first_of_all_queues_together(held: list[tuple[int, int]], data: st.DataObject) -> None:
    wanted = data.draw(st.integers(1, len(held)))
    builder = full(held, len(held)).pending("back", "owner-0", wanted)
    assert sorted(preemptions(cycle(builder.world))) == sorted(ranked(held)[:wanted])


@given(HELD, st.data())
def test_a_second_preemptor_continues_where_the_first_stopped(held: list[tuple[int, int]], data: st.DataObject) -> None:
    """Both find the same victims at first; the second then searches without those of the first."""
    first = data.draw(st.integers(1, len(held) - 1))
    second = data.draw(st.integers(1, len(held) - first))
    builder = full(held, first, len(held) - first)
    builder.pending("one", "owner-0", first).pending("two", "owner-1", second)
    assert sorted(preemptions(cycle(builder.world))) == sorted(ranked(held)[: first + second])
