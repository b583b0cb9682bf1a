"""Why a workload waits, and what would let it in, in words."""

from __future__ import annotations

import pytest

from tests.scheduling.device_worlds import PLENTY, gpu_node, gpus
from tests.scheduling.world_helpers import Builder, Requests, cycle, messages, pod_set, preemption


def why(builder: Builder, name: str = "w") -> str:
    """What a waiting workload is told after a cycle."""
    cycle(builder.world)
    return builder.world.why_pending(f"team/{name}")


def test_every_flavor_that_was_tried_is_named() -> None:
    builder = Builder().flavor("arm", node_labels={"arch": "arm64"})
    builder.queue("q", {"arm": 9, "full": 2, "small": 1}).running("r", "q", 2, "full")
    text = why(builder.pending("w", "q", 2, spec={"nodeSelector": {"arch": "amd64"}}))
    for flavor in ("arm", "full", "small"):
        assert flavor in text
    assert text.endswith("It starts when that much becomes free")


@pytest.mark.parametrize(
    ("requests", "ending"),
    [
        (99, "unless it asks for less or the quota, or what may be borrowed, is raised"),
        ({"gpu": 1}, "unless the ClusterQueue covers these resources or the workload does not ask for them"),
    ],
)
def test_what_can_never_start_says_what_would_have_to_change(requests: Requests, ending: str) -> None:
    builder = Builder().queue("q", {"default": 4})
    assert why(builder.pending("w", "q", requests)).endswith(ending)


def test_missing_devices() -> None:
    builder = Builder().queue("q", {"default": PLENTY})
    builder.world.set_node(gpu_node("n1"))
    text = why(builder.pending("w", "q", [gpus(memory_mib=20000)]))
    assert "n1" in text
    assert "devices that hold its pods become free" in text


def test_one_that_was_not_looked_at() -> None:
    builder = Builder().queue("q", {"default": 4})
    assert builder.pending("w", "q", 1).world.why_pending("team/w") == "it has not been looked at yet"


def test_pod_sets_that_lack_different_things_are_told_apart() -> None:
    builder = Builder().queue("q", [{"default": 4}, {"cards": {"gpu": 1}}])
    sets = [pod_set({"cpu": 1, "gpu": 2}, name="first"), pod_set(9, name="second")]
    cycle(builder.pending("w", "q", sets).world)
    assert "gpu in flavor cards: 2 asked for, at most 1" in builder.world.why_pending("team/w")


def test_a_preemptor_says_for_how_many_it_waits() -> None:
    builder = Builder().queue("q", {"default": 4}, preemption=preemption(within="LowerPriority"))
    builder.running("a", "q", 2).running("b", "q", 2).pending("w", "q", 4, priority=1)
    assert messages(cycle(builder.world)) == {"w": "waiting for 2 preempted workload(s) to stop"}
