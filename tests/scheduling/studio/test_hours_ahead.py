"""The hours after a plan: figures by hour that follow from the run times, of equal futures without and with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.estimates.likeness import like_levels
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import EndedRun, Unknown
from scheduling.model.vocabulary import StopPolicy
from scheduling.reservations.reservation import BusyPolicy
from scheduling.studio.hours_ahead import MIN_RUNS, RUNS, HoursAhead, hours_ahead
from scheduling.studio.node_changes import LoseNode
from scheduling.studio.world_changes import Change, EndWorkload, SetObject
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, gpu_node, gpus
from tests.scheduling.studio.test_plan_effects import changes_of, reserved
from tests.scheduling.world_helpers import Builder, settled, workload
from tests.scheduling.worlds import Plan, plans

NOW = 1000.0
HALF_HOUR = 1800.0


def runs(*seconds: float, queue: str = "q", name: str = "job") -> RunHistory:
    """Ended runs of jobs of one core, or of one name, in a queue."""
    levels = like_levels("team", queue, queue, name, {"cpu": 1000})
    return RunHistory([EndedRun(levels, each) for each in seconds])


def halves(queue: str = "q", name: str = "job") -> RunHistory:
    """Runs that all lasted for half an hour."""
    return runs(*[HALF_HOUR] * 20, queue=queue, name=name)


def ahead(
    world: World, changes: Sequence[Change] = (), history: RunHistory | None = None, hours: int = 3
) -> HoursAhead:
    return hours_ahead(world, changes, NOW, history or halves(), np.random.default_rng(1), hours)


def one_core(waiting: int = 5) -> World:
    """A queue of one core, whose holder has run for 100 s; others wait since 0, 1, 2 ... s."""
    builder = Builder().queue("q", {"default": 1})
    builder.running("running", "q", 1)
    for number in range(waiting):
        builder.pending(f"waits-{number}", "q", 1, at=float(number))
    return builder.world


def with_cores(world: World, queue: str, cores: int) -> Change:
    spec = world.objects.cluster_queue(queue)
    assert spec is not None
    (group,) = spec.resource_groups
    (flavor,) = group.flavors
    quota = replace(flavor.resources["cpu"], nominal=1000 * cores)
    flavors = (replace(flavor, resources={"cpu": quota}),)
    return SetObject(replace(spec, resource_groups=(replace(group, flavors=flavors),)))


def test_the_figures_of_an_hour_follow_from_the_run_times() -> None:
    found = ahead(one_core())
    assert (found.hours, found.runs, found.ended_runs, found.unknown) == (3, RUNS, 20, None)
    (queue,) = found.queues
    assert (queue.name, queue.workloads, queue.with_run_times) == ("q", 6, 6)
    before = queue.before
    assert before is not None
    # The first ends when it has run for half an hour; the starts follow in steps of half an hour.
    age = NOW - world_since()
    first = HALF_HOUR - age
    starts = [first + HALF_HOUR * number for number in range(5)]
    assert before.started == tuple(float(sum(int(at // 3600) == hour for at in starts)) for hour in range(3))
    assert before.waiting == tuple(float(sum(at >= 3600 * (hour + 1) for at in starts)) for hour in range(3))
    waits = sorted(NOW + at - number for number, at in enumerate(starts))
    assert before.median_wait == pytest.approx(waits[2])
    assert before.p90_wait == pytest.approx(waits[4])
    assert before.median_waits[0] == pytest.approx(waits[0])
    assert queue.after == before
    assert found.total.before == before


def world_since() -> float:
    return one_core().objects.reserved_at("team/running")


def test_more_quota_starts_more_and_shortens_waits() -> None:
    world = one_core()
    found = ahead(world, [with_cores(world, "q", 3)])
    (queue,) = found.queues
    assert queue.before is not None
    assert queue.after is not None
    assert queue.after.ended[0] > queue.before.ended[0]
    assert queue.after.waiting < queue.before.waiting
    assert (queue.after.median_wait or 0.0) < (queue.before.median_wait or 0.0)
    assert ahead(world).queues[0].after == queue.before, "the World is as it was"


def test_a_wait_beyond_the_hours_has_no_length() -> None:
    found = ahead(one_core(), hours=1).total
    assert found.before is not None
    assert (found.before.median_wait, found.before.p90_wait) == (None, None)
    assert found.before.waiting[-1] > 0


def test_a_workload_that_the_plan_submits_counts_only_with_it() -> None:
    found = ahead(one_core(0), [SetObject(workload("new", "q", 1, at=NOW))])
    (queue,) = found.queues
    assert queue.before is not None
    assert queue.after is not None
    assert (sum(queue.before.started), sum(queue.after.started), queue.workloads) == (0.0, 1.0, 2)


def test_a_workload_that_the_plan_ends_frees_its_quota() -> None:
    found = ahead(one_core(1), [EndWorkload("team/running")]).total
    assert found.before is not None
    assert found.after is not None
    assert (found.before.median_wait, found.after.median_wait) == (NOW + HALF_HOUR - (NOW - world_since()), NOW)


def test_a_drained_queue_keeps_its_workloads_waiting() -> None:
    world = one_core(1)
    spec = world.objects.cluster_queue("q")
    assert spec is not None
    found = ahead(world, [SetObject(replace(spec, stop_policy=StopPolicy.HOLD_AND_DRAIN))]).total
    assert found.after is not None
    assert found.after.waiting == (2.0, 2.0, 2.0)
    assert found.after.started == (0.0, 0.0, 0.0)


def devices() -> World:
    builder = Builder().queue("q", {"default": {GPU: 100, MEMORY: 100_000}})
    builder.world.set_node(gpu_node("n1", 1))
    builder.world.set_node(gpu_node("n2", 1))
    for number in range(4):
        builder.pending(f"w{number}", "q", [gpus(1, 16384)], at=float(number))
    settled(builder.world, NOW)
    return builder.world


def test_device_hours_are_of_the_devices_that_are_held() -> None:
    found = ahead(devices(), [LoseNode("n2")], halves(name="w"), hours=2).total
    assert found.before is not None
    assert found.after is not None
    assert found.before.device_hours == (2.0, 0.0)
    assert found.after.device_hours == (1.0, 1.0)


def test_devices_that_are_held_beyond_the_hours_count_until_their_end() -> None:
    found = ahead(devices(), history=runs(*[100 * 3600.0] * 9, name="w"), hours=2).total
    assert found.before is not None
    assert found.before.device_hours == (2.0, 2.0)
    assert found.before.ended == (0.0, 0.0)


def test_a_window_that_starts_at_once_takes_its_nodes() -> None:
    found = ahead(devices(), [reserved(BusyPolicy.EVICT, NOW, "n2")], halves(name="w"), hours=2).total
    assert found.before is not None
    assert found.after is not None
    assert found.before.waiting == (0.0, 0.0)
    assert found.after.device_hours[0] == 1.0
    assert found.after.started[0] == 1.0


def test_requested_devices_count_where_the_cluster_places_pods() -> None:
    builder = Builder().queue("q", {"default": {GPU: 8}})
    builder.running("a", "q", {GPU: 3})
    found = ahead(builder.world, history=halves(name="a"), hours=1).total
    assert found.before is not None
    left = HALF_HOUR - (NOW - builder.world.objects.reserved_at("team/a"))
    assert found.before.device_hours[0] == pytest.approx(3 * left / 3600)


def test_without_ended_runs_the_hours_are_unknown() -> None:
    found = ahead(one_core(), history=runs(5.0))
    assert (found.unknown, found.hours, found.runs) == (Unknown.NO_RUN_ENDED, 0, 0)
    assert (found.total.before, found.total.after) == (None, None)


def test_a_queue_of_whose_workloads_no_run_times_are_known_is_unknown() -> None:
    builder = Builder().queue("known", {"default": 2}).queue("unknown", {"default": 1})
    builder.running("a", "known", 1).running("b", "known", 1).running("c", "unknown", 1)
    found = ahead(builder.world, history=halves("known"))
    queues = {queue.name: queue for queue in found.queues}
    assert queues["known"].before is not None
    assert queues["unknown"].before is queues["unknown"].after is None
    assert (queues["unknown"].workloads, queues["unknown"].with_run_times) == (1, 0)
    assert found.total.before is not None
    assert (found.total.workloads, found.total.with_run_times) == (3, 2)


def test_the_queue_with_the_largest_change_is_first_and_one_without_figures_last() -> None:
    builder = Builder()
    for name in ("less", "more", "none", "unknown"):
        builder.queue(name, {"default": 1})
        for number in range(9):
            builder.pending(f"{name}-{number}", name, 1)
    known = [EndedRun(like_levels("team", name, name, "job", {"cpu": 1000}), HALF_HOUR) for name in ("less", "more")]
    known += [EndedRun(like_levels("team", "none", "none", "job", {"cpu": 1000}), HALF_HOUR)]
    changes = [with_cores(builder.world, "less", 2), with_cores(builder.world, "more", 4)]
    found = ahead(builder.world, changes, RunHistory(known * 10))
    assert [queue.name for queue in found.queues] == ["more", "less", "none", "unknown"]
    assert found.queues[-1].before is None


def test_a_declared_length_is_known() -> None:
    builder = Builder().queue("q", {"default": 1})
    builder.running("a", "q", 1, maximum_execution_time_seconds=600).pending(
        "b", "q", 1, maximum_execution_time_seconds=600
    )
    found = ahead(builder.world, history=RunHistory(), hours=1).total
    assert found.before is not None
    assert found.before.ended == (2.0,)


def test_runs_that_are_cut_shorten_the_hours() -> None:
    assert ahead_with(one_core(), lambda _: False).unknown is Unknown.BEYOND_REACH
    calls = iter(range(1000))
    found = ahead_with(one_core(), lambda _: next(calls) < 6)
    assert found.runs >= MIN_RUNS
    assert found.hours < 3


def ahead_with(world: World, has_time: Callable[[float], bool]) -> HoursAhead:
    return hours_ahead(world, (), NOW, halves(), np.random.default_rng(1), 3, has_time)


def _settled(plan: Plan) -> World:
    builder = plan.build()
    settled(builder.world, NOW)
    return builder.world


@given(plans(), st.data(), st.lists(st.floats(60, 20_000), min_size=5, max_size=30), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_laws_of_the_hours(plan: Plan, data: st.DataObject, lengths: list[float], seed: int) -> None:
    """Equal futures without a change; the World stays; nothing is lost: what began to wait has started or waits."""
    changes = data.draw(changes_of(plan))
    world = _settled(plan)
    history = RunHistory([EndedRun(((),), each) for each in lengths])

    def look(changes: Sequence[Change]) -> HoursAhead:
        return hours_ahead(world, changes, NOW, history, np.random.default_rng(seed), 2)

    waiting = sum(len(world.pending(name)) for name in world.cluster_queue_names())
    holding = len(world.objects.reserving())
    found = look(changes)
    assert look(changes) == found
    quiet = look(())
    assert quiet.total.before == quiet.total.after
    for queue in quiet.queues:
        assert queue.before == queue.after
    assert quiet.total.workloads == waiting + holding
