"""Alibaba's openb GPU trace, and the published protocol that compares placement policies on it.

The protocol is that of "Beware of Fragmentation" (USENIX ATC '23): an empty cluster of the GPU nodes, the trace's pods
in random order and then clones of them until 130 % of the GPUs were asked for, one pod at a time, no departures; what
fits nowhere is dropped. The files are not part of the project; they are in the folder data/csv of
github.com/hkust-adsl/kubernetes-scheduler-simulator (Apache-2.0) and in alibaba/clusterdata.
"""

from __future__ import annotations

import csv
import random
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler.core.device import Device, DeviceRequest
from scheduler.core.fragmentation import task_shape, typical_tasks
from scheduler.core.node import CPU, MEMORY, Node
from scheduler.core.placement import Fleet
from scheduler.core.placement_model import (
    DeviceConstraints,
    PlacementRefusal,
    PodDeviceRequest,
    PodSetToPlace,
    ScoringWeights,
)
from scheduler.core.placement_policy import Policy
from scheduler.management.baselines import BestFit, DotProduct, RandomChoice

MILLI = 1000
ARRIVALS = 1.3
SLOTS = 1000
_MIB = 2**20
_BY_MEMORY = ScoringWeights(slot=0, core=0, memory=1)


@dataclass(frozen=True, slots=True)
class TraceNode:
    """A node of the trace: cpu in milli, memory in MiB."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    model: str


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod of the trace; `gpu_milli` is taken of each of its GPUs, `models` are what it may run on (empty: any)."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]

    @property
    def demand_milli(self) -> int:
        """What the pod asks for in all, in thousandths of a GPU."""
        return self.gpus * self.gpu_milli

    def pod_set(self) -> PodSetToPlace:
        """The pod as the placement sees it: a thousandth of a card is a MiB of a card of 1,000 MiB."""
        containers: tuple[tuple[DeviceRequest, ...], ...] = ((),)
        if self.gpus:
            containers = ((DeviceRequest("NVIDIA", self.gpus, self.gpu_milli),),)
        devices = PodDeviceRequest(
            containers=containers,
            weights=_BY_MEMORY,
            constraints=(("NVIDIA", DeviceConstraints(use_types=self.models)),),
        )
        requests = {CPU: self.cpu_milli, MEMORY: self.memory_mib * _MIB}
        return PodSetToPlace("main", 1, requests, devices)


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run: shares of the cluster's GPUs in percent, when 130 % were asked for, and the cost of a placement."""

    policy: str
    seed: int
    allocated: float
    fragmented: float
    placed: int
    arrived: int
    seconds: float

    @property
    def milliseconds_per_pod(self) -> float:
        """Mean time of one placement or refusal."""
        return 1000 * self.seconds / max(self.arrived, 1)


def read_nodes(path: Path) -> list[TraceNode]:
    """Read a node list (`sn, cpu_milli, memory_mib, gpu, model`). Raises OSError, KeyError or ValueError."""
    with path.open(newline="") as file:
        return [
            TraceNode(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
            for row in csv.DictReader(file)
        ]


def read_pods(path: Path) -> list[TracePod]:
    """Read a pod list (`name, cpu_milli, memory_mib, num_gpu, gpu_milli, gpu_spec`), by name. Raises likewise."""
    with path.open(newline="") as file:
        pods = [
            TracePod(
                row["name"],
                int(row["cpu_milli"]),
                int(row["memory_mib"]),
                int(row["num_gpu"]),
                int(row["gpu_milli"]),
                tuple(model for model in (row.get("gpu_spec") or "").split("|") if model),
            )
            for row in csv.DictReader(file)
        ]
    return sorted(pods, key=lambda pod: pod.name)


def arrivals(pods: Sequence[TracePod], capacity_milli: int, chance: random.Random) -> list[TracePod]:
    """The trace in random order, then clones of its pods until the next would pass 130 % of the GPUs.

    The published check adds what the clone takes of one GPU, not of all of its GPUs.
    """
    arriving = list(pods)
    chance.shuffle(arriving)
    asked = sum(pod.demand_milli for pod in arriving)
    while True:
        clone = chance.choice(pods)
        if asked + clone.gpu_milli > ARRIVALS * capacity_milli:
            return arriving
        asked += clone.demand_milli
        arriving.append(clone)


def fleet_of(nodes: Sequence[TraceNode], policy: str, chance: random.Random) -> Fleet:
    """An empty fleet; node names start with a random number, so that ties go by a random but fixed order."""
    rankings = {"random": RandomChoice(chance), "best-fit": BestFit(), "dot-product": DotProduct()}
    cards = {"random": "random", Policy.FGD: Policy.FGD, Policy.SPREAD: Policy.SPREAD}.get(policy, Policy.BINPACK)
    fleet = Fleet(node_policy=policy, device_policy=cards, rankings=rankings)
    numbers = list(range(len(nodes)))
    chance.shuffle(numbers)
    for number, node in zip(numbers, nodes, strict=True):
        name = f"{number:05}-{node.name}"
        devices = tuple(
            Device(f"{name}-{index}", index, "NVIDIA", node.model, SLOTS, MILLI, 100) for index in range(node.gpus)
        )
        allocatable = {CPU: node.cpu_milli, MEMORY: node.memory_mib * _MIB}
        fleet.set_node(Node(name, allocatable=allocatable, devices=devices))
    return fleet


def run(nodes: Sequence[TraceNode], pods: Sequence[TracePod], policy: str, seed: int) -> Outcome:
    """One run of one policy. The allocation is the mean over the arrivals that round to 130 %."""
    chance = random.Random(seed)  # noqa: S311 - a benchmark's dice
    capacity = MILLI * sum(node.gpus for node in nodes)
    arriving = arrivals(pods, capacity, chance)
    fleet = fleet_of(nodes, policy, chance)
    sets = {pod: pod.pod_set() for pod in pods}
    fleet.fragmentation.set_tasks(typical_tasks(task_shape(sets[pod]) for pod in pods))
    asked = used = placed = 0
    at_the_end: list[float] = []
    started = time.perf_counter()
    for number, pod in enumerate(arriving):
        asked += pod.demand_milli
        placement = fleet.place([sets[pod]])
        if not isinstance(placement, PlacementRefusal):
            fleet.reserve(str(number), placement)
            used += pod.demand_milli
            placed += 1
        if round(100 * asked / capacity) == round(100 * ARRIVALS):
            at_the_end.append(100 * used / capacity)
    seconds = time.perf_counter() - started
    fragmented = 100 * float(fleet.fragmentation.model(fleet.table).fragmentation.sum()) / capacity
    return Outcome(policy, seed, _mean(at_the_end), fragmented, placed, len(arriving), seconds)


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0
