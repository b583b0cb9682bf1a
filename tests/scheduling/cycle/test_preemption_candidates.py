"""The order in which workloads of many borrowing queues are preempted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from scheduling.cycle.preemption_candidates import CandidateFinder
from scheduling.cycle.preemption_request import PreemptionRequest
from scheduling.state.state import State
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, cycle, preemption, preemptions, settled
from tests.scheduling.worlds import Plan, plans

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


def _sources(finder: CandidateFinder, state: State) -> list[object]:
    """What each queue may reclaim, cell by cell, for workloads of two priorities."""
    infos = {info.priority: info for info in state.workloads.values()}
    asked = [infos[priority] for priority in sorted(infos)[-2:]]
    return [
        finder.sources(PreemptionRequest(cq, info, {cell: 1}, frozenset((key,))))
        for cq in state.cluster_queues.values()
        for key, cell in cq.node.cells.items()
        for info in asked
    ]


def _check_kept(world: World, data: st.DataObject) -> None:
    """Change workloads that hold quota, and compare what a cycle keeps with a new search after some of the changes."""
    state = world._state  # how a finder finds is shown nowhere else
    kept, new = (CandidateFinder(state.cluster_queues, state.simulation, {}, None) for _ in range(2))
    holders = [info for cq in state.cluster_queues.values() for info in cq.workloads.values()]
    with kept.searches():
        assert _sources(kept, state) == _sources(new, state)
        for info in data.draw(st.lists(st.sampled_from(holders), max_size=12)) if holders else ():
            if info.key in state.simulation.removed:
                state.simulation.restore(info)
            elif data.draw(st.booleans()):
                state.simulation.remove(info)
            else:
                info.evicted = not info.evicted
                state.rank_changed(info)
            if data.draw(st.booleans()):  # several changes may come between two searches
                assert _sources(kept, state) == _sources(new, state)
        assert _sources(kept, state) == _sources(new, state)


@given(plans(fair=False), st.data())
def test_borrowers_kept_for_a_cycle_are_those_that_a_new_search_finds(plan: Plan, data: st.DataObject) -> None:
    builder = plan.build()
    settled(builder.world)
    _check_kept(builder.world, data)


@given(HELD, st.data())
def test_borrowers_of_one_cohort_are_kept_as_they_change(held: list[tuple[int, int]], data: st.DataObject) -> None:
    builder = full(held, len(held) - 1, 1).pending("back", "owner-0", 1, priority=2)
    assert builder.world.cluster_queue_status("owner-0").usage  # asking builds the tree
    _check_kept(builder.world, data)


@given(plans(fair=False), st.integers(2, 30))
def test_preemptors_decided_together_leave_the_usage_as_it_was(plan: Plan, count: int) -> None:
    """A cycle that preempts admits nothing for it yet: its trials with many victims away are all taken back."""
    builder = plan.build()
    settled(builder.world)
    for number in range(count):
        queue = plan.queues[number % len(plan.queues)][0]
        builder.pending(f"late-{number:02}", queue, 1, priority=9, at=10.0)
    before = usage(builder.world)
    result = cycle(builder.world, 20.0)
    admitted = sum(sum(pod_set.resource_usage.values()) for each in result.admissions for pod_set in each.pod_sets)
    assert sum(usage(builder.world).values()) - sum(before.values()) == admitted


def usage(world: World) -> dict[str, int]:
    """What the workloads of each queue use, over all flavors."""
    return {
        name: sum(row.used for row in world.cluster_queue_status(name).usage) for name in world.cluster_queue_names()
    }
