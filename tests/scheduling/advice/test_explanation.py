"""Why a workload waits, as data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from scheduling.advice.explanation import Explanation
from scheduling.model.device import DeviceSlice
from scheduling.model.placement import RefusedBy
from scheduling.model.selectors import Taint, TaintEffect
from scheduling.model.workload import PodSet
from tests.scheduling.device_worlds import GPU, MEMORY, PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import Builder, Requests, cycle, messages, pod_set, preemption

UNREACHABLE = Taint("node.kubernetes.io/unreachable", "", TaintEffect.NO_EXECUTE)


def why(builder: Builder, name: str = "w") -> Explanation:
    """What holds of a waiting workload after a cycle."""
    cycle(builder.world)
    return builder.world.explain(f"team/{name}")


def test_each_flavor_says_what_is_asked_free_and_lacking() -> None:
    builder = Builder().flavor("arm", node_labels={"arch": "arm64"})
    builder.queue("q", {"arm": 9, "full": 2, "small": 1}).running("r", "q", 2, "full")
    found = why(builder.pending("w", "q", 2, spec={"nodeSelector": {"arch": "amd64"}}))
    assert [(verdict.flavor, verdict.rule) for verdict in found.flavors] == [
        ("arm", "FlavorMatch"),
        ("full", "Quota"),
        ("small", "MaximumQuota"),
    ]
    (need,) = found.flavors[1].resources
    assert (need.resource, need.asked, need.nominal, need.used) == ("cpu", 2000, 2000, 2000)
    assert (need.free, need.lacking, need.borrowable, need.maximum) == (0, 2000, 0, 2000)
    assert (found.state, found.rule, found.reason) == ("Waits", "Quota", "WaitingForQuota")
    assert found.remedy == "It starts when the missing quota becomes free."


def test_borrowable_quota_counts_as_free_and_is_shown_separately() -> None:
    builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
    (verdict,) = why(builder.running("r", "b", 1).pending("w", "a", 9)).flavors
    (need,) = verdict.resources
    assert (need.nominal, need.free, need.borrowable, need.maximum) == (4000, 7000, 3000, 8000)
    assert (need.lacking, verdict.rule) == (2000, "MaximumQuota")


@pytest.mark.parametrize(
    ("requests", "rule", "remedy"),
    [
        (99, "MaximumQuota", "unless it requests less, or the quota or the borrowing limit is raised."),
        ({"gpu": 1}, "CoveredResources", "unless the ClusterQueue covers these resources"),
    ],
)
def test_what_can_never_start_is_a_state_of_its_own(requests: Requests, rule: str, remedy: str) -> None:
    found = why(Builder().queue("q", {"default": 4}).pending("w", "q", requests))
    assert (found.state, found.rule) == ("CannotStart", rule)
    assert remedy in found.remedy


def test_holders_of_missing_resources_are_listed() -> None:
    builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all")
    builder.running("r", "b", 5).running("s", "b", 2).pending("w", "a", 3)
    found = why(builder)
    (queue,) = found.queue_holders
    assert (queue.cluster_queue, queue.used, queue.nominal, queue.borrowed) == ("b", 7000, 4000, 3000)
    assert [(holder.workload, holder.amount) for holder in found.workload_holders] == [
        ("team/r", 5000),
        ("team/s", 2000),
    ]


def test_workloads_ahead_in_the_queue_and_in_the_cohort() -> None:
    builder = Builder().queue("a", {"default": 4}, "all", strict=True)
    builder.queue("b", {"default": 4}, "all").running("r", "b", 4)
    for name, queue, priority in (("first", "a", 5), ("w", "a", 0), ("rival", "b", 9), ("late", "b", 0)):
        builder.pending(name, queue, 5, priority=priority)
    found = why(builder)
    assert (found.position, found.waiting, found.strict) == (2, 2, True)
    assert [other.workload for other in found.ahead] == ["team/first"]
    assert [other.workload for other in found.contenders] == ["team/rival"]


def test_nodes_and_devices_are_counted_by_the_filter_that_refuses_them() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    builder.world.set_node(replace(gpu_node("n2"), ready=False))
    found = why(builder.pending("w", "q", [gpus(memory_mib=20000)]))
    (verdict,) = found.flavors
    assert (found.rule, verdict.rule) == ("Devices", "Devices")
    assert verdict.nodes is not None
    devices = len(gpu_node("n1").devices)
    assert set(verdict.nodes.refused) == {
        RefusedBy("CardInsufficientMemory", 1, devices),
        RefusedBy("NodeNotReady", 1),
    }
    assert (verdict.nodes.nodes, verdict.nodes.nearest_node) == (2, "n1")


@pytest.mark.parametrize(
    ("asked", "state"),
    [
        (gpus(memory_mib=20_000), "CannotStart"),
        (gpus(count=3), "CannotStart"),
        (gpus(memory_mib=16_384, pods=5), "CannotStart"),
        (gpus(memory_mib=16_384, pods=5, min_count=4), "Waits"),
        (gpus(memory_mib=16_384, pods=4), "Waits"),
    ],
)
def test_a_request_that_exceeds_empty_nodes_can_never_start(asked: PodSet, state: str) -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(replace(gpu_node("n1", 2), unschedulable=True, taints=(UNREACHABLE,)))
    foreign = DeviceSlice("n2-gpu0", "n2", 16_384, 100)
    builder.world.set_node(replace(gpu_node("n2", 2), found=(foreign,), foreign_usage={"cpu": 64_000}))
    found = why(builder.pending("w", "q", [asked]))
    assert (found.state, found.rule) == (state, "Devices")
    assert ("even if they were empty" in found.remedy) == (state == "CannotStart")


def test_it_may_start_if_nodes_of_one_of_its_flavors_would_take_it() -> None:
    builder = Builder().flavor("small", node_labels={"size": "s"}).flavor("large", node_labels={"size": "l"})
    builder.queue("q", {"small": PLENTY, "large": {**PLENTY, GPU: 1}}).running("r", "q", [gpus()], "large")
    builder.world.set_node(gpu_node("n1", 1, size="s"))
    builder.world.set_node(gpu_node("n2", 1, 40_000, size="l"))
    assert why(builder.pending("w", "q", [gpus(memory_mib=40_000)])).state == "Waits"


def test_the_flavors_of_all_its_resource_groups_select_the_nodes_together() -> None:
    builder = Builder().flavor("any").flavor("small", node_labels={"size": "s"})
    builder.queue("q", [{"any": {"cpu": 100}}, {"small": PLENTY}])
    builder.world.set_node(gpu_node("n1", 1, size="s"))
    builder.world.set_node(gpu_node("n2", 4, size="l"))
    limits = {"limits": {"cpu": "1", GPU: "2", MEMORY: "100"}}
    asked = pod_set({}, spec={"containers": [{"name": "c", "resources": limits}]})
    assert why(builder.pending("w", "q", [asked])).state == "CannotStart"


def test_one_that_was_not_looked_at_is_explained_before_its_first_cycle() -> None:
    builder = Builder().queue("q", {"default": 4})
    found = builder.pending("w", "q", 1).world.explain("team/w")
    assert (found.state, found.rule, found.position) == ("FitsNow", "QueueOrder", 1)


def test_pod_sets_that_share_a_flavor_count_together() -> None:
    builder = Builder().queue("q", {"default": 5})
    first, second = why(builder.pending("w", "q", [pod_set(3, name="first"), pod_set(3, name="second")])).flavors
    assert (first.pod_sets, first.rule, first.resources[0].lacking) == (("first",), "None", 0)
    assert (second.pod_sets, second.resources[0].free, second.resources[0].lacking) == (("second",), 2000, 1000)


def test_pod_sets_with_different_shortages_are_listed_separately() -> None:
    builder = Builder().queue("q", [{"default": 4}, {"devices": {"gpu": 1}}])
    found = why(builder.pending("w", "q", [pod_set({"cpu": 1, "gpu": 2}, name="first"), pod_set(9, name="second")]))
    lacking = {(v.flavor, n.resource): n.lacking for v in found.flavors if "first" in v.pod_sets for n in v.resources}
    assert lacking == {("default", "cpu"): 0, ("devices", "gpu"): 1}


def test_a_preemptor_names_its_victims() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("a", "q", 2).running("b", "q", 2).pending("w", "q", 4, priority=1)
    found = builder.world.explain("team/w")
    assert found.state == "Preempts"
    assert sorted(victim.workload for victim in found.victims) == ["team/a", "team/b"]
    assert messages(cycle(builder.world)) == {"w": "waiting for 2 preempted workload(s) to stop"}


def test_asking_changes_nothing() -> None:
    builder = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all").running("r", "b", 7)
    twin = Builder().queue("a", {"default": 4}, "all").queue("b", {"default": 4}, "all").running("r", "b", 7)
    for each in (builder, twin):
        each.pending("w", "a", 3).pending("x", "a", 1)
    assert builder.world.explain("team/w") == builder.world.explain("team/w")
    assert cycle(builder.world) == cycle(twin.world)
