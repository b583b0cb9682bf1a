"""The World's public surface: references that dangle, updates in place, savepoints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.lifecycle.conditions import evict, pending, release
from scheduling.model.configuration import Configuration
from scheduling.model.local_queue import LocalQueue
from scheduling.model.quantity import NANOS
from scheduling.model.resources import Transformation
from scheduling.model.vocabulary import ConditionType, EvictionReason, TransformationStrategy
from scheduling.model.workload import Workload
from scheduling.run_until_idle import run_until_idle
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    messages,
    outcomes,
    preemption,
    preemptions,
    settled,
    workload,
)


def current(builder: Builder, name: str) -> Workload:
    """The workload as the world sees it."""
    found = builder.world.workload(f"team/{name}")
    assert found is not None
    return found


def test_a_workload_waits_outside_until_its_queues_exist() -> None:
    builder = Builder()
    builder.world.set_workload(workload("w", "q", 1), 0.0)
    assert not builder.world.has_active()
    builder.world.set_local_queue(LocalQueue("team", "q", "cq"))
    assert not builder.world.has_active()
    builder.queue("cq", {"default": 4})
    assert admissions(cycle(builder.world)) == ["w"]


def test_a_workload_that_holds_quota_is_charged_as_soon_as_its_queue_exists() -> None:
    builder = Builder().running("w", "q", 3)
    builder.queue("q", {"default": 4})
    assert [row.used for row in builder.world.cluster_queue_status("q").usage] == [3000]


def test_deleting_a_local_queue_takes_its_pending_workloads_out() -> None:
    builder = Builder().queue("q", {"default": 4}).running("r", "q", 1).pending("w", "q", 1)
    builder.world.delete_local_queue("team/q")
    assert not builder.world.has_active()
    assert builder.world.cluster_queue_status("q").reserving == 1
    builder.world.set_local_queue(LocalQueue("team", "q", "q"))
    assert admissions(cycle(builder.world)) == ["w"]


def test_deleting_a_cluster_queue_and_bringing_it_back() -> None:
    builder = Builder().queue("q", {"default": 4}, "all").queue("other", {"default": 0}, "all")
    cycle(builder.pending("w", "q", 1).world)
    builder.pending("x", "q", 1).world.delete_cluster_queue("q")
    assert builder.world.cluster_queue_names() == ("other",)
    assert builder.world.cohort_status("all").usage[0].used == 0
    builder.queue("q", {"default": 4}, "all")
    assert [row.used for row in builder.world.cluster_queue_status("q").usage] == [1000]
    assert admissions(cycle(builder.world)) == ["x"]


def test_a_missing_flavor_stops_the_queue() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("w", "q", 1)
    builder.world.delete_resource_flavor("default")
    assert not builder.world.has_active()
    view = builder.world.cluster_queue_status("q")
    assert (view.active, view.reason) == (False, "FlavorNotFound")
    assert "default" in view.message
    assert builder.world.queue_problems() == {"q": "flavors not found: default"}
    assert builder.world.explain("team/w").message == f"ClusterQueue q: {view.message}."
    builder.flavor("default")
    assert builder.world.queue_problems() == {}
    assert admissions(cycle(builder.world)) == ["w"]


def test_an_edit_of_quota_wakes_the_inadmissible_workloads_of_the_whole_tree() -> None:
    builder = Builder().queue("a", {"default": 0}, "all").queue("b", {"default": 0}, "all").pending("w", "a", 2)
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    assert not builder.world.has_active()
    builder.queue("b", {"default": 2}, "all")
    assert admissions(cycle(builder.world)) == ["w"]


def test_moving_a_queue_to_another_cohort_takes_its_usage_along() -> None:
    builder = Builder().queue("a", {"default": 2}, "x").queue("b", {"default": 4}, "x").running("w", "a", 5)
    assert builder.world.cohort_status("x").usage[0].used == 5000
    builder.queue("a", {"default": 2}, "y")
    assert builder.world.cohort_status("x").usage[0].used == 0
    assert builder.world.cohort_status("y").usage[0].used == 5000
    assert builder.world.cohort_names() == ("x", "y")


def test_usage_of_a_flavor_that_is_listed_no_more_stays_charged_and_counts_in_the_cohort() -> None:
    builder = Builder().queue("a", {"one": 4, "two": 4}, "all").queue("b", {"one": 4}, "all")
    builder.running("old", "a", 4, "one")
    builder.queue("a", {"two": 4}, "all")
    assert outcomes(cycle(builder.pending("w", "b", 1).world)) == {"w": "WaitingForQuota"}
    found = builder.world.workload("team/old")
    assert found is not None
    assert found.is_true(ConditionType.ADMITTED), "nobody is evicted by an edit"
    builder.world.finish_workload("team/old", 1001.0)
    assert admissions(cycle(builder.world)) == ["w"]


def test_a_inadmissible_workload_stays_inadmissible_when_only_its_status_changes() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("w", "q", 9)
    cycle(builder.world)
    builder.world.set_workload(current(builder, "w"), 1001.0)
    assert not builder.world.has_active()
    builder.world.set_workload(replace(current(builder, "w"), priority=5), 1002.0)
    assert builder.world.has_active()


def test_the_row_of_an_admission_read_back_changes_nothing() -> None:
    builder = Builder().queue("q", {"default": 4})
    cycle(builder.pending("w", "q", 4).pending("x", "q", 4).world)
    cycle(builder.world)
    builder.world.set_workload(current(builder, "w"), 1001.0)
    assert not builder.world.has_active(), "nothing was freed, nobody is woken"


def test_a_verdict_is_said_again_when_the_status_lost_it() -> None:
    builder = Builder().queue("q", {"default": 4}).pending("w", "q", 9)
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    forgotten = pending(current(builder, "w"), "PendingEvaluation", "", 1001.0)
    builder.world.set_workload(replace(forgotten, priority=1), 1001.0)
    assert outcomes(cycle(builder.world)) == {"w": "ExceedsMaxQuota"}
    builder.world.set_workload(replace(current(builder, "w"), priority=2), 1002.0)
    assert outcomes(cycle(builder.world)) == {}, "nothing new to say"


def test_a_change_of_a_running_workloads_priority_wakes_its_tree() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    cycle(builder.pending("w", "q", 4, priority=5).world)
    assert outcomes(cycle(builder.pending("x", "q", 4, priority=1).world)) == {"x": "WaitingForQuota"}
    builder.world.set_workload(replace(current(builder, "w"), priority=0), 1001.0)
    assert preemptions(cycle(builder.world)) == {"w": "InClusterQueue"}


def test_quota_taken_back_from_outside_puts_the_workload_back_in_its_place() -> None:
    builder = Builder().queue("q", {"default": 4})
    cycle(builder.pending("old", "q", 4, at=1.0).pending("new", "q", 4, at=2.0).world)
    stopped = release(evict(current(builder, "old"), EvictionReason.NODE_FAILURES, "gone", 1001.0), 1001.0)
    builder.world.set_workload(stopped, 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["old"]


def test_a_finished_workload_is_forgotten() -> None:
    builder = Builder().queue("q", {"default": 4})
    cycle(builder.pending("w", "q", 4).world)
    builder.world.finish_workload("team/w", 1001.0)
    assert builder.world.workload("team/w") is None
    assert builder.world.cluster_queue_status("q").reserving == 0
    builder.world.finish_workload("team/w", 1001.0)


def test_a_new_configuration_computes_requests_anew_and_keeps_usage() -> None:
    builder = Builder().queue("q", {"default": {"cpu": 4, "credits": 10}}).running("r", "q", 1)
    builder.pending("w", "q", {"cpu": 1, "gpu": 2})
    assert outcomes(cycle(builder.world)) == {"w": "NoMatchingFlavor"}
    rule = Transformation("gpu", TransformationStrategy.REPLACE, outputs={"credits": 5 * NANOS})
    builder.world.set_configuration(Configuration(transformations=(rule,)))
    result = cycle(builder.world)
    assert dict(result.admissions[0].pod_sets[0].resource_usage) == {"cpu": 1000, "credits": 10}
    assert {row.resource: row.used for row in builder.world.cluster_queue_status("q").usage} == {
        "cpu": 2000,
        "credits": 10,
    }


def test_the_status_of_an_admitted_workload() -> None:
    builder = Builder().queue("q", {"default": 4})
    cycle(builder.pending("w", "q", 4).world, 500.0)
    found = current(builder, "w")
    assert found.status == "Admitted"
    reserved = found.condition(ConditionType.QUOTA_RESERVED)
    assert reserved is not None
    assert (reserved.reason, reserved.last_transition_time) == ("QuotaReserved", 500.0)
    assert found.admission is not None
    assert found.admission.cluster_queue == "q"


def test_savepoints_do_not_nest() -> None:
    world = Builder().queue("q", {"default": 4}).world
    point = world.savepoint()
    with pytest.raises(RuntimeError, match="open already"):
        world.savepoint()
    world.commit(point)
    world.commit(world.savepoint())


def test_undo_forgets_workloads_that_came_since() -> None:
    builder = Builder().queue("q", {"default": 4})
    point = builder.world.savepoint()
    cycle(builder.pending("w", "q", 1).world)
    builder.world.undo(point)
    assert builder.world.workload("team/w") is None
    assert builder.world.pending("q") == ()


def test_undo_puts_back_no_outcome_of_a_workload_that_then_ends() -> None:
    """A batch drains the verdict on an equal workload and is undone; before the next one the workload is deleted."""
    builder = Builder().queue("q", {"default": 1}).pending("first", "q", 2)
    settled(builder.world)
    builder.pending("equal", "q", 2, at=1.0).pending("other", "q", 2, at=2.0)
    point = builder.world.savepoint()
    told = [outcome.workload for result in run_until_idle(builder.world, 1.0) for outcome in result.outcomes]
    builder.world.undo(point)
    assert told == ["team/equal", "team/other"]
    builder.world.delete_workload("team/equal")
    told = [outcome.workload for result in run_until_idle(builder.world, 1.0) for outcome in result.outcomes]
    assert told == ["team/other"]


def test_a_verdict_outlives_an_edit_of_the_workload_that_could_not_admit_it() -> None:
    builder = Builder().queue("q", {"default": 1}).pending("first", "q", 2)
    settled(builder.world)
    equal = workload("equal", "q", 2, at=1.0)
    builder.world.set_workload(equal, 1.0)
    builder.world.set_workload(replace(equal, maximum_execution_time_seconds=60), 1.0)
    told = [outcome.workload for result in run_until_idle(builder.world, 1.0) for outcome in result.outcomes]
    assert told == ["team/equal"]
    found = builder.world.workload("team/equal")
    assert found is not None
    assert found.conditions[ConditionType.QUOTA_RESERVED].reason == "ExceedsMaxQuota"


def test_the_pending_view_is_in_the_order_of_the_queue() -> None:
    builder = Builder().queue("q", {"default": 4}).running("r", "q", 4)
    builder.pending("second", "q", 1, at=2.0).pending("first", "q", 2, at=1.0).pending("urgent", "q", 3, priority=9)
    cycle(builder.world)
    entries = builder.world.pending("q")
    assert [entry.workload.split("/")[1] for entry in entries] == ["urgent", "first", "second"]
    assert [entry.inadmissible for entry in entries] == [True, False, False]
    assert entries[0].reason == "WaitingForQuota"


def test_why_a_workload_waits_names_what_lacks_and_who_holds_it() -> None:
    builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
    builder.running("r", "b", 7).pending("w", "a", 3)
    result = cycle(builder.world)
    assert messages(result) == {"w": "cpu in flavor default: 2 cores more needed (3 cores requested, 1 core free)"}
    found = builder.world.explain("team/w")
    assert found.message == "Cpu in flavor default: 2 cores more needed (3 cores requested, 1 core free)."
    assert [(holder.cluster_queue, holder.used) for holder in found.queue_holders] == [("b", 7000)]
    assert builder.world.explain("team/r").state == "HoldsQuota"


def test_a_preemption_says_for_whom_why_and_where_both_stand() -> None:
    builder = Builder().cohort("root").cohort("left", "root")
    builder.queue("a", {"default": 4}, "root", preemption=preemption(reclaim="Any"))
    builder.queue("b", {"default": 0}, "left").running("r", "b", 4).pending("w", "a", 4)
    (decision,) = cycle(builder.world).preemptions
    assert decision.message == (
        "Preempted to make room for workload team/w (uid w) by reclaiming quota within the cohort; "
        "preemptor path: /root/a; preemptee path: /root/left/b"
    )


def test_what_a_victim_reads_names_no_workload_of_another_namespace() -> None:
    builder = Builder().queue("a", {"default": 4}, "all", preemption=preemption(reclaim="Any"))
    builder.queue("b", {"default": 0}, "all").running("r", "b", 4)
    builder.world.set_namespace("other", {})
    builder.world.set_local_queue(LocalQueue("other", "a", "a"))
    builder.world.set_workload(replace(workload("w", "a", 4), namespace="other"), 0.0)
    (decision,) = cycle(builder.world).preemptions
    assert decision.message.startswith("Preempted to make room for a workload (uid w) by reclaiming quota")


def test_views_of_what_is_not_there() -> None:
    world = Builder().world
    for view in (world.cluster_queue_status, world.cohort_status, world.pending, world.explain):
        with pytest.raises(KeyError):
            view("none")
    assert world.workload("team/none") is None
    assert settled(world) == []
