"""ResourceQuota of devices within admission: who waits for it, what is said, and what lets it in."""

from __future__ import annotations

from dataclasses import replace

from scheduling.devices.search.namespace_quota import NamespaceQuota
from scheduling.model.local_queue import LocalQueue
from scheduling.model.selectors import LabelSelector
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import (
    Builder,
    admissions,
    cycle,
    messages,
    outcomes,
    preemption,
    settled,
    workload,
)

MEMORY = "limits.nvidia.com/gpumem"


def quota(mib: int, name: str = "gpus") -> NamespaceQuota:
    return NamespaceQuota("team", name, {MEMORY: mib})


def a_world(mib: int = 10_000) -> Builder:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1", device_count=4))
    builder.world.set_resource_quota(quota(mib))
    return builder


def admitted(builder: Builder, now: float = 1000.0) -> list[str]:
    return [name for result in settled(builder.world, now) for name in admissions(result)]


def test_a_workload_beyond_its_namespace_s_quota_waits_and_says_so() -> None:
    builder = a_world().pending("a", "q", [gpus()], at=1.0).pending("b", "q", [gpus()], at=2.0)
    results = settled(builder.world)
    assert [name for result in results for name in admissions(result)] == ["a"]
    assert outcomes(results[-1]) == {"b": "WaitingForDevices"}
    said = messages(results[-1])["b"]
    assert "(4/4 ResourceQuotaNotFit)" in said
    assert said.endswith(
        "ResourceQuota team/gpus allows its namespace 10000 of limits.nvidia.com/gpumem: 8192 are used, and the pod "
        "requests 8192"
    )
    assert builder.world.explain("team/b").rule == "NamespaceQuota"


def test_it_starts_when_a_workload_of_the_namespace_ends() -> None:
    builder = a_world().pending("a", "q", [gpus()], at=1.0).pending("b", "q", [gpus()], at=2.0)
    assert admitted(builder) == ["a"]
    builder.world.finish_workload("team/a", 1001.0)
    assert admitted(builder) == ["b"]


def test_it_starts_when_the_quota_is_raised_or_gone() -> None:
    builder = a_world(100).pending("a", "q", [gpus()], at=1.0).pending("b", "q", [gpus()], at=2.0)
    assert admitted(builder) == []
    builder.world.set_resource_quota(quota(9000))
    assert admitted(builder) == ["a"]
    builder.world.delete_resource_quota("team/gpus")
    assert admitted(builder) == ["b"]


def test_an_unchanged_quota_wakes_no_workload() -> None:
    builder = a_world(100).pending("a", "q", [gpus()])
    assert admitted(builder) == []
    builder.world.set_resource_quota(quota(100))
    assert not builder.world.has_active()


def test_what_runs_is_left_alone_when_the_quota_shrinks() -> None:
    builder = a_world().pending("a", "q", [gpus()], at=1.0)
    assert admitted(builder) == ["a"]
    builder.world.set_resource_quota(quota(0))
    builder.pending("b", "q", [gpus(memory_mib=1)], at=2.0)
    assert admitted(builder) == []
    assert sum(builder.world.device_usage("n1", f"n1-gpu{number}")[1] for number in range(4)) == 8192


def test_a_foreign_pod_that_ends_on_a_node_of_no_flavor_frees_the_quota() -> None:
    builder = Builder().flavor("v100", node_labels={"gpu": "v100"}).queue("q", {"v100": PLENTY})
    builder.world.set_node(gpu_node("n1", gpu="v100"))
    other = gpu_node("other", gpu="a100")
    builder.world.set_node(replace(other, external_usage={("team", "NVIDIA"): (8000, 0)}))
    builder.world.set_resource_quota(quota(10_000))
    assert admitted(builder.pending("a", "q", [gpus()])) == []
    builder.world.set_node(other)
    assert admitted(builder) == ["a"]


def test_equal_workloads_of_another_namespace_do_not_wait_along() -> None:
    builder = a_world(0)
    builder.world.set_namespace("others", {})
    builder.world.set_local_queue(LocalQueue("others", "q", "q"))
    builder.pending("mine", "q", [gpus()], at=1.0)
    builder.world.set_workload(replace(workload("theirs", "q", [gpus()], at=2.0), namespace="others"), 0.0)
    results = settled(builder.world)
    assert [decision.workload for result in results for decision in result.admissions] == ["others/theirs"]


def test_equal_workloads_of_the_namespace_wait_together() -> None:
    builder = a_world(0)
    for number in range(3):
        builder.pending(f"w{number}", "q", [gpus()], at=float(number))
    (result,) = [result for result in settled(builder.world) if result.outcomes]
    assert set(outcomes(result)) == {"w0", "w1", "w2"}
    assert messages(result)["w2"].endswith("an equivalent workload was refused in this cycle")
    builder.world.delete_resource_quota("team/gpus")
    assert admitted(builder) == ["w0", "w1", "w2"]


def test_a_quota_that_comes_later_parts_the_equal() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_namespace("others", {})
    builder.world.set_local_queue(LocalQueue("others", "q", "q"))
    builder.world.set_node(gpu_node("n1"))
    large = [gpus(memory_mib=20_000)]
    builder.pending("mine", "q", large, at=1.0)
    builder.world.set_workload(replace(workload("theirs", "q", large, at=2.0), namespace="others"), 0.0)
    assert admitted(builder) == []
    builder.world.set_resource_quota(quota(0))
    builder.world.set_node(gpu_node("n1", memory_mib=32_768))
    results = settled(builder.world, 1001.0)
    assert [decision.workload for result in results for decision in result.admissions] == ["others/theirs"]


def test_quotas_outlive_another_table_of_vendors() -> None:
    builder = a_world(0).pending("a", "q", [gpus()])
    vendors = [replace(vendor, rules=vendor.rules) for vendor in builder.world._state.vendors]
    builder.world.set_vendors([replace(vendors[0], defaults=replace(vendors[0].defaults, cores_percent=1))])
    assert outcomes(cycle(builder.world)) == {"a": "WaitingForDevices"}


def test_where_devices_may_be_preempted_for_a_victim_of_the_namespace_frees_its_quota() -> None:
    builder = Builder().queue(
        "q",
        {"default": PLENTY},
        preemption=preemption(within="LowerPriority"),
        preempt_for_devices=True,
        namespace_selector=LabelSelector(),
    )
    builder.world.set_node(gpu_node("n1", device_count=4))
    builder.world.set_resource_quota(quota(10_000))
    builder.pending("low", "q", [gpus()])
    assert admitted(builder) == ["low"]
    builder.pending("high", "q", [gpus()], priority=10, at=5.0)
    results = settled(builder.world, 1001.0)
    assert [p.workload for result in results for p in result.preemptions] == ["team/low"]
    assert "high" in [name for result in results for name in admissions(result)]
