"""Nothing is admitted that cannot be placed: the openb trace through quotas and devices, until 130 % was asked for.

The trace is not part of the project: OPENB_TRACES names the folder with `openb_node_list_gpu_node.csv` and the pod
lists (`tests.benchmarks.openb.protocol` says where they come from). Its pods arrive in random order, some end, and what
is admitted is counted on devices and nodes without the scheduler's own sums. Pods without a GPU are left out: they are
the cluster's to place.
"""

from __future__ import annotations

import os
import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from scheduling.model.device import Device
from scheduling.model.node import CPU, MEMORY, Node
from scheduling.model.placement import PodPlacement
from scheduling.model.vocabulary import ConditionType, PendingReason
from scheduling.world import World
from tests.benchmarks.openb.protocol import MILLI, SLOTS, TraceNode, TracePod, arrivals, read_nodes, read_pods
from tests.scheduling.world_helpers import Builder, outcomes, preemption, settled

TRACES = os.environ.get("OPENB_TRACES", "")
GPU, GPU_MEMORY = "nvidia.com/gpu", "nvidia.com/gpumem"
STEPS, STEPS_AFTER = 25, 3
ENDING = 0.01
"""The share of the running workloads that end in each step."""

pytestmark = pytest.mark.skipif(not TRACES, reason="OPENB_TRACES names no folder with the openb trace")


def as_node(node: TraceNode) -> Node:
    """A thousandth of a device is a MiB of a device of 1,000 MiB."""
    devices = tuple(
        Device(f"{node.name}-{index}", index, "NVIDIA", node.model, SLOTS, MILLI, 100) for index in range(node.gpus)
    )
    return Node(node.name, allocatable={CPU: node.cpu_milli, MEMORY: node.memory_mib * 2**20}, devices=devices)


def make_queues(capacity: int) -> Builder:
    """One queue has more quota than there are GPUs, another a tenth of them and preempts, the third a twentieth."""
    builder = Builder()

    def quota(gpus: int) -> dict[str, dict[str, int]]:
        return {"default": {GPU: gpus, GPU_MEMORY: 10**9, "cpu": 10**9, "memory": 2**60}}

    builder.queue("plenty", quota(100 * capacity))
    policy = preemption("LowerPriority")
    builder.queue("short", quota(capacity // 10), "all", preemption=policy, preempt_for_devices=True)
    builder.queue("small", quota(capacity // 20), "all")
    return builder


def submit(builder: Builder, name: str, pod: TracePod, chance: random.Random, now: float) -> None:
    limits = {GPU: str(pod.gpus), GPU_MEMORY: str(pod.gpu_milli)}
    requests = {"cpu": f"{pod.cpu_milli}m", "memory": f"{pod.memory_mib}Mi"}
    spec = {"containers": [{"name": "c", "resources": {"limits": limits, "requests": requests}}]}
    queue = chance.choices(["plenty", "short", "small"], [16, 3, 1])[0]
    annotations = {"nvidia.com/use-gputype": ",".join(pod.models)} if pod.models else {}
    priority = chance.choice([0, 0, 0, 10])
    builder.pending(name, queue, {}, spec=spec, annotations=annotations, priority=priority, at=now, now=now)


def running(world: World, names: Iterable[str]) -> dict[str, tuple[PodPlacement, ...]]:
    """The pods of every workload that holds quota."""
    found = {}
    for name in names:
        workload = world.workload(f"team/{name}")
        if workload is not None and workload.is_true(ConditionType.QUOTA_RESERVED):
            found[name] = workload.placement.pods if workload.placement is not None else ()
    return found


def unplaceable(
    admitted: Mapping[str, tuple[PodPlacement, ...]], asked: Mapping[str, TracePod], nodes: Mapping[str, TraceNode]
) -> list[str]:
    """Admitted workloads without the devices that they asked for, or on a device or node that is fuller than full."""
    devices: Counter[str] = Counter()
    slots: Counter[str] = Counter()
    load: dict[str, Counter[str]] = defaultdict(Counter)
    for name, pods in admitted.items():
        for pod in pods:
            load[pod.node].update({CPU: asked[name].cpu_milli, MEMORY: asked[name].memory_mib})
            for part in pod.slices:
                devices[part.uuid] += asked[name].gpu_milli
                slots[part.uuid] += 1
    wrong = []
    for name, pods in admitted.items():
        wanted = asked[name]
        fits = len(pods) == 1 and len({part.uuid for part in pods[0].slices}) == wanted.gpus
        for pod in pods:
            node = nodes[pod.node]
            fits &= load[pod.node][CPU] <= node.cpu_milli and load[pod.node][MEMORY] <= node.memory_mib
            fits &= not wanted.models or any(model in node.model for model in wanted.models)
            fits &= all(part.uuid.rpartition("-")[0] == pod.node for part in pod.slices)
            fits &= all(devices[part.uuid] <= MILLI and slots[part.uuid] <= SLOTS for part in pod.slices)
        if not fits:
            wrong.append(name)
    return wrong


@pytest.mark.parametrize("trace", ["default", "gpushare40"])
def test_no_workload_of_the_trace_is_admitted_that_cannot_be_placed(
    trace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(42)
    folder = Path(TRACES)
    nodes = {node.name: node for node in read_nodes(folder / "openb_node_list_gpu_node.csv")}
    pods = [pod for pod in read_pods(folder / f"openb_pod_list_{trace}.csv") if pod.gpus]
    capacity = sum(node.gpus for node in nodes.values())
    builder = make_queues(capacity)
    world = builder.world
    for node in nodes.values():
        world.set_node(as_node(node))
    asked = {f"w{number}": pod for number, pod in enumerate(arrivals(pods, MILLI * capacity, chance))}
    arriving = list(asked)
    admitted_ever: set[str] = set()
    reasons: dict[str, set[str]] = defaultdict(set)
    checked = most = preempted = 0
    for step in range(STEPS + STEPS_AFTER):
        now = 10.0 * step
        for name in arriving[step * len(asked) // STEPS : (step + 1) * len(asked) // STEPS]:
            submit(builder, name, asked[name], chance, now)
        for result in settled(world, now):
            preempted += len(result.preemptions)
            for name, reason in outcomes(result).items():
                reasons[reason].add(name)
        admitted = running(world, asked)
        assert unplaceable(admitted, asked, nodes) == []
        checked += len(admitted)
        admitted_ever |= admitted.keys()
        most = max(most, sum(asked[name].demand_milli for name in admitted))
        for name in chance.sample(sorted(admitted), k=int(ENDING * len(admitted))):
            world.finish_workload(f"team/{name}", now)
    waited = reasons[PendingReason.WAITING_FOR_DEVICES]
    with capsys.disabled():
        sys.stdout.write(
            f"\n{trace}: {len(asked)} workloads, {len(nodes)} nodes, {capacity} GPUs, at most "
            f"{most / MILLI / capacity:.1%} given away; {len(admitted_ever)} admitted, {preempted} preempted, "
            f"{len(waited)} had quota but no devices, {len(reasons[PendingReason.WAITING_FOR_QUOTA])} no quota; "
            f"{checked} placements checked, 0 impossible\n"
        )
    assert len(admitted_ever) > len(asked) / 2
    assert len(waited) > 100
