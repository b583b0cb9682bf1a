"""An answer to "what if" happens when nothing else changes, and leaves the World as it was."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.model.cluster_queue import ClusterQueue
from scheduling.model.configuration import FairSharing
from scheduling.model.vocabulary import PreemptionStrategy, QueueingStrategy, SharingPolicy, StopPolicy
from scheduling.model.workload import Workload
from scheduling.reservations.reservation import Admittance, BusyPolicy, Reservation
from scheduling.run_until_idle import run_until_idle
from scheduling.studio.node_changes import AddNodes, CordonNode, DrainNode, LoseNode, NodeChange, ReturnNode
from scheduling.studio.plan_effects import ENDED, FIRST_CYCLES, FirstAnswer, WhatIf, what_if
from scheduling.studio.plan_effects_json import first_json, what_if_json
from scheduling.studio.world_changes import (
    Change,
    DeleteObject,
    EndWorkload,
    Namespace,
    RequeueWorkload,
    SetConfiguration,
    SetObject,
    SetPriority,
    apply_changes,
)
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node, gpu_racks, gpus, rack_node
from tests.scheduling.world_helpers import NAMESPACE, Builder, preemption, settled, workload
from tests.scheduling.worlds import Plan, plans, queue_fields

NOW = 1000.0
Build = Callable[[], World]


def happens(build: Build, changes: Sequence[Change], found: WhatIf) -> None:
    """Apply the changes to another World and let it decide: it must come to what the answer says."""
    real = build()
    held = real.objects.reserving()
    lost = set(held)
    apply_changes(real, changes, NOW)
    for key in real.evict_for_windows(NOW):
        real.release_workload(key, NOW)
    lost -= set(real.objects.reserving())
    for key in real.drained_workloads():
        real.finish_workload(key, NOW)
        lost.add(key)
    for result in run_until_idle(real, NOW):
        gone = [*(each.workload for each in result.preemptions), *(each.workload for each in result.evictions)]
        lost |= set(gone) & set(held)
        for key in gone:
            real.release_workload(key, NOW)
    assert found.effects.complete
    assert {eviction.workload for eviction in found.evictions} == lost
    for name in real.cluster_queue_names():
        status, figures = real.cluster_queue_status(name), found.after.queues[name]
        assert (status.usage, status.reserving) == (figures.usage, figures.reserving)
        assert status.pending + status.inadmissible == figures.pending
        for position in real.pending(name):
            assert position.workload in found.after.waiting
            if status.active:
                assert str(position.reason) == found.after.waiting[position.workload].reason
    holding = real.objects.reserving()
    for key, queue in found.effects.starts.items():
        assert holding[key] == queue
    assert real.used_device_count() == found.after.devices.used


def _settled(plan: Plan) -> World:
    builder = plan.build()
    settled(builder.world, NOW)
    return builder.world


@st.composite
def changes_of(draw: st.DrawFn, plan: Plan) -> list[Change]:
    """Some changes of the objects of a plan."""
    found: list[Change] = []
    specs = plan.build(submit=False).world.objects
    for name, *_ in plan.queues:
        spec = specs.cluster_queue(name)
        assert spec is not None
        if draw(st.booleans()):
            found.append(
                draw(st.sampled_from((_with_quota(spec, draw(st.integers(0, 12))), _drained(spec), _gone(spec))))
            )
    found += draw(policies_of(plan))
    for each in plan.workloads:
        act = draw(st.sampled_from((EndWorkload(each.key), RequeueWorkload(each.key), SetPriority(each.key, 9), None)))
        if act is not None and draw(st.booleans()):
            found.append(act)
    queue = draw(st.sampled_from(plan.queues))[0]
    found.append(SetObject(workload("new", queue, draw(st.integers(1, 6)), priority=draw(st.integers(0, 5)), at=9.0)))
    return found


@st.composite
def policies_of(draw: st.DrawFn, plan: Plan) -> list[Change]:
    """Other policies of some ClusterQueues and cohorts, of the namespace, and of the whole cluster."""
    world = plan.build(submit=False).world
    found: list[Change] = []
    for name, *_ in plan.queues:
        spec = world.objects.cluster_queue(name)
        assert spec is not None
        if draw(st.booleans()):
            found.append(SetObject(replace(spec, **_policies(draw(queue_fields())))))
    for name, cohort in world.objects.cohorts.items():
        if name and draw(st.booleans()):
            policy = draw(st.sampled_from((*SharingPolicy, None)))
            weight = draw(st.sampled_from((0.0, 0.5, 1.0, 2.0)))
            found.append(SetObject(replace(cohort, sharing_policy=policy, fair_weight=weight)))
    if draw(st.booleans()):
        strategies = tuple(draw(st.sets(st.sampled_from(PreemptionStrategy), min_size=1)))
        fair = draw(st.sampled_from((None, FairSharing(strategies))))
        found.append(SetConfiguration(replace(world.configuration, fair_sharing=fair)))
    if draw(st.booleans()):
        found.append(SetObject(Namespace(NAMESPACE, {"team": "red"})))
    return found


def _policies(fields: dict[str, Any]) -> dict[str, Any]:
    strict = fields.pop("strict")
    strategy = QueueingStrategy.STRICT_FIFO if strict else QueueingStrategy.BEST_EFFORT_FIFO
    return {**fields, "queueing_strategy": strategy}


def _with_quota(spec: ClusterQueue, cores: int) -> Change:
    groups = tuple(
        replace(
            group,
            flavors=tuple(
                replace(
                    flavor,
                    resources={
                        name: replace(quota, nominal=1000 * cores, lending_limit=None)
                        for name, quota in flavor.resources.items()
                    },
                )
                for flavor in group.flavors
            ),
        )
        for group in spec.resource_groups
    )
    return SetObject(replace(spec, resource_groups=groups))


def _drained(spec: ClusterQueue) -> Change:
    return SetObject(replace(spec, stop_policy=StopPolicy.HOLD_AND_DRAIN))


def _gone(spec: ClusterQueue) -> Change:
    return DeleteObject(ClusterQueue, spec.name)


@given(plans(), st.data())
@settings(max_examples=60)
def test_an_answer_about_queues_and_workloads_happens(plan: Plan, data: st.DataObject) -> None:
    changes = data.draw(changes_of(plan))
    world = _settled(plan)
    found = what_if(world, changes, NOW)
    happens(lambda: _settled(plan), changes, found)
    assert what_if(world, changes, NOW) == found, "the World is as it was"
    quiet = what_if(world, (), NOW)
    assert (quiet.effects.starts, quiet.evictions, quiet.waits, quiet.before) == ({}, (), {}, quiet.after)


def device_world(asked: Sequence[tuple[int, int, int]]) -> World:
    builder = Builder().queue("q", {"default": {GPU: 100, MEMORY: 100_000}}, preemption=preemption("LowerPriority"))
    builder.world.set_node(gpu_node("n1", 2))
    builder.world.set_node(gpu_node("n2", 1))
    builder.world.set_node(replace(gpu_node("n3", 1), unschedulable=True))
    for number, (count, memory, priority) in enumerate(asked):
        builder.pending(f"w{number}", "q", [gpus(count, 4096 * memory)], priority=priority, at=float(number))
    settled(builder.world, NOW)
    return builder.world


def reserved(if_busy: BusyPolicy, start: float, *names: str, **allowed: Any) -> Change:
    """A reservation of nodes for an hour."""
    return SetObject(
        Reservation("window", start, start + 3600, frozenset(names), if_busy=if_busy, allowed=Admittance(**allowed))
    )


_RESERVATIONS = (
    reserved(BusyPolicy.EVICT, NOW, "n1"),
    reserved(BusyPolicy.EVICT, NOW - 60, "n1", "n2", namespaces=frozenset({"other"})),
    reserved(BusyPolicy.EVICT, NOW, "n1", namespaces=frozenset({NAMESPACE})),
    reserved(BusyPolicy.WAIT, NOW, "n1", "n2"),
    reserved(BusyPolicy.EVICT, NOW + 60, "n1", "n2"),
)
_NODE_CHANGES: st.SearchStrategy[NodeChange] = st.sampled_from(
    (AddNodes("n1", 2), CordonNode("n1"), CordonNode("n1", "n1-gpu0"), DrainNode("n2"), DrainNode("n1", "n1-gpu0"),
     LoseNode("n2"), LoseNode("n1", "n1-gpu1"), ReturnNode("n3"))
)  # fmt: skip


def _is_possible(changes: list[NodeChange]) -> bool:
    """Return whether no change names a node that an earlier one lost: plans with such a change are refused."""
    lost: set[str] = set()
    for change in changes:
        if isinstance(change, DrainNode) and change.name in lost:
            return False
        if isinstance(change, LoseNode) and not change.device:
            lost.add(change.name)
    return True


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8),
    st.lists(_NODE_CHANGES, min_size=1, max_size=3, unique=True).filter(_is_possible),
)
@settings(max_examples=60)
def test_an_answer_about_nodes_and_devices_happens(
    asked: list[tuple[int, int, int]], changes: list[NodeChange]
) -> None:
    found = what_if(device_world(asked), changes, NOW)
    happens(lambda: device_world(asked), changes, found)


@given(
    st.lists(st.tuples(st.integers(1, 2), st.integers(1, 4), st.integers(0, 2)), min_size=1, max_size=8),
    st.sampled_from(_RESERVATIONS),
)
@settings(max_examples=40)
def test_an_answer_about_a_reservation_happens(asked: list[tuple[int, int, int]], change: Change) -> None:
    found = what_if(device_world(asked), [change], NOW)
    happens(lambda: device_world(asked), [change], found)


def test_a_reservation_that_starts_now_evicts_the_workloads_that_are_not_allowed() -> None:
    world = device_world([(1, 4, 0), (1, 4, 0), (1, 4, 0)])
    on_n1 = world.objects.workloads_on("n1")
    found = what_if(world, [reserved(BusyPolicy.EVICT, NOW, "n1")], NOW)
    assert [(lost.workload, lost.reason) for lost in found.evictions] == [(key, "ReservationStarted") for key in on_n1]
    assert on_n1
    assert what_if(world, [reserved(BusyPolicy.WAIT, NOW, "n1")], NOW).evictions == ()


def test_a_lost_node_evicts_its_workloads_and_says_what_they_lose() -> None:
    world = device_world([(1, 4, 0), (1, 4, 0), (1, 4, 0), (1, 4, 0)])
    on_n2 = world.objects.workloads_on("n2")
    assert len(on_n2) == 1
    found = what_if(world, [LoseNode("n2")], NOW + 3600)
    (lost,) = found.evictions
    assert (lost.workload, lost.reason, lost.devices, lost.ran_seconds) == (on_n2[0], "NodeFailures", 1, 3600.0)
    assert (found.before.devices.count, found.after.devices.count) == (4, 3)
    before, wait = found.waits[on_n2[0]]
    assert (before, wait.cluster_queue) == ("", "q")


def test_a_drained_device_evicts_its_holder_which_starts_elsewhere() -> None:
    world = device_world([(1, 4, 0)])
    (device,) = [
        name for name in ("n1-gpu0", "n1-gpu1", "n2-gpu0") if world.objects.workloads_placed_on(name[:2], name)
    ]
    found = what_if(world, [DrainNode(device[:2], device)], NOW)
    (lost,) = found.evictions
    assert (lost.workload, lost.reason) == (f"{NAMESPACE}/w0", "Drained")
    assert lost.workload in found.effects.starts
    assert world.objects.workloads_placed_on(device[:2], device) == [lost.workload], "the World is as it was"


def test_a_higher_priority_preempts_in_the_answer() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption("LowerPriority"))
    builder.running("low", "q", 4).pending("small", "q", 3)
    settled(builder.world, NOW)
    found = what_if(builder.world, [SetPriority(f"{NAMESPACE}/small", 9)], NOW)
    assert [(lost.workload, lost.preemptor) for lost in found.evictions] == [(f"{NAMESPACE}/low", f"{NAMESPACE}/small")]


def test_a_lost_node_of_a_topology_is_replaced_where_another_has_room() -> None:
    builder = gpu_racks(rack_node("n1", "r1"), rack_node("n2", "r1"))
    builder.pending("job", "q", [gpus(1, 8192)])
    settled(builder.world, NOW)
    (node,) = [name for name in ("n1", "n2") if builder.world.objects.workloads_on(name)]
    found = what_if(builder.world, [LoseNode(node)], NOW)
    assert found.evictions == ()
    assert found.after.queues["q"].reserving == 1


def test_an_added_node_is_a_healthy_empty_copy() -> None:
    world = device_world([(2, 4, 0), (2, 4, 1)])
    found = what_if(world, [AddNodes("n1", 1)], NOW)
    assert list(found.effects.starts) == [f"{NAMESPACE}/w0"]
    assert (found.before.devices.used, found.after.devices.used, found.after.devices.count) == (2, 4, 6)


def test_nodes_that_are_added_twice_are_all_added() -> None:
    world = device_world([(2, 4, 0), (2, 4, 1)])
    once, twice = (
        what_if(world, changes, NOW) for changes in ([AddNodes("n1", 3)], [AddNodes("n1", 1), AddNodes("n1", 2)])
    )
    assert once.after.devices.count == twice.after.devices.count == once.before.devices.count + 6


@pytest.mark.parametrize(
    "change",
    [
        LoseNode("none"),
        DrainNode("none"),
        DrainNode("n1", "none"),
        CordonNode("n1", "none"),
        AddNodes("none", 1),
        ReturnNode("x"),
        RequeueWorkload("team/none"),
        SetPriority("team/none", 1),
    ],
)
def test_an_unknown_node_device_or_workload_is_refused_and_nothing_is_changed(change: Change) -> None:
    world = device_world([(1, 4, 0)])
    before = what_if(world, (), NOW)
    with pytest.raises(KeyError):
        what_if(world, [change], NOW)
    assert what_if(world, (), NOW) == before


def many_heads() -> World:
    """Cycles take one head each: ten workloads need ten cycles."""
    builder = Builder().queue("q", {"default": 0})
    for number in range(10):
        builder.pending(f"w{number}", "q", 1 + number, at=float(number))
    settled(builder.world, NOW)
    return builder.world


def test_the_first_answer_comes_after_few_cycles_and_the_whole_one_follows() -> None:
    told: list[FirstAnswer] = []
    spec = many_heads().objects.cluster_queue("q")
    assert spec is not None
    found = what_if(many_heads(), [_with_quota(spec, 100)], NOW, tell=told.append)
    (first,) = told
    assert (len(first.effects.starts), first.effects.complete) == (FIRST_CYCLES, False)
    assert (len(found.effects.starts), found.effects.complete) == (10, True)
    assert found.cycles >= 10
    assert [(change.nominal_before, change.load.nominal) for change in first.effects.quotas] == [(0, 100_000)]


def test_an_answer_that_was_cut_short_says_so() -> None:
    spec = many_heads().objects.cluster_queue("q")
    assert spec is not None
    found = what_if(many_heads(), [_with_quota(spec, 100)], NOW, go_on=lambda: False)
    assert not found.effects.complete


def test_a_workload_that_the_changes_end_is_told_apart_from_one_that_is_preempted() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption("LowerPriority"))
    builder.running("low", "q", 3).running("done", "q", 1)
    changes: list[Change] = [EndWorkload(f"{NAMESPACE}/done"), SetObject(workload("high", "q", 4, priority=9, at=5.0))]
    found = what_if(builder.world, changes, NOW)
    reasons = {lost.workload: (lost.reason, lost.preemptor) for lost in found.evictions}
    assert reasons == {
        f"{NAMESPACE}/done": (ENDED, ""),
        f"{NAMESPACE}/low": ("InClusterQueue", f"{NAMESPACE}/high"),
    }
    answer = what_if_json(found, first_json(FirstAnswer(found.effects, found.evictions)))
    assert [each["name"] for each in answer["whole"]["queues"]] == ["q"]
    assert [each["workload"] for each in answer["whole"]["waiting"]] == [f"{NAMESPACE}/low"]
    assert {each["workload"]: each["starts_again"] for each in answer["whole"]["evictions"]} == dict.fromkeys(
        reasons, False
    )


def test_a_workload_that_waits_for_another_reason_is_told() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("large", "q", 6)
    settled(builder.world, NOW)
    spec = builder.world.objects.cluster_queue("q")
    assert spec is not None
    found = what_if(builder.world, [SetObject(replace(spec, stop_policy=StopPolicy.HOLD))], NOW)
    assert isinstance(builder.world.workload(f"{NAMESPACE}/large"), Workload)
    ((key, (before, wait)),) = found.waits.items()
    assert key == f"{NAMESPACE}/large"
    assert before != wait.reason
    assert found.effects.inactive == {"q": wait.message}
