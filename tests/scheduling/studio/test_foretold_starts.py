"""Estimates of starts by forward runs of cycles: their laws, and the rules that they obey."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.estimates.likeness import like_levels, name_stem
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import EndedRun, Unknown
from scheduling.studio.foretold_starts import DRAWS, ForetoldStart, foretell_starts
from scheduling.studio.forward_cycles import ForwardCycles, Steps
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, settled

NOW = 1000.0


def history(*seconds: float, name: str = "job", cpu: int = 1) -> RunHistory:
    levels = like_levels("team", "q", "q", name, {"cpu": cpu * 1000})
    return RunHistory([EndedRun(levels, each) for each in seconds])


def foretold(world: World, runs: RunHistory, seed: int = 1) -> dict[str, ForetoldStart]:
    found = foretell_starts(world, NOW, runs, {}, np.random.default_rng(seed))
    return {each.workload: each for each in found}


def full_queue(waiting: int = 3) -> World:
    """A queue of one core, which `running` holds since 900."""
    builder = Builder().queue("q", {"default": 1})
    builder.running("running", "q", 1)
    for number in range(waiting):
        builder.pending(f"waits-{number}", "q", 1, at=float(number))
    return builder.world


def test_a_forward_run_starts_workloads_as_running_ones_end() -> None:
    world = full_queue()
    lasts = {f"team/waits-{number}": 100.0 for number in range(3)}
    run = ForwardCycles(world, NOW, {"team/running": 50.0}, lasts)
    run.run(frozenset(lasts), lambda: True)
    assert run.starts == {"team/waits-0": 50.0, "team/waits-1": 150.0, "team/waits-2": 250.0}
    assert [each.workload for each in world.pending("q")] == list(lasts)


def test_ends_within_a_step_happen_at_once() -> None:
    builder = Builder().queue("q", {"default": 2}).running("a", "q", 1).running("b", "q", 1)
    builder.pending("first", "q", 1).pending("second", "q", 1, at=1.0)
    ends = {"team/a": 50.0, "team/b": 300.0}
    found = []
    for steps in (Steps(min_seconds=249.0), Steps(min_seconds=250.0), Steps(share=6.0)):
        run = ForwardCycles(builder.world, NOW, ends, {}, steps=steps)
        run.run(frozenset({"team/first", "team/second"}), lambda: True)
        found.append(run.starts["team/first"])
    assert found == [50.0, 300.0, 300.0]


def test_a_workload_that_is_preempted_meanwhile_does_not_end_at_its_old_time() -> None:
    world = Builder().queue("q", {"default": 2}).running("small", "q", 1).running("other", "q", 1).world
    run = ForwardCycles(world, NOW, {"team/small": 50.0, "team/other": 80.0}, {})
    run._until["team/small"] = 60.0
    assert run._end_next() == 80.0


def test_estimates_follow_the_queue_and_their_quantiles_ascend() -> None:
    found = foretold(full_queue(), history(*range(200, 400, 20)))
    medians = [found[f"team/waits-{number}"].estimate.p50 for number in range(3)]
    assert all(median is not None for median in medians)
    assert medians == sorted(medians, key=lambda median: median or 0.0)
    assert len(set(medians)) == 3
    for each in found.values():
        estimate = each.estimate
        assert estimate.p10 is not None
        assert estimate.p50 is not None
        assert estimate.p90 is not None
        assert 0 < estimate.p10 <= estimate.p50 < estimate.p90


@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 99),
    sizes=st.lists(st.integers(1, 4), min_size=1, max_size=6),
    runs=st.lists(st.floats(10, 5000), min_size=5, max_size=20),
)
def test_equal_seeds_give_equal_estimates_and_the_world_stays(seed: int, sizes: list[int], runs: list[float]) -> None:
    def build() -> World:
        builder = Builder().queue("q", {"default": 4}).running("a", "q", 2).running("b", "q", 2)
        for number, size in enumerate(sizes):
            builder.pending(f"w-{number}", "q", size, at=float(number))
        return builder.world

    world = build()
    before = [settled_names(world), world.pending("q")]
    first = foretold(world, history(*runs), seed)
    assert foretold(world, history(*runs), seed) == first
    assert foretold(build(), history(*runs), seed) == first
    assert [settled_names(world), world.pending("q")] == before
    for each in first.values():
        estimate = each.estimate
        known = [value for value in (estimate.p10, estimate.p50, estimate.p90) if value is not None]
        assert known == sorted(known)
        assert (estimate.unknown is None) == (len(known) == 3)


def settled_names(world: World) -> list[str]:
    """The workloads that hold quota."""
    return sorted(world.objects.reserving())


def test_a_workload_that_never_fits_is_unknown() -> None:
    builder = Builder().queue("q", {"default": 1}).running("running", "q", 1).pending("large", "q", 2)
    found = foretold(builder.world, history(*range(10, 100, 10)))["team/large"].estimate
    assert (found.p50, found.unknown) == (None, Unknown.NO_START_FORESEEN)


def test_without_ended_runs_nothing_is_foretold() -> None:
    found = foretold(full_queue(), history(5.0))
    assert {each.estimate.unknown for each in found.values()} == {Unknown.NO_RUN_ENDED}


def test_a_maximum_is_a_length_where_no_run_has_ended() -> None:
    builder = Builder().queue("q", {"default": 1})
    builder.running("running", "q", 1, maximum_execution_time_seconds=5000)
    builder.pending("waits", "q", 1, maximum_execution_time_seconds=60)
    estimate = foretold(builder.world, RunHistory())["team/waits"].estimate
    assert estimate.p50 == pytest.approx(5000 - NOW)


def test_a_start_in_a_century_is_beyond_reach() -> None:
    builder = Builder().queue("q", {"default": 1})
    builder.running("running", "q", 1, maximum_execution_time_seconds=2**31 - 1)
    builder.pending("waits", "q", 1, maximum_execution_time_seconds=60)
    estimate = foretold(builder.world, RunHistory())["team/waits"].estimate
    assert (estimate.p10, estimate.p90, estimate.unknown) == (None, None, Unknown.BEYOND_REACH)


def test_a_stopped_queue_has_no_estimates() -> None:
    builder = Builder().queue("q", {"default": 1}, stop_policy="Hold").pending("waits", "q", 1)
    assert foretold(builder.world, history(*range(10, 100, 10))) == {}


def test_runs_that_are_cut_leave_the_workloads_unknown_that_they_did_not_reach() -> None:
    world = full_queue(6)
    found = foretell_starts(
        world, NOW, history(*range(200, 400, 20)), {}, np.random.default_rng(1), has_time=lambda _: False
    )
    assert {each.estimate.unknown for each in found} == {Unknown.BEYOND_REACH}


def test_the_first_of_each_queue_are_estimated_and_the_others_are_beyond_reach() -> None:
    builder = Builder().queue("busy", {"default": 1}).queue("quiet", {"default": 1})
    for queue, count in (("busy", 6), ("quiet", 2)):
        builder.running(f"{queue}-runs", queue, 1)
        for number in range(count):
            builder.pending(f"{queue}-{number}", queue, 1, at=float(number))
    runs = RunHistory([EndedRun(((),), float(seconds)) for seconds in range(200, 400, 20)])
    found = foretell_starts(builder.world, NOW, runs, {}, np.random.default_rng(1), max_estimated=5)
    tried = {each.workload for each in found if each.is_tried}
    assert tried == {f"team/{name}" for name in ("busy-0", "busy-1", "busy-2", "quiet-0", "quiet-1")}
    assert len(found) == 8
    for each in found:
        assert (each.estimate.p50 is not None) == each.is_tried
        assert each.estimate.unknown == (None if each.is_tried else Unknown.BEYOND_REACH)


def test_quota_of_the_cohort_is_part_of_the_run() -> None:
    """`b` waits in a queue without quota of its own, until the other queue's workload ends."""
    builder = Builder().queue("q", {"default": 1}, cohort="all").queue("poor", {"default": 0}, cohort="all")
    builder.running("running", "q", 1).pending("b", "poor", 1)
    found = foretold(builder.world, history(*range(1000, 3000, 100)))["team/b"]
    assert (found.tree, found.cluster_queue) == ("cohort all", "poor")
    assert found.estimate.p50 is not None
    assert DRAWS > 1


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("train", "train"), ("train-12", "train"), ("job-train-0a1b2", "job-train"), ("sweep-lr3-b42", "sweep"),
        ("12", "12"), ("job-resnet50-x-abcde", "job-resnet50-x"), ("abcde", "abcde"),
    ],
)  # fmt: skip
def test_the_stem_of_a_name_leaves_out_its_numbers(name: str, stem: str) -> None:
    assert name_stem(name) == stem


def test_settled_workloads_do_not_wait() -> None:
    builder = Builder().queue("q", {"default": 2}).pending("w", "q", 1)
    settled(builder.world)
    assert foretold(builder.world, history(*range(10, 100, 10))) == {}
