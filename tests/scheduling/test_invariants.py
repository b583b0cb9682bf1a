"""What holds in every world, whatever the policies (property tests)."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from scheduling.model.decisions import Admit, CycleResult
from scheduling.model.workload import Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.state.status import Usage
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, settled
from tests.scheduling.worlds import Plan, plans


def usage_rows(world: World) -> dict[str, tuple[Usage, ...]]:
    """Usage of every ClusterQueue and cohort."""
    rows = {f"queue {name}": world.cluster_queue_status(name).usage for name in world.cluster_queue_names()}
    rows |= {f"cohort {name}": world.cohort_status(name).usage for name in world.cohort_names()}
    return rows


def sorted_rows(world: World) -> dict[str, list[Usage]]:
    """The same, whatever the order in which cells came to be."""
    return {name: sorted(rows, key=lambda row: (row.flavor, row.resource)) for name, rows in usage_rows(world).items()}


def decisions(results: list[CycleResult]) -> list[object]:
    """All that was decided, in order of cycles."""
    return [
        (
            sorted((a.workload, str(a.pod_sets)) for a in result.admissions),
            sorted((p.workload, p.preemptor, p.reason) for p in result.preemptions),
            sorted((o.workload, o.reason, o.message) for o in result.outcomes),
        )
        for result in results
    ]


def check_own_quota(world: World, plan: Plan) -> None:
    """What is never reclaimed holds no more than its ClusterQueue's own quota (T80)."""
    held: Counter[tuple[str, str]] = Counter()
    for each in plan.workloads:
        found = world.workload(each.key)
        if each.never_reclaimed and found is not None and found.admission is not None:
            for assignment in found.admission.pod_set_assignments:
                for resource, flavor in assignment.flavors.items():
                    held[found.admission.cluster_queue, flavor] += assignment.resource_usage[resource]
    for (queue, flavor), amount in held.items():
        (row,) = (row for row in world.cluster_queue_status(queue).usage if row.flavor == flavor)
        assert amount <= row.nominal, (queue, row)


def check_limits(world: World, plan: Plan) -> None:
    """Usage is within what quota, borrowing and lending limits allow, at every node of the tree."""
    check_own_quota(world, plan)
    for name, rows in usage_rows(world).items():
        kind, node = name.split(" ")
        cohort = next((c for n, _, c, _ in plan.queues if n == node), "") if kind == "queue" else ""
        parent = next((p for n, p, _ in plan.cohorts if n == node), "") if kind == "cohort" else cohort
        for row in rows:
            assert row.used >= 0
            if not parent:
                assert row.used <= row.subtree_quota, (name, row)
            elif row.borrowing_limit is not None:
                assert row.used <= row.subtree_quota + row.borrowing_limit, (name, row)


@given(plans())
def test_usage_never_exceeds_what_quota_and_borrowing_allow(plan: Plan) -> None:
    """For the rest of a cycle, the quota of what it preempts counts as free, as in Kueue: so usage is compared when the
    preempted workloads have stopped."""
    builder = plan.build()
    for result in run_until_idle(builder.world, 1000.0):
        for preemption in result.preemptions:
            builder.world.release_workload(preemption.workload, 1000.0)
        check_limits(builder.world, plan)


@given(plans())
def test_the_same_world_gives_the_same_decisions(plan: Plan) -> None:
    assert decisions(settled(plan.build().world)) == decisions(settled(plan.build().world))


@given(plans())
def test_the_order_of_the_input_changes_nothing(plan: Plan) -> None:
    forward, backward = plan.build(), plan.build(reverse=True)
    assert decisions(settled(forward.world)) == decisions(settled(backward.world))
    assert sorted_rows(forward.world) == sorted_rows(backward.world)


@given(plans(), st.data())
def test_adding_and_removing_is_the_identity(plan: Plan, data: st.DataObject) -> None:
    builder = plan.build()
    settled(builder.world)
    before = sorted_rows(builder.world)
    holding = [w for w in plan.workloads if (found := builder.world.workload(w.key)) and found.holds_quota]
    for each in data.draw(st.permutations(holding)):
        held = builder.world.workload(each.key)
        assert held is not None
        builder.world.delete_workload(each.key)
        builder.world.set_workload(held, 1000.0)
    assert sorted_rows(builder.world) == before
    for each in holding:
        builder.world.delete_workload(each.key)
    assert all(row.used == 0 for rows in usage_rows(builder.world).values() for row in rows)


@given(plans())
def test_undo_takes_everything_back(plan: Plan) -> None:
    builder = plan.build()
    builder.world.has_active()
    before = snapshot(builder, plan)
    point = builder.world.savepoint()
    first = decisions(settled(builder.world))
    builder.world.undo(point)
    assert snapshot(builder, plan) == before
    assert decisions(settled(builder.world)) == first


@given(plans(), st.integers(0, 4))
def test_undo_from_the_middle(plan: Plan, cycles: int) -> None:
    builder, reference = plan.build(), plan.build()
    for world in (builder.world, reference.world):
        for _ in range(cycles):
            for preemption in world.run_cycle(1000.0).preemptions:
                world.release_workload(preemption.workload, 1000.0)
    point = builder.world.savepoint()
    for each in plan.workloads[::2]:
        builder.world.finish_workload(each.key, 1001.0)
    settled(builder.world, 1001.0)
    builder.world.undo(point)
    assert snapshot(builder, plan) == snapshot(reference, plan)
    assert decisions(settled(builder.world, 1002.0)) == decisions(settled(reference.world, 1002.0))


def snapshot(builder: Builder, plan: Plan) -> object:
    """All that can be seen of a world."""
    world = builder.world
    return (
        sorted_rows(world),
        [world.workload(each.key) for each in plan.workloads],
        [world.pending(name) for name in world.cluster_queue_names()],
    )


@given(plans())
def test_no_victim_is_unnecessary(plan: Plan) -> None:
    """Putting any single victim of a preemptor back, it would not fit any more."""
    builder = plan.build()
    for _ in range(6):
        result = builder.world.run_cycle(1000.0)
        by_preemptor: dict[str, list[str]] = {}
        for preemption in result.preemptions:
            by_preemptor.setdefault(preemption.preemptor, []).append(preemption.workload)
        if len(by_preemptor) == 1:
            ((preemptor, victims),) = by_preemptor.items()
            for spared in victims:
                check_needed(builder.world, preemptor, victims, spared)
        for preemption in result.preemptions:
            builder.world.release_workload(preemption.workload, 1000.0)


def check_needed(world: World, preemptor: str, victims: list[str], spared: str) -> None:
    """With `spared` still there and only the other victims gone, the preemptor is not admitted at once."""
    point = world.savepoint()
    for victim in victims:
        if victim != spared:
            world.finish_workload(victim, 1000.0)
    waiting = world.workload(preemptor)
    assert waiting is not None
    result = world.run_cycle(1000.0)
    fits_within_its_flavors = any(a.workload == preemptor and not was_reduced(a, waiting) for a in result.admissions)
    world.undo(point)
    assert not fits_within_its_flavors or waiting_has_other_flavors(world, preemptor)


def was_reduced(admission: Admit, waiting: Workload) -> bool:
    """Whether it was admitted with fewer pods than it asked for."""
    return [assignment.count for assignment in admission.pod_sets] != [ps.count for ps in waiting.pod_sets]


def waiting_has_other_flavors(world: World, preemptor: str) -> bool:
    """Whether its ClusterQueue has several flavors: then another one may have become free meanwhile."""
    queue = preemptor_queue(world, preemptor)
    return len(world.cluster_queue_status(queue).usage) > 1


def preemptor_queue(world: World, preemptor: str) -> str:
    """The ClusterQueue where it waits."""
    return next(
        name for name in world.cluster_queue_names() if any(e.workload == preemptor for e in world.pending(name))
    )
