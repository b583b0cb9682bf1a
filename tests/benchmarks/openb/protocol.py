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
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from scheduling.devices.policies.ranking import Ranking
from scheduling.devices.policies.typical_pods import pod_shape, typical_pods
from scheduling.devices.requests.policy import Policy
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import Device, DeviceRequest
from scheduling.model.node import CPU, MEMORY, Node
from scheduling.model.placement import (
    DeviceConstraints,
    PlacementRefusal,
    PodDeviceRequest,
    PodSetToPlace,
    ScoringWeights,
)
from tests.benchmarks.openb.baselines import BestFit, DotProduct, RandomChoice

MILLI = 1000
ARRIVALS = 1.3
SLOTS = 1000
PUBLISHED: dict[str, dict[str, float]] = {
    "default": {"random": 87.47, "dot-product": 90.85, "best-fit": 93.08, "fgd": 95.39},
    "default fragmented": {"random": 12.4, "dot-product": 9.1, "best-fit": 6.9, "fgd": 4.6},
    "cpu050": {"random": 91.24, "dot-product": 93.27, "best-fit": 93.79, "fgd": 95.21},
    "cpu100": {"random": 89.11, "dot-product": 91.95, "best-fit": 93.44, "fgd": 95.35},
    "cpu200": {"random": 83.77, "dot-product": 87.70, "best-fit": 92.40, "fgd": 95.05},
    "cpu250": {"random": 80.42, "dot-product": 83.81, "best-fit": 91.45, "fgd": 93.41},
    "gpushare40": {"random": 86.00, "dot-product": 89.56, "best-fit": 91.69, "fgd": 94.15},
    "gpushare60": {"random": 83.65, "dot-product": 87.11, "best-fit": 89.36, "fgd": 91.40},
    "gpushare80": {"random": 81.22, "dot-product": 84.49, "best-fit": 87.01, "fgd": 89.30},
    "gpushare100": {"random": 79.44, "dot-product": 82.42, "best-fit": 85.01, "fgd": 86.90},
    "gpuspec10": {"random": 87.43, "dot-product": 90.39, "best-fit": 93.30, "fgd": 94.95},
    "gpuspec20": {"random": 87.24, "dot-product": 89.97, "best-fit": 93.30, "fgd": 94.84},
    "gpuspec25": {"random": 86.94, "dot-product": 89.63, "best-fit": 93.23, "fgd": 94.74},
    "gpuspec33": {"random": 86.46, "dot-product": 89.14, "best-fit": 93.09, "fgd": 94.55},
    "multigpu20": {"random": 88.69, "dot-product": 92.06, "best-fit": 93.93, "fgd": 95.65},
    "multigpu30": {"random": 89.27, "dot-product": 93.28, "best-fit": 94.72, "fgd": 96.46},
    "multigpu40": {"random": 90.09, "dot-product": 94.19, "best-fit": 95.23, "fgd": 96.99},
    "multigpu50": {"random": 90.27, "dot-product": 94.85, "best-fit": 95.74, "fgd": 97.18},
}
"""Published means of ten runs at 130 % of arrivals, in percent of the GPUs, by trace and policy."""

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

    @property
    def kind(self) -> Hashable:
        """What it asks for: pods of a kind differ in their name alone."""
        return (self.cpu_milli, self.memory_mib, self.gpus, self.gpu_milli, self.models)

    def pod_set(self) -> PodSetToPlace:
        """The pod as the placement sees it: a thousandth of a device is a MiB of a device of 1,000 MiB."""
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
    """One run: shares of the cluster's GPUs in percent, when 130 % were asked for, and processor seconds."""

    policy: str
    seed: int
    allocated: float
    fragmented: float
    placed: int
    arrived: int
    seconds: float

    @property
    def milliseconds_per_pod(self) -> float:
        """Mean processor time of one placement or refusal, on one core."""
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
    rankings: dict[str, Ranking] = {"random": RandomChoice(chance), "best-fit": BestFit(), "dot-product": DotProduct()}
    device_policy = policy if policy in ("random", Policy.FGD, Policy.BID_PRICE, Policy.SPREAD) else Policy.BINPACK
    fleet = Fleet(node_policy=policy, device_policy=device_policy, rankings=rankings)
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


class Trial:
    """The cluster of one run, empty at first, the pods that arrive, and what was placed."""

    def __init__(self, nodes: Sequence[TraceNode], pods: Sequence[TracePod], policy: str, seed: int) -> None:
        chance = random.Random(seed)
        self.policy, self.seed = policy, seed
        self.capacity_milli = MILLI * sum(node.gpus for node in nodes)
        self.arriving = arrivals(pods, self.capacity_milli, chance)
        self.fleet = fleet_of(nodes, policy, chance)
        self.pod_sets = {pod: pod.pod_set() for pod in pods}
        self.fleet.mix.pods = typical_pods(pod_shape(self.pod_sets[pod]) for pod in pods)
        self.used_milli = self.placed = 0
        self._started = time.process_time()

    @property
    def allocated(self) -> float:
        """The share of the GPUs that is allocated, in percent."""
        return 100 * self.used_milli / self.capacity_milli

    def place(self, pod: TracePod) -> bool:
        """Place a pod for good, if any node takes it."""
        placement = self.fleet.place([self.pod_sets[pod]])
        if isinstance(placement, PlacementRefusal):
            return False
        self.fleet.reserve(str(self.placed), placement)
        self.used_milli += pod.demand_milli
        self.placed += 1
        return True

    def outcome(self, allocated: float) -> Outcome:
        """How it ended."""
        seconds = time.process_time() - self._started
        fragmented = float(self.fleet.fragmentation.model(self.fleet.table).fragmentation.sum())
        share = 100 * fragmented / self.capacity_milli
        return Outcome(self.policy, self.seed, allocated, share, self.placed, len(self.arriving), seconds)


def run(nodes: Sequence[TraceNode], pods: Sequence[TracePod], policy: str, seed: int) -> Outcome:
    """One run of one policy. The allocation is the mean over the arrivals that round to 130 %, else the last."""
    trial = Trial(nodes, pods, policy, seed)
    asked, at_the_end = 0, list[float]()
    for pod in trial.arriving:
        asked += pod.demand_milli
        trial.place(pod)
        if round(100 * asked / trial.capacity_milli) == round(100 * ARRIVALS):
            at_the_end.append(trial.allocated)
    return trial.outcome(fmean(at_the_end or [trial.allocated]))
