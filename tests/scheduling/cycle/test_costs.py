"""How often a cycle does what costs most, as counts: they are the same on every machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from cProfile import Profile
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.vocabulary import ConditionType
from tests.scheduling.world_helpers import Builder, admissions, cycle, preemption, preemptions, settled

GPU, MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"
QUEUES = 20


def calls(work: Callable[[], Any]) -> tuple[Any, Counter[tuple[str, str]]]:
    """Return the result of the work, and how often it called each function, by the names of module and function."""
    profile = Profile()
    found = profile.runcall(work)
    counted: Counter[tuple[str, str]] = Counter()
    for entry in profile.getstats():
        if isinstance(entry.code, CodeType):  # a function of C has its name only
            counted[Path(entry.code.co_filename).stem, entry.code.co_name] += entry.callcount
    return found, counted


def node(name: str, gpu: str, devices: int, memory_mib: int) -> Node:
    return Node(
        name,
        labels={"gpu": gpu},
        allocatable={"cpu": 64_000, "memory": 2**40, "pods": 110},
        devices=tuple(
            Device(f"{name}-{number}", number, "NVIDIA", "NVIDIA-A100", 10, memory_mib, 100)
            for number in range(devices)
        ),
    )


def builder() -> Builder:
    """Queues of their own with quota in two flavors; the devices of the first are too small for their workloads."""
    made = Builder().flavor("small", node_labels={"gpu": "small"}).flavor("large", node_labels={"gpu": "large"})
    made.world.set_node(node("n1", "small", QUEUES, 1000))
    made.world.set_node(node("n2", "large", QUEUES, 40_000))
    for number in range(QUEUES):
        made.queue(f"q{number}", {flavor: {"cpu": 9, GPU: 9, MEMORY: 40_000} for flavor in ("small", "large")})
        limits = {"limits": {GPU: "1", MEMORY: "30000"}, "requests": {"cpu": "1"}}
        spec = {"containers": [{"name": "c", "resources": limits}]}
        made.pending(f"w{number}", f"q{number}", {"cpu": 1}, spec=spec)
    return made


def test_equal_workloads_are_searched_for_once_per_change_of_a_node() -> None:
    world = builder().world
    result, counted = calls(lambda: cycle(world))
    assert len(admissions(result)) == QUEUES
    nominated, found_again = 2, QUEUES - 1  # once per flavor for all; again after each admission but the last
    assert counted["fleet", "_place"] == nominated + found_again


def test_a_flavor_that_another_one_replaces_needs_no_words() -> None:
    world = builder().world
    result, counted = calls(lambda: cycle(world))
    assert len(admissions(result)) == QUEUES
    assert counted["refusals", "refusal"] == 0


@pytest.mark.parametrize("borrowers", [4, 40])
def test_a_preemptor_looks_into_one_queue_however_many_borrow(borrowers: int) -> None:
    made = Builder().queue("owner", {"default": borrowers}, "all", preemption=preemption(reclaim="Any"))
    for number in range(borrowers):
        made.queue(f"b{number:02}", {"default": 0}, "all").running(f"w{number:02}", f"b{number:02}", 1)
    made.pending("back", "owner", 1)
    result, counted = calls(lambda: cycle(made.world))
    assert list(preemptions(result)) == ["w00"]
    looked_into = counted["preemption_candidates", "foreign_candidates"]
    assert looked_into <= 4  # for the oracle and for the targets; a generator is called again to continue


@pytest.mark.parametrize("owners", [10, 40])
def test_preemptors_of_one_cohort_take_each_claim_away_once(owners: int) -> None:
    """All nominate the same victim; each but the first then searches beside the claims of those before it."""
    made = Builder()
    for number in range(owners):
        made.queue(f"owner{number:02}", {"default": 1}, "all", preemption=preemption(reclaim="Any"))
        made.queue(f"b{number:02}", {"default": 0}, "all").running(f"w{number:02}", f"b{number:02}", 1)
        made.pending(f"back{number:02}", f"owner{number:02}", 1)
    result, counted = calls(lambda: cycle(made.world))
    assert len(preemptions(result)) == owners
    assert counted["what_if", "remove"] <= 10 * owners
    assert counted["preemption_candidates", "_first_of"] <= 25 * owners  # were all looked at again, 2 * owners ** 2


def test_an_admission_copies_its_workload_twice() -> None:
    """With its quota, and as admitted: a copy of all its fields is among the dearest steps of an admission."""
    made = Builder().queue("q", {"default": QUEUES})
    for number in range(QUEUES):
        made.pending(f"w{number:02}", "q", 1)

    def admit() -> list[bool]:
        settled(made.world)
        found = [made.world.workload(f"team/w{number:02}") for number in range(QUEUES)]  # a change waits for a reader
        return [workload is not None and workload.is_true(ConditionType.ADMITTED) for workload in found]

    found, counted = calls(admit)
    assert all(found)
    assert counted["dataclasses", "replace"] == 2 * QUEUES
