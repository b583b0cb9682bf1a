"""Workloads that wait are read again in pieces after a change that concerns many of them."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from scheduling.model.limit_range import LimitRange, LimitRangeItem
from scheduling.model.local_queue import LocalQueue
from scheduling.model.pod_defaults import RuntimeClass
from scheduling.model.vocabulary import StopPolicy
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, admissions

NOW = 1000.0
MANY = 450
AT_ONCE = 100


def sizes(cpu: str) -> LimitRange:
    """A request of containers that state none."""
    return LimitRange(
        "team", "sizes", (LimitRangeItem.from_manifest({"type": "Container", "defaultRequest": {"cpu": cpu}}),)
    )


def waiting(cpu: str = "1") -> World:
    """Workloads that take so much each, of which the last comes first."""
    builder = Builder().queue("q", {"default": 10})
    builder.world.set_limit_range(sizes(cpu))
    for number in range(MANY):
        builder.pending(f"w{number}", "q", {}, at=float(MANY - number), spec={"runtimeClassName": "plain"})
    return builder.world


def settle(world: World) -> list[str]:
    """Run cycles and return the workloads that each of them admits; a cycle reads a bounded number again."""
    admitted: list[str] = []
    for result in run_until_idle(world, NOW):
        assert result.read <= AT_ONCE
        admitted += admissions(result)
    return admitted


CHANGES: list[Callable[[World], object]] = [
    lambda world: world.set_limit_range(sizes("11")),
    lambda world: world.set_runtime_class(RuntimeClass("plain", {"cpu": "11"})),
    lambda world: world.delete_local_queue("team/q"),
    lambda world: world.set_local_queue(LocalQueue("team", "q", "q", stop_policy=StopPolicy.HOLD)),
]


@pytest.mark.parametrize("change", CHANGES)
def test_no_workload_is_decided_by_what_was_before_a_change(change: Callable[[World], object]) -> None:
    world = waiting()
    change(world)
    assert settle(world) == []
    assert not world.has_active()


def test_each_gets_its_new_requests() -> None:
    world = waiting("11")
    assert settle(world) == []
    world.set_limit_range(sizes("1"))
    assert settle(world) == [f"w{MANY - 1 - number}" for number in range(10)]


def test_a_queue_that_comes_back_takes_all_of_its_workloads() -> None:
    world = waiting("11")
    world.delete_local_queue("team/q")
    settle(world)
    assert world.pending("q") == ()
    world.set_local_queue(LocalQueue("team", "q", "q"))
    settle(world)
    assert len(world.pending("q")) == MANY


def test_an_undone_batch_reads_them_once_more() -> None:
    world = waiting("11")
    settle(world)
    world.set_limit_range(sizes("1"))
    point = world.savepoint()
    for _ in range(3):
        world.run_cycle(NOW)
    world.undo(point)
    assert settle(world) == [f"w{MANY - 1 - number}" for number in range(10)]


def test_a_workload_that_changes_in_between_is_woken_like_the_others() -> None:
    world = waiting("11")
    settle(world)
    world.set_limit_range(sizes("1"))
    last = world.workload(f"team/w{MANY - 1}")
    assert last is not None
    world.set_workload(last, NOW)
    assert settle(world)[0] == f"w{MANY - 1}"


def test_an_explanation_is_of_the_new_requests() -> None:
    world = waiting("11")
    settle(world)
    world.set_limit_range(sizes("12"))
    assert "12" in str(world.explain("team/w7"))
