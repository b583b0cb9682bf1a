"""Elastic jobs by workload slices: the new slice is charged the difference and replaces the old one."""

from __future__ import annotations

from scheduling.lifecycle.conditions import evict
from scheduling.model.vocabulary import EvictionReason
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import Builder, admissions, cycle, flavors, outcomes, preemption, preemptions


def used(builder: Builder, queue: str) -> dict[str, int]:
    """Cores in use per flavor."""
    return {row.flavor: row.used // 1000 for row in builder.world.cluster_queue_status(queue).usage}


def test_only_the_difference_is_needed() -> None:
    builder = Builder().queue("q", {"default": 10}).running("old", "q", 1, count=6)
    result = cycle(builder.pending("new", "q", 1, count=10, replaces="team/old").world)
    assert admissions(result) == ["new"]
    assert result.admissions[0].replaces == "team/old"
    assert used(builder, "q") == {"default": 10}
    assert builder.world.workload("team/old") is None


def test_a_new_slice_stays_in_the_flavors_of_the_old_one() -> None:
    builder = Builder().queue("q", {"one": 20, "two": 10}).running("old", "q", 1, "two", count=6)
    result = cycle(builder.pending("new", "q", 1, count=10, replaces="team/old").world)
    assert flavors(result, "new") == {"cpu": "two"}
    builder.running("other", "q", 1, "one").pending("larger", "q", 1, count=11, replaces="team/new")
    assert outcomes(cycle(builder.world)) == {"larger": "ExceedsMaxQuota"}


def test_a_slice_that_does_not_fit_waits_and_the_old_one_goes_on() -> None:
    builder = Builder().queue("q", {"default": 10}).running("old", "q", 1, count=6).running("other", "q", 2)
    result = cycle(builder.pending("new", "q", 1, count=10, replaces="team/old").world)
    assert outcomes(result) == {"new": "WaitingForQuota"}
    assert used(builder, "q") == {"default": 8}


def test_a_slice_never_preempts_the_one_it_replaces() -> None:
    builder = Builder().queue("q", {"default": 10}, preemption=preemption(within="LowerPriority"))
    builder.running("old", "q", 1, count=6).running("other", "q", 4)
    result = cycle(builder.pending("new", "q", 1, count=10, replaces="team/old", priority=1).world)
    assert preemptions(result) == {"other": "InClusterQueue"}
    builder.world.release_workload("team/other", 1001.0)
    result = cycle(builder.world, 1001.0)
    assert result.admissions[0].replaces == "team/old"


def test_a_slice_that_is_being_preempted_is_not_replaced() -> None:
    builder = Builder().queue("q", {"default": 10}, preemption=preemption(within="LowerPriority"))
    builder.running("old", "q", 1, count=6).pending("urgent", "q", 10, priority=9)
    assert preemptions(cycle(builder.world)) == {"old": "InClusterQueue"}
    builder.world.delete_workload("team/urgent")
    result = cycle(builder.pending("new", "q", 1, count=10, replaces="team/old").world)
    assert outcomes(result) == {"new": "WaitingForPreemptedWorkloads"}
    builder.world.finish_workload("team/old", 1001.0)
    assert cycle(builder.world, 1001.0).admissions[0].replaces is None


def test_under_fair_sharing_the_difference_counts() -> None:
    builder = Builder(fair=True).cohort("all", quotas={"default": 4})
    for name in ("a", "b"):
        builder.queue(name, {"default": 2}, "all")
    builder.running("old", "a", 1, count=2)
    builder.pending("new", "a", 1, count=5, replaces="team/old", at=1.0).pending("w", "b", 6)
    assert admissions(cycle(builder.world)) == ["new"], "3 more of 8 is less than 4"


def test_undo_brings_the_old_slice_back() -> None:
    builder = Builder().queue("q", {"default": 10}).running("old", "q", 1, count=6)
    builder.pending("new", "q", 1, count=10, replaces="team/old")
    point = builder.world.savepoint()
    cycle(builder.world)
    builder.world.undo(point)
    assert builder.world.workload("team/old") is not None
    assert used(builder, "q") == {"default": 6}
    assert admissions(cycle(builder.world)) == ["new"]


def test_the_pods_of_the_old_slice_keep_their_devices() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    for name in ("n1", "n2"):
        builder.world.set_node(gpu_node(name))
    builder.pending("old", "q", [gpus(memory_mib=10000)])
    (before,) = cycle(builder.world).admissions
    assert before.placement is not None
    builder.pending("new", "q", [gpus(memory_mib=10000, pods=2)], replaces="team/old")
    (after,) = cycle(builder.world).admissions
    assert after.placement is not None
    assert after.placement.pods[0] == before.placement.pods[0]
    assert {pod.node for pod in after.placement.pods} == {"n1", "n2"}
    assert [pod.replica for pod in after.placement.pods] == [0, 1]


def test_devices_of_a_slice_that_is_being_preempted_are_not_kept() -> None:
    builder = Builder().queue("q", {"default": PLENTY}, preemption=preemption(within="LowerPriority"))
    builder.world.set_node(gpu_node("n1"))
    cycle(builder.pending("old", "q", [gpus(memory_mib=10000)]).world)
    old = builder.world.workload("team/old")
    assert old is not None
    builder.world.set_workload(evict(old, EvictionReason.NODE_FAILURES, "gone", 1001.0), 1001.0)
    builder.pending("new", "q", [gpus(memory_mib=10000)], replaces="team/old")
    assert outcomes(cycle(builder.world, 1001.0)) == {"new": "WaitingForPreemptedWorkloads"}
    builder.world.finish_workload("team/old", 1002.0)
    assert admissions(cycle(builder.world, 1002.0)) == ["new"]
    assert builder.world.device_usage("n1", "n1-gpu0") == (1, 10000, 0)
