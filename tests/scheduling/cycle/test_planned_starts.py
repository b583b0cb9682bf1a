"""Backfill: planned starts, and the workloads that may pass them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.advice.waiting_rules import Rule, WaitState
from scheduling.cycle.planned_starts import PlannedAmount, PlannedStart
from scheduling.model.admission_check import AdmissionCheck, AdmissionCheckRule
from scheduling.model.device import Device
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.vocabulary import BackfillPolicy, ConditionStatus, ConditionType, StopPolicy
from scheduling.model.workload import Condition
from scheduling.world import World
from tests.scheduling.world_helpers import (
    NAMESPACE,
    Builder,
    admissions,
    admitted,
    cycle,
    messages,
    names,
    pod_set,
    preemption,
    preemptions,
    reason_of,
    settled,
    workload,
)

EASY: Final[dict[str, Any]] = {"backfill": BackfillPolicy.EASY}
MINUTE: Final = 60
GPU: Final = "nvidia.com/gpu"


def started(world: World, now: float = 0.0) -> list[str]:
    return names(admission.workload for result in settled(world, now) for admission in result.admissions)


def plan_of(world: World, name: str) -> float | None:
    """When the workload is planned to start."""
    found = world.explain(f"{NAMESPACE}/{name}").planned_start
    return None if found is None else found.starts_at


def limited(minutes: int | None) -> dict[str, Any]:
    return {} if minutes is None else {"maximum_execution_time_seconds": minutes * MINUTE}


def four_nodes(**policy: Any) -> Builder:
    """Slurm's example: three of four nodes are busy for an hour, and a job of four nodes is the first that waits."""
    made = Builder().queue("q", {"default": 4}, **policy).running("busy", "q", 3, **limited(60))
    return made.pending("j1", "q", 4, at=1.0, **limited(30))


def test_the_worked_example_of_backfill() -> None:
    world = four_nodes(**EASY).world
    for name, minutes, at in (("j3", 90, 2.0), ("j2", 50, 3.0)):
        world.set_workload(workload(name, "q", 1, at=at, **limited(minutes)), 0.0)
    assert started(world) == ["j2"], "it ends before the planned start, and so may pass j1 and j3"
    assert plan_of(world, "j1") == 60 * MINUTE
    assert reason_of(world, "j3") == "WaitingForPlannedStart"
    for name, ends in (("j2", 50), ("busy", 60)):
        world.finish_workload(f"{NAMESPACE}/{name}", ends * MINUTE)
        assert started(world, ends * MINUTE) == (["j1"] if name == "busy" else [])
    world.finish_workload(f"{NAMESPACE}/j1", 90 * MINUTE)
    assert started(world, 90 * MINUTE) == ["j3"]


def test_without_backfill_the_queue_decides_as_kueue_does() -> None:
    made = four_nodes().pending("j3", "q", 1, at=2.0, **limited(90))
    assert started(made.world) == ["j3"]
    found = made.world.explain(f"{NAMESPACE}/j1")
    assert (found.planned_start, found.would_delay) == (None, None)
    assert "planned" not in found.message


def test_a_workload_without_a_limit_is_held_back_without_a_name() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    cycle(made.world, 0.0)
    (said,) = messages(cycle(made.world, 0.0)).values()
    assert said == "would delay the planned start of a workload ahead of it"


@pytest.mark.parametrize("state", ["overdue", "waits for checks"])
def test_a_plan_that_moves_with_the_time_writes_no_new_message(state: str) -> None:
    made = Builder().queue("q", {"default": 4}, **EASY)
    busy = admitted(workload("busy", "q", 3, **limited(1 if state == "overdue" else 60)), "q")
    if state == "waits for checks":
        conditions = dict(busy.conditions)
        del conditions[ConditionType.ADMITTED]
        busy = replace(busy, conditions=conditions)
    made.world.set_workload(busy, 100.0)
    made.pending("big", "q", 4, at=1.0).pending("late", "q", 1, at=2.0)
    written = []
    for now in (100.0, 101.0, 102.0):
        made.running("short", "q", 0, **limited(1))
        made.world.finish_workload(f"{NAMESPACE}/short", now)
        results = settled(made.world, now)
        assert sum(result.heads for result in results) == 2, "both are decided again"
        written += [told["late"] for result in results if "late" in (told := messages(result))]
    assert reason_of(made.world, "late") == "WaitingForPlannedStart"
    assert len(written) == 1


def test_the_plan_and_what_would_delay_it_are_explained() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    settled(made.world, 0.0)
    plan = PlannedStart(f"{NAMESPACE}/j1", "q", 60 * MINUTE, (PlannedAmount("default", "cpu", 4000),))
    assert made.world.explain(f"{NAMESPACE}/j1").planned_start == plan
    found = made.world.explain(f"{NAMESPACE}/endless")
    assert (found.state, found.rule, found.would_delay) == (WaitState.WAITS, Rule.PLANNED_START, plan)
    assert found.planned_start is None
    assert "declares a time limit" in found.remedy


def test_a_workload_that_leaves_enough_room_needs_no_limit() -> None:
    made = Builder().queue("q", {"default": 6}, **EASY).running("busy", "q", 4, **limited(60))
    made.pending("big", "q", 5, at=1.0).pending("endless", "q", 1, at=2.0).pending("second", "q", 1, at=3.0)
    assert started(made.world) == ["endless"], "one of six is left beside the five of the plan, but not two"
    assert plan_of(made.world, "big") == 60 * MINUTE


def test_all_that_end_at_the_planned_start_have_ended_by_then() -> None:
    made = Builder().queue("q", {"default": 6}, **EASY)
    made.running("busy", "q", 2, **limited(60)).running("other", "q", 3, **limited(60))
    made.pending("big", "q", 3, at=1.0).pending("endless", "q", 1, at=2.0)
    assert started(made.world) == ["endless"]


def test_a_limit_that_ends_at_the_planned_start_is_soon_enough() -> None:
    made = four_nodes(**EASY).pending("even", "q", 1, at=2.0, **limited(60))
    assert started(made.world) == ["even"]


def test_a_head_without_a_computable_start_blocks_nothing_and_is_told_so() -> None:
    made = Builder().queue("q", {"default": 4}, **EASY).running("endless", "q", 3)
    made.pending("big", "q", 4, at=1.0).pending("small", "q", 1, at=2.0)
    assert started(made.world) == ["small"]
    found = made.world.explain(f"{NAMESPACE}/big")
    assert found.planned_start is None
    assert "Its start cannot be planned" in found.message


def test_the_first_with_a_computable_start_is_protected_and_the_next_one_is_not() -> None:
    made = Builder().queue("q", {"default": 4}, **EASY)
    made.running("endless", "q", 1).running("busy", "q", 2, **limited(60))
    made.pending("never", "q", 4, at=1.0).pending("big", "q", 3, at=2.0).pending("next", "q", 2, at=3.0)
    made.pending("small", "q", 1, at=4.0)
    assert started(made.world) == []
    assert (plan_of(made.world, "never"), plan_of(made.world, "big")) == (None, 60 * MINUTE)
    found = made.world.explain(f"{NAMESPACE}/next")
    assert found.planned_start is None
    assert "only the first workload that waits" in found.message
    assert reason_of(made.world, "small") == "WaitingForPlannedStart"


def test_a_workload_before_the_planned_one_is_never_held_back() -> None:
    made = four_nodes(**EASY).pending("urgent", "q", 1, at=9.0, priority=5)
    assert started(made.world) == ["urgent"]


def test_a_plan_that_leaves_the_queue_holds_nothing_back() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    assert started(made.world) == []
    j1 = made.world.workload(f"{NAMESPACE}/j1")
    assert j1 is not None
    made.world.set_workload(replace(j1, active=False), 1.0)
    assert started(made.world, 1.0) == ["endless"]


def test_equal_workloads_with_other_limits_are_decided_on_their_own() -> None:
    made = four_nodes(**EASY)
    for number in range(30):
        made.pending(f"endless{number}", "q", 1, at=2.0 + number)
    made.pending("short", "q", 1, at=99.0, **limited(10))
    results = settled(made.world, 0.0)
    assert [admissions(result) for result in results if result.admissions] == [["short"]]
    heads_without_backfill_for_each = 30
    assert len(results) < heads_without_backfill_for_each, "one refusal is for all equal workloads"


def test_backfill_may_be_selected_and_dropped_while_workloads_wait() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    assert started(made.world) == []
    made.queue("q", {"default": 4})
    assert started(made.world) == ["endless"]
    made.world.delete_workload(f"{NAMESPACE}/endless")
    made.queue("q", {"default": 4}, **EASY).pending("again", "q", 1, at=2.0)
    assert started(made.world) == []


def held_back() -> Builder:
    """`late` is held back for `big`, which came by another LocalQueue."""
    made = Builder().queue("q", {"default": 4}, **EASY)
    made.world.set_local_queue(LocalQueue(NAMESPACE, "other", "q"))
    made.running("busy", "q", 3, **limited(60)).pending("big", "other", 4, at=1.0)
    made.pending("late", "q", 1, at=2.0, **limited(90))
    assert started(made.world) == []
    return made


def test_a_held_local_queue_takes_its_planned_workload_out() -> None:
    made = held_back()
    made.world.set_local_queue(LocalQueue(NAMESPACE, "other", "q", stop_policy=StopPolicy.HOLD))
    assert started(made.world, 1.0) == ["late"]


def test_a_deleted_local_queue_takes_its_planned_workload_out() -> None:
    made = held_back()
    made.world.delete_local_queue(f"{NAMESPACE}/other")
    assert started(made.world, 1.0) == ["late"]


def test_a_local_queue_that_moved_takes_its_planned_workload_along() -> None:
    made = held_back().queue("elsewhere", {"default": 1})
    made.world.set_local_queue(LocalQueue(NAMESPACE, "other", "elsewhere"))
    assert started(made.world, 1.0) == ["late"]


@pytest.mark.parametrize("minutes", [600, None])
def test_a_longer_limit_of_a_running_workload_moves_the_plan(minutes: int | None) -> None:
    made = held_back()
    made.world.set_workload(admitted(workload("busy", "q", 3, **limited(minutes)), "q"), 1.0)
    assert started(made.world, 1.0) == ["late"]


@pytest.mark.parametrize("minutes", [600, None])
def test_a_workload_whose_pods_are_stopping_ends_now_for_the_plan(minutes: int | None) -> None:
    made = Builder().queue("q", {"default": 4}, **EASY)
    stopping = admitted(workload("stopping", "q", 3, **limited(minutes)), "q")
    evicted = Condition(ConditionType.EVICTED, ConditionStatus.TRUE, "Preempted", "", 0.0)
    made.world.set_workload(replace(stopping, conditions={**stopping.conditions, evicted.type: evicted}), 5.0)
    made.pending("big", "q", 4, at=1.0).pending("late", "q", 1, at=2.0, **limited(590))
    assert started(made.world, 5.0) == []
    assert plan_of(made.world, "big") == 5.0


def test_a_new_limit_is_decided_anew() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    assert started(made.world) == []
    held = made.world.workload(f"{NAMESPACE}/endless")
    assert held is not None
    made.world.set_workload(replace(held, maximum_execution_time_seconds=600), 0.0)
    assert started(made.world) == ["endless"]


def test_time_that_a_workload_ran_before_its_eviction_counts() -> None:
    made = Builder().queue("q", {"default": 4}, **EASY)
    made.running("busy", "q", 3, executed_seconds=45 * MINUTE, **limited(60))
    made.pending("big", "q", 4, at=1.0).pending("long", "q", 1, at=2.0, **limited(50))
    made.pending("again", "q", 1, at=3.0, executed_seconds=40 * MINUTE, **limited(50))
    assert started(made.world) == ["again"]
    assert plan_of(made.world, "big") == 15 * MINUTE


def test_a_release_adds_the_time_that_the_workload_ran() -> None:
    made = Builder().queue("q", {"default": 4}, preemption=preemption("LowerPriority"))
    made.running("busy", "q", 3, **limited(60)).pending("urgent", "q", 4, at=1.0, priority=9)
    assert preemptions(cycle(made.world, 600.0)) == {"busy": "InClusterQueue"}
    made.world.release_workload(f"{NAMESPACE}/busy", 660.0)
    found = made.world.workload(f"{NAMESPACE}/busy")
    assert found is not None
    assert found.executed_seconds == 660


def test_an_overdue_workload_ends_now_for_the_plan() -> None:
    made = four_nodes(**EASY).pending("short", "q", 1, at=2.0, **limited(1))
    assert started(made.world, 61 * MINUTE) == []
    assert reason_of(made.world, "short") == "WaitingForPlannedStart"


def test_with_admission_checks_a_limit_says_nothing_about_the_end() -> None:
    made = four_nodes(**EASY, admission_checks=(AdmissionCheckRule("check"),))
    made.pending("short", "q", 1, at=2.0, **limited(10))
    made.world.set_admission_check(AdmissionCheck("check"))
    assert started(made.world) == []
    assert reason_of(made.world, "short") == "WaitingForPlannedStart"


def test_a_variant_is_not_held_back_for_another_one_of_its_workload() -> None:
    made = Builder().queue("q", {"default": 4}, **EASY).running("busy", "q", 3, **limited(60))
    made.pending("large", "q", 4, at=1.0, parent=f"{NAMESPACE}/job")
    made.pending("small", "q", 1, at=2.0, parent=f"{NAMESPACE}/job")
    assert started(made.world) == ["small"]


def test_a_preemptor_that_would_delay_the_plan_preempts_nothing() -> None:
    policy = preemption("LowerPriority")
    made = Builder().queue("q", {"default": 4}, preemption=policy, **EASY)
    made.running("busy", "q", 3, priority=5, **limited(60)).running("low", "q", 1, priority=-1, **limited(60))
    made.pending("big", "q", 4, at=1.0, priority=5).pending("late", "q", 1, at=2.0, priority=3)
    results = settled(made.world, 0.0)
    assert [preemptions(result) for result in results if result.preemptions] == []
    assert reason_of(made.world, "late") == "WaitingForPlannedStart"


def test_a_gang_may_start_reduced_beside_the_plan() -> None:
    made = Builder().queue("q", {"default": 6}, **EASY).running("busy", "q", 3, **limited(60))
    made.pending("big", "q", 5, at=1.0).pending("gang", "q", [pod_set(1, 3, min_count=1)], at=2.0)
    (decision,) = (each for result in settled(made.world, 0.0) for each in result.admissions)
    assert decision.pod_sets[0].count == 1


class TestCohort:
    """`owner` has all quota, and its first workload waits for 60 minutes. `guest` borrows."""

    def made(self, **guest: Any) -> Builder:
        made = Builder().queue("owner", {"default": 4}, "all", **EASY).queue("guest", {"default": 0}, "all", **guest)
        return made.running("busy", "owner", 3, **limited(60)).pending("big", "owner", 4, at=1.0)

    def test_a_queue_that_backfills_does_not_borrow_what_a_plan_waits_for(self) -> None:
        made = self.made(**EASY).pending("late", "guest", 1, at=2.0)
        assert started(made.world) == []
        assert reason_of(made.world, "late") == "WaitingForPlannedStart"
        found = made.world.explain(f"{NAMESPACE}/late").would_delay
        assert found is not None
        assert (found.workload, found.starts_at) == (f"{NAMESPACE}/big", 60 * MINUTE)
        made.pending("short", "guest", 1, at=3.0, **limited(9))
        assert started(made.world) == ["short"]

    def test_a_queue_that_says_nothing_borrows_as_in_kueue(self) -> None:
        made = self.made().pending("late", "guest", 1, at=2.0)
        assert started(made.world) == ["late"]

    def test_a_workload_before_the_planned_one_borrows(self) -> None:
        made = self.made(**EASY).pending("older", "guest", 1, at=0.5)
        assert started(made.world) == ["older"]

    def test_a_workload_within_the_quota_of_its_queue_is_not_held_back(self) -> None:
        made = Builder().queue("owner", {"default": 3}, "all", **EASY).queue("guest", {"default": 1}, "all", **EASY)
        made.running("busy", "owner", 3, **limited(60)).pending("big", "owner", 4, at=1.0)
        made.pending("own", "guest", 1, at=2.0)
        assert started(made.world) == ["own"]

    def test_two_heads_of_one_cycle_do_not_share_the_room_beside_a_plan(self) -> None:
        made = Builder().queue("owner", {"default": 6}, "all", **EASY).queue("guest", {"default": 0}, "all", **EASY)
        made.running("busy", "owner", 4, **limited(60)).pending("big", "owner", 5, at=1.0)
        cycle(made.world, 0.0)
        made.pending("one", "owner", 1, at=2.0).pending("two", "guest", 1, at=3.0)
        assert admissions(cycle(made.world, 0.0)) == ["one"]
        assert started(made.world) == []
        assert reason_of(made.world, "two") == "WaitingForPlannedStart"


def three_guests() -> Builder:
    """All quota belongs to `owner`, and four of its six cpus are busy for an hour."""
    made = Builder().queue(OWNER, {"default": 6}, "all", **EASY)
    for guest in GUESTS:
        made.queue(guest, {"default": 0}, "all", **EASY)
    return made.running("busy", OWNER, 4, **limited(60))


def test_heads_of_one_cycle_do_not_delay_the_plan_of_another_one() -> None:
    made = three_guests().pending("big", GUESTS[0], 5, at=1.0).pending("one", GUESTS[1], 2, at=2.0)
    assert started(made.world) == []
    assert plan_of(made.world, "big") == 60 * MINUTE


def test_a_wake_of_the_planned_workload_lets_nothing_pass() -> None:
    made = three_guests().running("short", OWNER, 1, **limited(30)).pending("big", GUESTS[0], 6, at=1.0)
    assert started(made.world) == []
    made.pending("one", GUESTS[1], 1, at=2.0)
    assert started(made.world) == []
    made.world.finish_workload(f"{NAMESPACE}/short", 1.0)
    assert started(made.world, 1.0) == [], "the end of a workload makes both of them heads of one cycle"


def test_two_heads_do_not_share_the_room_beside_the_plan_of_a_third() -> None:
    made = three_guests().pending("big", GUESTS[0], 5, at=1.0)
    made.pending("one", GUESTS[1], 1, at=2.0).pending("two", GUESTS[2], 1, at=3.0)
    assert started(made.world) == ["one"]
    assert plan_of(made.world, "big") == 60 * MINUTE


def test_plans_change_no_usage_and_can_be_undone() -> None:
    made = four_nodes(**EASY).pending("endless", "q", 1, at=2.0)
    point = made.world.savepoint()
    settled(made.world, 0.0)
    (row,) = made.world.cluster_queue_status("q").usage
    assert row.used == 3000
    made.world.undo(point)
    assert started(made.world) == []
    assert reason_of(made.world, "endless") == "WaitingForPlannedStart"


def node(name: str, devices: int) -> Node:
    return Node(
        name,
        labels={},
        allocatable={"cpu": 64_000, "memory": 2**40, "pods": 110},
        devices=tuple(
            Device(f"{name}-{number}", number, "NVIDIA", "NVIDIA-A100", 10, 40_000, 100) for number in range(devices)
        ),
    )


def with_gpus(gpus: int) -> dict[str, Any]:
    return {
        "spec": {"containers": [{"name": "c", "resources": {"limits": {GPU: f"{gpus}"}, "requests": {"cpu": "1"}}}]}
    }


def test_devices_are_planned_by_the_search_that_places_them() -> None:
    made = Builder().queue("q", {"default": {"cpu": 9, GPU: 9}}, **EASY)
    made.world.set_node(node("n1", 4))
    made.pending("busy", "q", 1, **with_gpus(3), **limited(60)).pending("big", "q", 1, at=1.0, **with_gpus(4))
    assert started(made.world) == ["busy"]
    assert reason_of(made.world, "big") == "WaitingForDevices"
    assert plan_of(made.world, "big") == 60 * MINUTE
    made.pending("endless", "q", 1, at=2.0, **with_gpus(1))
    made.pending("short", "q", 1, at=3.0, **with_gpus(1), **limited(5))
    assert started(made.world) == ["short"], "quota is left beside the plan, but no device"


@dataclass
class Job:
    """`runs`: for how many minutes it runs in truth, at most its limit."""

    cpus: int
    limit: int | None
    runs: int
    arrives: int
    queue: str


OWNER: Final = "owner"
GUESTS: Final = ("guest", "guest2", "guest3")


@st.composite
def jobs(draw: st.DrawFn, *queues: str) -> Job:
    limit = draw(st.none() | st.integers(1, 60))
    runs = draw(st.integers(1, limit if limit is not None else 60))
    return Job(draw(st.integers(1, 6)), limit, runs, draw(st.integers(0, 90)), draw(st.sampled_from(queues)))


class Trial:
    """Jobs of equal priority in a queue that owns six cpus, and in some that borrow them. `watched`: the queues whose
    plans are compared."""

    def __init__(self, found: list[Job], *watched: str) -> None:
        self.watched = watched
        self.builder = Builder().queue(OWNER, {"default": 6}, "all", **EASY)
        for guest in GUESTS:
            self.builder.queue(guest, {"default": 0}, "all", **EASY)
        self.jobs = {f"w{number:02}": job for number, job in enumerate(sorted(found, key=lambda job: job.arrives))}
        self.running: dict[str, int] = {}
        self.waiting: list[str] = []
        self.promised: dict[str, float] = {}
        """The planned start of jobs of watched queues, from when no earlier job waited."""

    def run(self) -> None:
        arrivals = {job.arrives for job in self.jobs.values()}
        minute = -1
        while times := sorted(time for time in {*arrivals, *self.running.values()} if time > minute):
            minute = times[0]
            for name in [name for name, end in self.running.items() if end == minute]:
                del self.running[name]
                self.builder.world.finish_workload(f"{NAMESPACE}/{name}", minute * MINUTE)
            self._arrive(minute)
            while self._decide(minute):
                pass

    def _arrive(self, minute: int) -> None:
        for number, (name, job) in enumerate(self.jobs.items()):
            if job.arrives == minute:
                at = minute * MINUTE + number / 100
                self.builder.pending(name, job.queue, job.cpus, at=at, now=minute * MINUTE, **limited(job.limit))
                self.waiting.append(name)

    def _decide(self, minute: int) -> bool:
        """Run one cycle, and compare the plan of the first waiting job before and after it."""
        world = self.builder.world
        before = {name: plan_of(world, name) for name in self.waiting[:1] if self.jobs[name].queue in self.watched}
        result = cycle(world, minute * MINUTE)
        for name in admissions(result):
            self.waiting.remove(name)
            self.running[name] = minute + self.jobs[name].runs
            assert minute * MINUTE <= self.promised.get(name, math.inf), "it starts later than planned"
        assert sum(self.jobs[name].cpus for name in self.running) <= 6
        for name, starts_at in before.items():
            if starts_at is not None and name in self.waiting:
                after = plan_of(world, name)
                assert after is not None
                assert after <= starts_at, "a plan moved"
                self.promised.setdefault(name, starts_at)
        return result.progressed


# Jobs of the owner may take its quota back from a plan of a guest, so that only plans of the owner are compared.
@given(st.lists(jobs(OWNER, GUESTS[0]), min_size=2, max_size=14))
@settings(max_examples=60, deadline=None)
def test_no_job_that_passes_delays_a_planned_start(found: list[Job]) -> None:
    Trial(found, OWNER).run()


@given(st.lists(jobs(*GUESTS), min_size=2, max_size=12))
@settings(max_examples=60, deadline=None)
def test_no_job_of_another_borrower_delays_a_planned_start(found: list[Job]) -> None:
    Trial(found, *GUESTS).run()
