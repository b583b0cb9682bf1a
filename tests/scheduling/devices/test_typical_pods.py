"""Typical pods: which shapes are typical, and that the workloads that are known decide it, whatever came before."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.devices.policies.typical_pods import PodShape, pod_shape, rounded_count, typical_pods
from scheduling.model.placement import DeviceConstraints
from scheduling.model.vendor import NVIDIA
from scheduling.world import World
from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.fleet_helpers import ask, pod, pod_set
from tests.scheduling.world_helpers import Builder, settled

SHARE = PodShape(1000, ask(1, 3000))
WHOLE = PodShape(2000, ask(1, 10_000))
PAIR = PodShape(0, ask(2, 10_000))
NO_DEVICE = PodShape(1000)


def test_the_most_frequent_up_to_the_coverage() -> None:
    found = typical_pods([SHARE] * 60 + [WHOLE] * 30 + [PAIR] * 6 + [NO_DEVICE] * 4)
    assert [(task.shape, round(task.share, 4)) for task in found] == [(SHARE, 0.625), (WHOLE, 0.3125), (PAIR, 0.0625)]
    assert typical_pods([]) == ()


def test_equal_counts_are_not_ordered_by_arrival() -> None:
    assert typical_pods([SHARE, WHOLE, PAIR, NO_DEVICE], 0.5) == typical_pods([NO_DEVICE, PAIR, WHOLE, SHARE], 0.5)


def test_a_pod_set_s_shape_is_its_largest_request() -> None:
    shaped = pod_shape(pod_set(pod(ask(1, 100), ask(2, 50)), requests={"cpu": 7, "memory": 1}))
    assert shaped == PodShape(7, ask(2, 50), DeviceConstraints())
    assert pod_shape(pod_set(pod(None))) == PodShape(0)


@pytest.mark.parametrize(
    ("count", "rounded"),
    [(1, 1), (2, 2), (3, 3), (4, 4), (5, 6), (7, 8), (9, 8), (10, 12), (100, 96), (113, 128)],
)
def test_counts_are_rounded_to_two_binary_digits(count: int, rounded: int) -> None:
    assert rounded_count(count) == rounded


def typical(world: World) -> dict[int, float]:
    """Memory in MiB -> share of the pods."""
    tasks = world.typical_pods()
    return {task.shape.request.memory_mib: task.share for task in tasks if task.shape.request is not None}


class TestOfWorkloads:
    def builder(self) -> Builder:
        builder = Builder().queue("q", {"default": PLENTY})
        builder.world.set_node(gpu_node("n1"))
        return builder

    def test_they_follow_what_comes_and_goes(self) -> None:
        builder = self.builder()
        assert typical(builder.world) == {}
        builder.pending("a", "q", [gpus(memory_mib=1000)]).pending("b", "q", [gpus(memory_mib=2000)])
        assert typical(builder.world) == {1000: 0.5, 2000: 0.5}
        builder.pending("c", "q", [gpus(memory_mib=2000)])
        assert typical(builder.world) == pytest.approx({1000: 1 / 3, 2000: 2 / 3})
        builder.world.delete_workload("team/a")
        assert typical(builder.world) == {2000: 1.0}

    def test_whether_they_run_or_wait_does_not_matter(self) -> None:
        builder = self.builder().pending("a", "q", [gpus(memory_mib=1000)])
        before = builder.world.typical_pods()
        settled(builder.world)
        assert builder.world.typical_pods() is before

    def test_an_undone_arrival_is_gone(self) -> None:
        builder = self.builder().pending("a", "q", [gpus(memory_mib=1000)])
        before = typical(builder.world)
        point = builder.world.savepoint()
        builder.pending("b", "q", [gpus(memory_mib=2000)])
        assert typical(builder.world) != before
        builder.world.undo(point)
        assert typical(builder.world) == before

    def test_other_vendors_read_the_requests_anew(self) -> None:
        builder = self.builder().pending("a", "q", [gpus(memory_mib=1000)])
        assert typical(builder.world) == {1000: 1.0}
        builder.world.set_vendors(())
        assert typical(builder.world) == {}
        builder.world.set_vendors((NVIDIA,))
        assert typical(builder.world) == {1000: 1.0}

    @given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([0, 1000, 2000])), max_size=20), st.booleans())
    def test_history_leaves_no_trace(self, steps: list[tuple[int, int]], look: bool) -> None:
        builder, there = self.builder(), dict[str, int]()
        for number, memory in steps:
            name = f"w{number}"
            if there.pop(name, 0):
                builder.world.delete_workload(f"team/{name}")
            if memory:
                builder.pending(name, "q", [gpus(memory_mib=memory)])
                there[name] = memory
            if look:
                typical(builder.world)
        fresh = self.builder()
        for name, memory in sorted(there.items()):
            fresh.pending(name, "q", [gpus(memory_mib=memory)])
        vendors = builder.world._state.vendors
        assert builder.world._state.workloads.typical_pods(vendors) == fresh.world._state.workloads.typical_pods(
            vendors
        )
