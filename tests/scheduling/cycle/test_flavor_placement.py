"""Topology and devices together: pods go to leaves whose devices hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from scheduling.model.decisions import CycleResult
from scheduling.model.node import Node
from scheduling.model.selectors import HOSTNAME_LABEL
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import ConditionType
from scheduling.world import World
from tests.scheduling.device_worlds import GPU, MEMORY, PLENTY, RACK, gpu_racks, gpus, rack_node
from tests.scheduling.topology_helpers import domains
from tests.scheduling.world_helpers import Builder, cycle, messages, outcomes, preemption

PREFERRED_HOST = {"preferred": HOSTNAME_LABEL}
REQUIRED_RACK = {"required": RACK}


def places(world: World, name: str) -> dict[str, dict[str, int]]:
    """Pod set -> host -> pods, the same in the topology assignment and in the placement."""
    workload = world.workload(f"team/{name}")
    assert workload is not None
    assert workload.admission is not None
    assert workload.placement is not None
    found: dict[str, dict[str, int]] = {}
    for assignment in workload.admission.pod_set_assignments:
        assert assignment.topology_assignment is not None
        found[assignment.name] = domains(assignment.topology_assignment)
        placed: dict[str, int] = {}
        for pod in workload.placement.pods_of(assignment.name):
            placed[pod.node] = placed.get(pod.node, 0) + 1
        assert placed == found[assignment.name]
    return found


def admitted(builder: Builder, name: str, pod_sets: list[Any], **fields: Any) -> dict[str, dict[str, int]]:
    """Submit, run a cycle, and say where the pods went."""
    builder.pending(name, "q", pod_sets, **fields)
    cycle(builder.world)
    return places(builder.world, name)


def waits(builder: Builder, name: str, pod_sets: list[Any], **fields: Any) -> CycleResult:
    """Submit and run a cycle, which does not admit it."""
    builder.pending(name, "q", pod_sets, **fields)
    result = cycle(builder.world)
    assert result.admissions == ()
    return result


def test_device_memory_decides_how_many_pods_a_leaf_takes() -> None:
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r0"), rack_node("c", "r1"))
    found = admitted(builder, "w", [gpus(memory_mib=8_000, pods=4, topology=PREFERRED_HOST)])
    assert found == {"main": {"a": 2, "b": 2}}


def test_the_leaf_with_room_on_its_devices_is_taken_though_slots_are_free_elsewhere() -> None:
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r0"))
    assert admitted(builder, "first", [gpus(memory_mib=12_000)]) == {"main": {"a": 1}}
    assert admitted(builder, "second", [gpus(memory_mib=12_000)]) == {"main": {"b": 1}}
    assert admitted(builder, "third", [gpus(memory_mib=4_000)]) == {"main": {"a": 1}}


def test_a_required_rack_without_the_memory_waits_for_devices() -> None:
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r1"))
    result = waits(builder, "w", [gpus(memory_mib=9_000, pods=2, topology=REQUIRED_RACK)])
    assert outcomes(result) == {"w": "WaitingForDevices"}
    assert 'topology "racks" has room for 1 of 2 pods in one domain of "rack"' in messages(result)["w"]
    builder.world.set_node(rack_node("d", "r1"))
    cycle(builder.world)
    assert places(builder.world, "w") == {"main": {"b": 1, "d": 1}}


def test_leaves_that_the_bound_took_for_larger_are_chosen_around() -> None:
    """Two devices at once from each of two, one of them half full: the bound says two pods, the search finds one."""
    builder = gpu_racks(
        rack_node("a", "r0", device_count=2), rack_node("b", "r1", device_count=2), rack_node("c", "r1", device_count=2)
    )
    assert admitted(builder, "small", [gpus(memory_mib=8_000)]) == {"main": {"a": 1}}
    found = admitted(builder, "pairs", [gpus(count=2, memory_mib=4_000, pods=9, topology=PREFERRED_HOST)])
    assert sum(found["main"].values()) == 9
    assert found["main"]["a"] <= 3


def test_leader_and_workers_share_the_devices_of_a_rack() -> None:
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r0"), rack_node("c", "r1"))
    group = {"required": RACK, "podSetGroupName": "g"}
    pod_sets = [
        gpus(memory_mib=4_000, name="leader", topology=group),
        gpus(memory_mib=8_000, pods=3, name="workers", topology=group),
    ]
    found = admitted(builder, "w", pod_sets)
    assert sum(found["workers"].values()) == 3
    assert set(found["leader"]) | set(found["workers"]) == {"a", "b"}


def test_full_devices_preempt_only_where_the_queue_says_so() -> None:
    for preempts in (False, True):
        builder = gpu_racks(
            rack_node("a", "r0"),
            rack_node("b", "r1"),
            preemption=preemption(within="LowerPriority"),
            preempt_for_devices=preempts,
        )
        pair = [gpus(memory_mib=12_000, pods=2, topology=PREFERRED_HOST)]
        assert admitted(builder, "low", pair) == {"main": {"a": 1, "b": 1}}
        result = waits(builder, "high", [gpus(memory_mib=12_000, topology=REQUIRED_RACK)], priority=10)
        assert [p.workload for p in result.preemptions] == (["team/low"] if preempts else [])


def test_without_registered_devices_the_nodes_amounts_decide() -> None:
    bare = Node("a", {RACK: "r0", HOSTNAME_LABEL: "a"}, allocatable={"pods": 110, GPU: 2})
    result = waits(gpu_racks(bare), "w", [gpus(memory_mib=4_000)])
    assert outcomes(result) == {"w": "TopologyPlacementFailed"}
    builder = gpu_racks(Node("a", bare.labels, allocatable={"pods": 110, GPU: 2, MEMORY: 8_000}))
    builder.pending("w", "q", [gpus(memory_mib=4_000, pods=2)])
    cycle(builder.world)
    workload = builder.world.workload("team/w")
    assert workload is not None
    assert workload.is_true(ConditionType.ADMITTED)
    assert workload.placement is None


def fail(builder: Builder, name: str, host: str) -> CycleResult:
    """The node is gone, the workload is told, and a cycle runs."""
    workload = builder.world.workload(f"team/{name}")
    assert workload is not None
    builder.world.delete_node(host)
    builder.world.set_workload(replace(workload, unhealthy_nodes=(host,)), 0.0)
    return cycle(builder.world)


def held(builder: Builder, name: str) -> dict[int, tuple[str, str]]:
    """Replica -> its node and its device."""
    workload = builder.world.workload(f"team/{name}")
    assert workload is not None
    assert workload.placement is not None
    return {pod.replica: (pod.node, pod.slices[0].uuid) for pod in workload.placement.pods}


def test_pods_of_a_failed_node_get_other_devices_and_keep_their_numbers() -> None:
    builder = gpu_racks(*(rack_node(name, "r0") for name in "abc"))
    pods = [gpus(memory_mib=8_000, pods=4, topology=PREFERRED_HOST)]
    assert admitted(builder, "w", pods) == {"main": {"a": 2, "b": 2}}
    point = builder.world.savepoint()
    result = fail_without_undo(builder, "w", "a")
    assert [r.node for r in result.replacements] == ["a"]
    assert held(builder, "w") == {0: ("c", "c-0"), 1: ("c", "c-0"), 2: ("b", "b-0"), 3: ("b", "b-0")}
    assert places(builder.world, "w") == {"main": {"b": 2, "c": 2}}
    assert builder.world.device_usage("c", "c-0") == (2, 16_000, 0)
    builder.world.undo(point)
    assert places(builder.world, "w") == {"main": {"a": 2, "b": 2}}
    assert builder.world.device_usage("c", "c-0") == (0, 0, 0)


def fail_without_undo(builder: Builder, name: str, host: str) -> CycleResult:
    """As `fail`, while the node only stops being mentioned: nodes must not change while a batch may be undone."""
    workload = builder.world.workload(f"team/{name}")
    assert workload is not None
    builder.world.set_workload(replace(workload, unhealthy_nodes=(host,)), 0.0)
    return cycle(builder.world)


def test_t73_devices_that_a_failed_nodes_pods_leave_are_free_after_the_cycle() -> None:
    """The node is Ready again already, and another workload gets its device in the next cycle only."""
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r0"))
    pods = [gpus(memory_mib=12_000, topology=REQUIRED_RACK)]
    assert admitted(builder, "w", pods) == {"main": {"a": 1}}
    builder.pending("next", "q", pods)
    result = fail_without_undo(builder, "w", "a")
    assert [r.node for r in result.replacements] == ["a"]
    assert held(builder, "w") == {0: ("b", "b-0")}
    assert result.admissions == ()
    assert builder.world.device_usage("a", "a-0") == (0, 0, 0)
    assert builder.world.has_active(), "the room is news for those that wait"
    assert [a.workload for a in cycle(builder.world).admissions] == ["team/next"]
    assert held(builder, "next") == {0: ("a", "a-0")}


def test_without_devices_elsewhere_the_workload_is_evicted() -> None:
    builder = gpu_racks(rack_node("a", "r0"), rack_node("b", "r0", memory_mib=4_000))
    assert admitted(builder, "w", [gpus(memory_mib=12_000)]) == {"main": {"a": 1}}
    result = fail(builder, "w", "a")
    assert [(e.workload, e.reason) for e in result.evictions] == [("team/w", "NodeFailures")]
    assert "no replacement for the failed node a" in result.evictions[0].message


def test_pods_stay_in_their_rack_where_leaves_are_racks() -> None:
    builder = Builder().flavor("tas", topology_name="racks")
    builder.world.set_topology(Topology("racks", (RACK,)))
    builder.queue("q", {"tas": PLENTY})
    for node in (rack_node("a", "r0"), rack_node("b", "r0"), rack_node("c", "r1", device_count=8)):
        builder.world.set_node(node)
    builder.pending("w", "q", [gpus(memory_mib=9_000, pods=1, topology=REQUIRED_RACK)])
    cycle(builder.world)
    (host, _) = held(builder, "w")[0]
    assert host in ("a", "b")
    other = {"a": "b", "b": "a"}[host]
    result = fail(builder, "w", host)
    assert [r.node for r in result.replacements] == [host]
    assert held(builder, "w") == {0: (other, f"{other}-0")}


def test_slots_come_back_with_the_workload() -> None:
    builder = gpu_racks(rack_node("a", "r0"))
    assert admitted(builder, "first", [gpus(memory_mib=12_000)]) == {"main": {"a": 1}}
    waits(builder, "second", [gpus(memory_mib=12_000)])
    builder.world.finish_workload("team/first", 100.0)
    cycle(builder.world)
    assert places(builder.world, "second") == {"main": {"a": 1}}
