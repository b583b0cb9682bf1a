"""Quota and devices in one decision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduling.advice.waiting_rules import Rule
from scheduling.model.decisions import CycleResult
from scheduling.model.node import Node
from scheduling.model.placement import Placement
from tests.scheduling.device_worlds import GPU, MEMORY, PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    flavors,
    messages,
    outcomes,
    pod_set,
    preemption,
    preemptions,
    settled,
)


def placement(result: CycleResult, name: str) -> Placement:
    """Where the pods of an admitted workload went."""
    found = next(a for a in result.admissions if a.workload == f"team/{name}")
    assert found.placement is not None
    return found.placement


def test_an_admission_names_the_devices() -> None:
    builder = Builder().queue("q", {"default": PLENTY}).pending("w", "q", [gpus()])
    builder.world.set_node(gpu_node("n1"))
    (pod,) = placement(cycle(builder.world), "w").pods
    assert (pod.node, [held.uuid for held in pod.slices]) == ("n1", ["n1-gpu0"])
    assert builder.world.device_usage("n1", "n1-gpu0") == (1, 8192, 0)
    current = builder.world.workload("team/w")
    assert current is not None
    assert current.placement is not None


def test_without_registered_devices_quota_alone_decides() -> None:
    builder = Builder().queue("q", {"default": PLENTY}).pending("w", "q", [gpus()])
    builder.world.set_node(Node("n1"))
    result = cycle(builder.world)
    assert admissions(result) == ["w"]
    assert result.admissions[0].placement is None


def test_quota_without_a_device_is_inadmissible_and_says_what_the_nearest_node_lacks() -> None:
    builder = Builder().queue("q", {"default": PLENTY}).pending("w", "q", [gpus(memory_mib=20000)])
    builder.world.set_node(gpu_node("n1"))
    result = cycle(builder.world)
    assert outcomes(result) == {"w": "WaitingForDevices"}
    assert "n1" in messages(result)["w"]
    assert "CardInsufficientMemory" in messages(result)["w"]
    assert not builder.world.has_active()


def test_a_changed_node_wakes_workloads_that_wait_for_it() -> None:
    builder = Builder().flavor("v100", node_labels={"gpu": "v100"}).queue("q", {"v100": PLENTY})
    builder.world.set_node(gpu_node("n1", gpu="v100"))
    cycle(builder.pending("w", "q", [gpus(memory_mib=20000)]).world)
    builder.world.set_node(gpu_node("other", memory_mib=32768, gpu="a100"))
    assert not builder.world.has_active(), "the flavor does not reach that node"
    builder.world.set_node(gpu_node("n2", memory_mib=32768, gpu="v100"))
    assert placement(cycle(builder.world), "w").pods[0].node == "n2"


def test_a_node_that_only_fills_up_wakes_no_workload() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    cycle(builder.pending("w", "q", [gpus(memory_mib=20000)]).world)
    builder.world.set_node(replace(gpu_node("n1"), foreign_usage={"cpu": 9000, "pods": 3}))
    assert not builder.world.has_active()
    builder.world.set_node(replace(gpu_node("n1"), foreign_usage={"cpu": 5000, "pods": 2}))
    assert builder.world.has_active()


def test_when_the_last_device_goes_quota_alone_decides_again() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    builder.world.set_node(Node("cpu-only"))
    builder.pending("large", "q", [gpus(memory_mib=20000)])
    assert outcomes(settled(builder.world)[-1]) == {"large": "WaitingForDevices"}
    builder.world.delete_node("n1")
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["large"]
    builder.world.set_node(gpu_node("n1"))
    builder.pending("next", "q", [gpus(memory_mib=20000)])
    assert outcomes(settled(builder.world)[-1]) == {"next": "WaitingForDevices"}


def test_devices_that_become_free_wake_the_queues_of_other_cohorts() -> None:
    builder = Builder().queue("a", {"default": PLENTY}).queue("b", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    assert admissions(cycle(builder.pending("first", "a", [gpus(memory_mib=16384)]).world)) == ["first"]
    assert outcomes(cycle(builder.pending("second", "b", [gpus()]).world)) == {"second": "WaitingForDevices"}
    builder.world.finish_workload("team/first", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["second"]


def test_the_next_flavor_is_tried_when_the_first_has_quota_but_no_device() -> None:
    builder = Builder().flavor("v100", node_labels={"gpu": "v100"}).flavor("a100", node_labels={"gpu": "a100"})
    builder.queue("q", {"v100": PLENTY, "a100": PLENTY})
    builder.world.set_node(gpu_node("small", gpu="v100"))
    builder.world.set_node(gpu_node("large", memory_mib=81920, gpu="a100"))
    result = cycle(builder.pending("w", "q", [gpus(memory_mib=40000)]).world)
    assert flavors(result, "w")[GPU] == "a100"
    assert placement(result, "w").pods[0].node == "large"


def test_a_strict_head_without_devices_blocks_its_queue() -> None:
    builder = Builder().queue("q", {"default": PLENTY}, strict=True)
    builder.world.set_node(gpu_node("n1"))
    builder.pending("large", "q", [gpus(memory_mib=20000)]).pending("small", "q", [gpus()], at=1.0)
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == []
    assert outcomes(results[0]) == {"large": "WaitingForDevices"}


def test_gangs_are_placed_whole_or_not_at_all() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    gang = [gpus(memory_mib=16384, name="leader"), gpus(memory_mib=16384, name="worker")]
    result = cycle(builder.pending("gang", "q", gang).world)
    assert outcomes(result) == {"gang": "WaitingForDevices"}
    assert builder.world.device_usage("n1", "n1-gpu0") == (0, 0, 0)
    builder.world.set_node(gpu_node("n2"))
    placed = placement(cycle(builder.world), "gang")
    assert {(pod.pod_set, pod.node) for pod in placed.pods} in (
        {("leader", "n1"), ("worker", "n2")},
        {("leader", "n2"), ("worker", "n1")},
    )


def test_two_heads_of_one_cycle_do_not_get_the_same_device() -> None:
    builder = Builder().queue("a", {"default": PLENTY}).queue("b", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    builder.pending("first", "a", [gpus(memory_mib=16384)]).pending("second", "b", [gpus(memory_mib=16384)], at=1.0)
    results = settled(builder.world)
    assert [admissions(result) for result in results] == [["first"], []]
    assert outcomes(results[-1]) == {"second": "WaitingForDevices"}


def test_the_second_head_takes_another_device_when_its_own_was_given_away() -> None:
    builder = Builder().queue("a", {"default": PLENTY}).queue("b", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    builder.world.set_node(gpu_node("n2"))
    builder.pending("first", "a", [gpus(memory_mib=16384)]).pending("second", "b", [gpus(memory_mib=16384)], at=1.0)
    result = cycle(builder.world)
    assert {placement(result, name).pods[0].node for name in ("first", "second")} == {"n1", "n2"}


def full_queue(**fields: Any) -> Builder:
    """One device, quota for two, and a low-priority workload on the device."""
    builder = Builder().queue("q", {"default": {GPU: 2, MEMORY: 40000}}, **fields)
    builder.world.set_node(gpu_node("n1"))
    assert admissions(cycle(builder.pending("low", "q", [gpus(memory_mib=16384)]).world)) == ["low"]
    return builder


def test_full_devices_with_free_quota_never_preempt() -> None:
    builder = full_queue(preemption=preemption(within="LowerPriority"))
    result = cycle(builder.pending("high", "q", [gpus()], priority=1).world)
    assert not result.decided
    assert outcomes(result) == {"high": "WaitingForDevices"}


def test_unless_the_queue_lets_workloads_preempt_for_devices() -> None:
    builder = full_queue(preemption=preemption(within="LowerPriority"), preempt_for_devices=True)
    result = cycle(builder.pending("high", "q", [gpus()], priority=1).world)
    assert preemptions(result) == {"low": "InClusterQueue"}
    builder.world.release_workload("team/low", 1001.0)
    assert admissions(cycle(builder.world, 1001.0)) == ["high"]


def test_no_preemption_for_quota_if_the_workload_could_not_be_placed_then() -> None:
    builder = Builder().queue("q", {"default": {GPU: 1, MEMORY: 40000}}, preemption=preemption(within="LowerPriority"))
    builder.world.set_node(gpu_node("n1"))
    assert admissions(cycle(builder.pending("low", "q", [gpus()]).world)) == ["low"]
    result = cycle(builder.pending("huge", "q", [gpus(memory_mib=20000)], priority=1).world)
    assert not result.decided
    result = cycle(builder.pending("fits", "q", [gpus(memory_mib=16384)], priority=1).world)
    assert preemptions(result) == {"low": "InClusterQueue"}


def test_free_devices_on_nodes_without_room_for_a_pod_are_waited_for_as_nodes() -> None:
    """The reason, the message and the remedy say the same: nodes are short of places for pods, devices are free."""
    builder = Builder().queue("q", {"default": PLENTY})
    full = replace(gpu_node("n1"), foreign_usage={"pods": 110})
    builder.world.set_node(full)
    builder.world.set_node(Node("no-devices", allocatable={"cpu": 64000, "memory": 2**40, "pods": 110}))
    result = cycle(builder.pending("w", "q", [gpus()]).world)
    assert outcomes(result) == {"w": "WaitingForNodes"}
    assert "Insufficient pods" in messages(result)["w"]
    found = builder.world.explain("team/w")
    assert (found.rule, found.remedy) == (
        Rule.NODES,
        "It starts when nodes have room for its pods, or when it requests less.",
    )
    builder.world.set_node(replace(full, foreign_usage={"pods": 109}))
    assert admissions(cycle(builder.world)) == ["w"]


def test_a_workload_without_candidates_for_devices_waits_for_devices() -> None:
    """Also for those of other cohorts, which nobody may preempt."""
    builder = Builder().queue("mine", {"default": PLENTY}, preempt_for_devices=True).queue("other", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    settled(builder.pending("theirs", "other", [gpus(memory_mib=16384)]).world)
    assert outcomes(settled(builder.pending("w", "mine", [gpus()]).world)[-1]) == {"w": "WaitingForDevices"}
    builder.world.finish_workload("team/theirs", 5.0)
    assert admissions(cycle(builder.world)) == ["w"]


def test_a_workload_without_quota_and_place_waits_for_devices_too() -> None:
    builder = Builder().queue("mine", {"default": {GPU: 1, MEMORY: 10_000_000}}, preemption=preemption("LowerPriority"))
    builder.flavor("v", node_labels={"gpu": "v"}).queue("other", {"v": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    builder.world.set_node(gpu_node("n2", gpu="v"))
    settled(builder.pending("low", "mine", [gpus(memory_mib=1000)]).world)
    settled(builder.pending("theirs", "other", [gpus(memory_mib=16384)]).world)
    low = builder.world.workload("team/low")
    assert low is not None
    assert low.placement is not None
    assert low.placement.pods[0].node == "n1"
    builder.world.set_node(replace(gpu_node("n1"), unschedulable=True))
    settled(builder.pending("high", "mine", [gpus(memory_mib=8000)], priority=10).world)
    assert not builder.world.has_active()
    builder.world.finish_workload("team/theirs", 5.0)
    assert preemptions(settled(builder.world)[0]) == {"low": "InClusterQueue"}


def test_devices_follow_undo() -> None:
    builder = Builder().queue("q", {"default": PLENTY}).pending("w", "q", [gpus()])
    builder.world.set_node(gpu_node("n1"))
    builder.world.has_active()
    point = builder.world.savepoint()
    assert admissions(cycle(builder.world)) == ["w"]
    builder.world.undo(point)
    assert builder.world.device_usage("n1", "n1-gpu0") == (0, 0, 0)
    point = builder.world.savepoint()
    assert admissions(cycle(builder.world)) == ["w"]
    builder.world.commit(point)
    assert builder.world.device_usage("n1", "n1-gpu0") == (1, 8192, 0)


def test_a_device_request_that_no_scheduler_would_take_is_misconfigured() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    unreadable = gpus(annotations={"hami.io/device-scoring-weights": "gpumem=lots"})
    assert outcomes(cycle(builder.pending("w", "q", [unreadable]).world)) == {"w": "Misconfigured"}


def test_the_cluster_s_policies_choose_nodes_and_devices() -> None:
    def chosen(node_policy: str) -> str:
        builder = Builder().queue("q", {"default": PLENTY})
        builder.world.set_placement_policies(node_policy, "spread")
        for name in ("n1", "n2"):
            builder.world.set_node(gpu_node(name))
        builder.pending("first", "q", [gpus(memory_mib=4096)])
        settled(builder.world)
        builder.pending("second", "q", [gpus(memory_mib=4096)], at=1.0)
        return placement(cycle(builder.world), "second").pods[0].node

    assert chosen("binpack") == "n1"
    assert chosen("spread") == "n2"


def test_a_changed_policy_wakes_workloads_that_the_old_one_refused() -> None:
    builder = Builder().queue("q", {"default": PLENTY}).pending("first", "q", [gpus()]).pending("second", "q", [gpus()])
    builder.world.set_node(gpu_node("n1"))
    builder.world.set_placement_policies("binpack", "mutex")
    settled(builder.world)
    builder.world.set_placement_policies("binpack", "mutex")
    assert not builder.world.has_active(), "nothing changed"
    builder.world.set_placement_policies("binpack", "spread")
    assert admissions(cycle(builder.world)) == ["second"]


def test_fgd_learns_what_is_typical_from_the_workloads() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_placement_policies("fgd", "fgd")
    for name in ("n1", "n2"):
        builder.world.set_node(gpu_node(name))
    for number in range(4):
        builder.pending(f"small{number}", "q", [gpus(memory_mib=4096)], at=float(number))
    builder.pending("large", "q", [gpus(memory_mib=16_384)], at=9.0)
    placed = {name: result for result in settled(builder.world) for name in admissions(result)}
    assert {placement(placed[f"small{number}"], f"small{number}").pods[0].node for number in range(4)} == {"n1"}
    assert placement(placed["large"], "large").pods[0].node == "n2"


def test_a_request_that_hami_silently_drops_is_reported() -> None:
    container = {"name": "c", "resources": {"limits": {GPU: "1", MEMORY: "4000Mi"}}}
    builder = Builder().queue("q", {"default": {GPU: 100, MEMORY: 10**12}})
    builder.pending("w", "q", [pod_set({}, spec={"containers": [container]})])
    builder.world.set_node(gpu_node("n1"))
    result = cycle(builder.world)
    assert outcomes(result)["w"] == "Misconfigured"
    assert messages(result)["w"].startswith("Container c: nvidia.com/gpumem is 4000Mi:")
