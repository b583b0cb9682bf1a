"""How long one placement takes on 1,213 nodes of 6,212 devices that fill up, per policy and kind of request.

    python tests/benchmarks/benchmark_placement.py

Prints the mean and the 99th percentile of `place` alone and of `place`, `reserve` and `release`, in processor
milliseconds, what a refusal with its reasons for every node costs, and the ratio to walking every node device by
device, which is what a scheduler without the scan would pay. Then what it costs to refuse the same pod again, and again
after one node changed, where the reasons need such a walk.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from scheduling.devices.fit.device_fit import FitContext
from scheduling.devices.fit.fit import fit_pod
from scheduling.devices.policies.typical_pods import pod_shape, typical_pods
from scheduling.devices.requests.policy import device_policy
from scheduling.devices.search.fleet import Fleet
from scheduling.model.device import Device, DeviceRequest
from scheduling.model.node import Node
from scheduling.model.placement import DeviceConstraints, Placement, PodDeviceRequest, PodSetToPlace, ScoringWeights

NODES, ROUNDS = 1213, 3000
SIZES = [8] * 588 + [4] * 17 + [2] * 608


def fleet(node_policy: str, device_policy: str) -> Fleet:
    """The nodes of the openb trace by size, empty."""
    made = Fleet(node_policy=node_policy, device_policy=device_policy)
    for number, size in enumerate(SIZES[:NODES]):
        devices = tuple(
            Device(f"g{number}-{index}", index, "NVIDIA", "NVIDIA A100", 10, 81_920, 100, numa=index // 4)
            for index in range(size)
        )
        made.set_node(Node(f"n{number:04}", allocatable={"cpu": 96_000, "memory": 2**39}, devices=devices))
    return made


def pods(chance: random.Random, kind: str) -> PodSetToPlace:
    """A pod of a kind, of a random size."""
    request = DeviceRequest("NVIDIA", 1, chance.choice([4000, 8000, 16_000, 40_000]), 101, chance.choice([0, 20, 50]))
    if kind == "whole devices":
        request = DeviceRequest("NVIDIA", chance.choice([1, 2, 4, 8]), 0, 100, 100)
    containers: tuple[tuple[DeviceRequest, ...], ...] = ((request,),)
    if kind == "two containers":
        containers = ((request,), (request,))
    return PodSetToPlace("main", 1, {"cpu": 2000, "memory": 2**33}, PodDeviceRequest(containers=containers))


class Stopwatch:
    """Processor milliseconds since the last look."""

    def __init__(self) -> None:
        self._last = time.process_time()

    def look(self) -> float:
        """Start anew."""
        now = time.process_time()
        spent, self._last = 1000 * (now - self._last), now
        return spent


def figures(times: list[float]) -> str:
    """Mean and 99th percentile."""
    ordered = sorted(times)
    return f"{sum(ordered) / len(ordered):6.3f} {ordered[int(0.99 * len(ordered))]:7.3f}" if ordered else f"{'-':>14}"


def run(node_policy: str, devices: str, kind: str) -> None:
    """Fill the fleet with pods of a kind, release one now and then, and print what it took."""
    chance = random.Random(1)
    made = fleet(node_policy, devices)
    arriving = [pods(chance, kind) for _ in range(ROUNDS)]
    made.mix.pods = typical_pods(pod_shape(pod) for pod in arriving)
    made.place([arriving[0]])
    watch = Stopwatch()
    placing: list[float] = []
    whole: list[float] = []
    refusing: list[float] = []
    running: list[str] = []
    for number, pod in enumerate(arriving):
        watch.look()
        outcome = made.place([pod])
        spent = watch.look()
        if not isinstance(outcome, Placement):
            refusing.append(spent)
            made.release(running.pop(chance.randrange(len(running))))
            continue
        placing.append(spent)
        made.reserve(str(number), outcome)
        whole.append(spent + watch.look())
        running.append(str(number))
    watch.look()
    walk_every_node(made, arriving[0])
    ratio = watch.look() / (sum(placing) / len(placing))
    print(
        f"{node_policy:<9} {kind:<15} {figures(placing)}   {figures(whole)}   {figures(refusing)} "
        f"{len(refusing):>8} {ratio:>10.0f}x"
    )


def refuse_again(kind: str, devices: PodDeviceRequest) -> None:
    """Refuse a pod on devices that are filled but for a quarter."""
    made = fleet("binpack", "spread")
    filler = PodSetToPlace("main", 1, {}, PodDeviceRequest(containers=((DeviceRequest("NVIDIA", 1, 61_440),),)))
    filled = 0
    while isinstance(found := made.place([filler]), Placement):
        made.reserve(str(filled), found)
        filled += 1
    wanted = [PodSetToPlace("main", 1, {}, devices)]
    watch = Stopwatch()
    made.place(wanted)
    first, again, changed = watch.look(), [], []
    for number in range(200):
        watch.look()
        made.place(wanted)
        again.append(watch.look())
        made.reserve(str(number), made.release(str(number)))
        watch.look()
        made.place(wanted)
        changed.append(watch.look())
    print(f"{kind:<15} {first:>8.3f}   {figures(again)}   {figures(changed)}")


def walk_every_node(made: Fleet, pod: PodSetToPlace) -> int:
    """Fit the pod on every node, device by device."""
    context = FitContext(device_policy("spread"), ScoringWeights(), made.settings.vendors)
    table = made.table
    fits = (fit_pod(node.name, table.devices(row), pod.devices, context)[0] for row, node in enumerate(table.nodes))
    return sum(containers is not None for containers in fits)


if __name__ == "__main__":
    print(f"{'policy':<9} {'pods':<15}   place     p99   +reserve   p99     refuse     p99 refusals  vs. walking")
    for policies in (("binpack", "spread"), ("spread", "spread"), ("fgd", "fgd"), ("bid-price", "bid-price")):
        for each in ("slices", "whole devices", "two containers"):
            run(*policies, each)
    print(f"\n{'refusals':<15} {'first':>8}    again     p99    changed    p99")
    large = DeviceRequest("NVIDIA", 1, 30_000)
    bound = (("NVIDIA", DeviceConstraints(numa_bind=True)),)
    refuse_again("slices", PodDeviceRequest(containers=((large,),)))
    refuse_again("two containers", PodDeviceRequest(containers=((large,), (large,))))
    refuse_again("NUMA", PodDeviceRequest(containers=((DeviceRequest("NVIDIA", 2, 30_000),),), constraints=bound))
