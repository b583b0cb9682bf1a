"""Admission fair sharing: past usage of LocalQueues, and the order that follows from it (8, T65)."""

from __future__ import annotations

import math
from typing import Any

import pytest

from scheduling.model.configuration import AdmissionFairSharing
from scheduling.model.local_queue import LocalQueue
from scheduling.model.vocabulary import AdmissionMode
from scheduling.state.shares.admission_fair_sharing import UsageHistory
from tests.scheduling.world_helpers import Builder, admissions, cycle, preemption, preemptions, settled

SETTINGS = AdmissionFairSharing(usage_half_life_seconds=300.0, usage_sampling_interval_seconds=300.0)
USAGE_BASED = AdmissionMode.USAGE_BASED_ADMISSION_FAIR_SHARING


def history(**queues: float) -> UsageHistory:
    """A history with LocalQueues team/NAME that consumed so many cores."""
    made = UsageHistory(SETTINGS)
    for name, cores in queues.items():
        made.set_local_queue(LocalQueue("team", name, "q", consumed={"cpu": cores}, consumed_at=0.0))
    return made


def two_local_queues(quota: int = 10, settings: AdmissionFairSharing = SETTINGS, **fields: Any) -> Builder:
    """One ClusterQueue with the LocalQueues x and y."""
    builder = Builder(admission_fair_sharing=settings)
    builder.queue("q", {"default": quota}, admission_mode=USAGE_BASED, **fields)
    for name in ("x", "y"):
        builder.world.set_local_queue(LocalQueue("team", name, "q"))
    return builder


def test_consumption_decays_by_half_in_a_half_life() -> None:
    made = history(x=8.0)
    assert made.sample({}, 299.0) == ()
    assert made.sample({}, 300.0) == ("team/x",)
    assert made.consumed("team/x") == {"cpu": 4.0}
    made.sample({}, 900.0)
    assert made.consumed("team/x") == {"cpu": 1.0}


def test_usage_is_weighted_per_resource_and_divided_by_the_queues_weight() -> None:
    made = UsageHistory(AdmissionFairSharing(resource_weights={"cpu": 2.0}))
    made.set_local_queue(LocalQueue("team", "x", "q", fair_weight=4.0, consumed={"cpu": 6.0, "gpu": 2.0}))
    assert made.usage("team/x") == (2.0 * 6.0 + 2.0) / 4.0


def test_t65_a_queue_of_weight_zero_comes_last_even_without_usage() -> None:
    made = UsageHistory(SETTINGS)
    made.set_local_queue(LocalQueue("team", "x", "q", fair_weight=0.0))
    assert made.usage("team/x") == math.inf


def test_a_half_life_of_zero_forgets_at_every_sample() -> None:
    made = UsageHistory(AdmissionFairSharing(usage_half_life_seconds=0.0))
    made.set_local_queue(LocalQueue("team", "x", "q", consumed={"cpu": 5.0}, consumed_at=0.0))
    made.sample({}, 300.0)
    assert made.consumed("team/x") == {}


def test_t65_less_usage_goes_before_priority_and_age() -> None:
    builder = two_local_queues()
    builder.pending("x1", "x", 6, priority=9).pending("x2", "x", 1, priority=9).pending("y1", "y", 1)
    # x1 goes first (nobody has used anything); its entry penalty then puts y before the rest of x.
    assert [admissions(result) for result in settled(builder.world)] == [["x1"], ["y1"], ["x2"]]


def test_the_entry_penalty_is_undone_with_the_cycle() -> None:
    builder = two_local_queues()
    builder.pending("x1", "x", 6, priority=9).pending("x2", "x", 1, priority=9).pending("y1", "y", 1)
    point = builder.world.savepoint()
    assert [admissions(result) for result in settled(builder.world)] == [["x1"], ["y1"], ["x2"]]
    builder.world.undo(point)
    assert [admissions(result) for result in settled(builder.world)] == [["x1"], ["y1"], ["x2"]]


def test_samples_follow_what_runs() -> None:
    builder = two_local_queues().pending("x1", "x", 4)
    settled(builder.world, 0.0)
    assert set(builder.world.sample_usage(0.0)) == {"team/q", "team/x", "team/y"}, "the clocks start"
    assert builder.world.sample_usage(100.0) == {}
    consumed = builder.world.sample_usage(300.0)["team/x"]["cpu"]
    penalty = 4 * 0.5
    assert consumed == pytest.approx(penalty * 0.5 + 4 * 0.5)


def test_sticky_preemptors_come_after_usage() -> None:
    builder = two_local_queues(4, preemption=preemption(within="LowerPriority"))
    builder.world.set_local_queue(LocalQueue("team", "z", "q"))
    builder.running("low", "q", 4, priority=-1).pending("x1", "x", 4)
    assert preemptions(cycle(builder.world)) == {"low": "InClusterQueue"}
    builder.pending("y1", "y", 2).world.finish_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["x1"], "equal usage: the sticky one first"


def test_candidates_of_the_queue_with_more_usage_are_preempted_first() -> None:
    builder = two_local_queues(4, preemption=preemption(within="LowerPriority"))
    builder.pending("x1", "x", 3).pending("y1", "y", 1, at=1.0)
    settled(builder.world)
    builder.pending("w", "y", 1, priority=1, at=2.0)
    assert preemptions(cycle(builder.world)) == {"x1": "InClusterQueue"}


def test_off_without_the_configuration() -> None:
    builder = Builder().queue("q", {"default": 10}, admission_mode=USAGE_BASED)
    for name in ("x", "y"):
        builder.world.set_local_queue(LocalQueue("team", name, "q"))
    builder.pending("x1", "x", 6, priority=9).pending("x2", "x", 1, priority=9).pending("y1", "y", 1)
    assert [admissions(result) for result in settled(builder.world)] == [["x1"], ["x2"], ["y1"]]
    assert builder.world.sample_usage(0.0) == {}
