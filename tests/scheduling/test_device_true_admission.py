"""Nothing is admitted that cannot be placed: a long run under fractional load, checked without the scheduler's sums.

Sizes come as often as in the openb trace: nine in twenty share a device, the others want whole ones, a few want eight.
Quota is plenty in one queue and short in the other, so that now quota decides and now the devices.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable

from scheduling.model.device import Device
from scheduling.model.node import Node
from scheduling.model.placement import PodPlacement
from scheduling.model.vocabulary import ConditionType, PendingReason
from scheduling.model.workload import PodSet
from scheduling.world import World
from tests.scheduling.world_helpers import Builder, outcomes, pod_set, preemption, settled

GPU, SHARE = "nvidia.com/gpu", "nvidia.com/gpumem-percentage"
SIZES = [(1, 100)] * 391 + [(1, 81)] * 108 + [(1, 47)] * 75 + [(1, 32)] * 33 + [(1, 65)] * 25 + [(1, 23)] * 14
SIZES += [(1, 46)] * 13 + [(8, 100)] * 4 + [(2, 100)] * 2 + [(4, 100)] * 2
NODES, DEVICES, WORKLOADS, STEPS = 12, 8, 420, 140


def a_node(number: int) -> Node:
    devices = tuple(
        Device(f"n{number}-{index}", index, "NVIDIA", "NVIDIA A100", 10, 81_920, 100, numa=index // 4)
        for index in range(DEVICES)
    )
    return Node(f"n{number:02}", allocatable={"cpu": 64_000, "memory": 2**40, "pods": 60}, devices=devices)


def asks_for(chance: random.Random) -> list[PodSet]:
    """One pod set of one to three pods, now and then with a leader of another size."""
    found = []
    for name, count in [("main", chance.choice([1, 1, 1, 2, 3])), *([("leader", 1)] if chance.random() < 0.1 else [])]:
        devices, share = chance.choice(SIZES)
        limits = {GPU: str(devices), SHARE: str(share)} if share < 100 else {GPU: str(devices)}
        cpu = str(chance.choice([1, 4, 8]))
        container = {"name": "c", "resources": {"limits": limits, "requests": {"cpu": cpu}}}
        found.append(pod_set({}, count=count, name=name, spec={"containers": [container]}))
    return found


def admitted_pods(world: World, names: Iterable[str]) -> dict[str, tuple[PodPlacement, ...]]:
    """The pods of every workload that holds quota, by name."""
    found = {}
    for name in names:
        workload = world.workload(f"team/{name}")
        if workload is not None and workload.is_true(ConditionType.QUOTA_RESERVED):
            found[name] = workload.placement.pods if workload.placement is not None else ()
    return found


def unplaceable(world: World, names: Iterable[str]) -> list[str]:
    """Admitted workloads that lack a place, or lie on a device or a node that is fuller than full."""
    pods = admitted_pods(world, names)
    memory: dict[str, int] = defaultdict(int)
    cores: dict[str, int] = defaultdict(int)
    slots: dict[str, int] = defaultdict(int)
    cpu: dict[str, int] = defaultdict(int)
    for placed in pods.values():
        for pod in placed:
            cpu[pod.node] += pod.requests["cpu"]
            for part in pod.slices:
                memory[part.uuid] += part.memory_mib
                cores[part.uuid] += part.cores_percent
                slots[part.uuid] += 1
    wrong = []
    for name, placed in pods.items():
        workload = world.workload(f"team/{name}")
        assert workload is not None
        whole = len(placed) == sum(each.count for each in workload.pod_sets)
        held = all(pod.slices and cpu[pod.node] <= 64_000 for pod in placed)
        fits = all(
            memory[part.uuid] <= 81_920 and cores[part.uuid] <= 100 and slots[part.uuid] <= 10
            for pod in placed
            for part in pod.slices
        )
        if not (whole and held and fits):
            wrong.append(name)
    return wrong


def test_no_workload_is_admitted_that_cannot_be_placed() -> None:
    chance = random.Random(7)
    builder = Builder()
    quota = {GPU: 10_000, SHARE: 1_000_000, "cpu": 100_000}
    builder.queue("plenty", {"default": quota}, cohort="all")
    short = {GPU: 40, SHARE: 1_000_000, "cpu": 100_000}
    builder.queue(
        "short", {"default": short}, cohort="all", preemption=preemption("LowerPriority"), preempt_for_devices=True
    )
    for number in range(NODES):
        builder.world.set_node(a_node(number))
    world = builder.world
    waiting_for_devices: set[str] = set()
    admitted_ever: set[str] = set()
    preempted = 0
    names = [f"w{number}" for number in range(WORKLOADS)]
    arriving = iter(names)
    for step in range(STEPS):
        now = 10.0 * step
        for name in [next(arriving, None) for _ in range(3)]:
            if name is not None:
                queue = chance.choice(["plenty", "plenty", "short"])
                builder.pending(name, queue, asks_for(chance), priority=chance.choice([0, 0, 10]), at=now, now=now)
        if step == STEPS // 2:
            world.delete_node("n03")
            world.set_node(a_node(3))
        for result in settled(world, now):
            preempted += len(result.preemptions)
            waiting_for_devices |= {
                name for name, reason in outcomes(result).items() if reason == PendingReason.WAITING_FOR_DEVICES
            }
        running = admitted_pods(world, names)
        admitted_ever |= running.keys()
        assert unplaceable(world, names) == []
        for name in chance.sample(sorted(running), k=min(len(running), chance.choice([0, 1, 2]))):
            world.finish_workload(f"team/{name}", now)
    assert len(admitted_ever) > 150
    assert len(waiting_for_devices) > 50
    assert preempted > 0
