"""How many workloads the cycle admits per second on one CPU: `python tests/benchmarks/benchmark_cycle.py [--profile]`.

1,000 ClusterQueues with two flavors and 50 pending workloads each, quota for all:

- cohorts: cohorts of 10 ClusterQueues, classical order
- fair: all 1,000 in one cohort, fair sharing
- placed: as cohorts, and each of the 50,000 pods gets one of 1,200 nodes (`python tests/benchmarks/benchmark_cycle.py
  cohorts placed` gives what that costs, as a ratio)
- preempting: cohorts of 10, full of low-priority workloads, and every tenth new workload must preempt
- reclaiming: one cohort of 100 ClusterQueues, half of which borrow all of it; the others take their own quota back

Beside admissions per second stands what one admission costs in calls of an empty Python function, measured on the same
machine in the same minute: that ratio, unlike the pace, can be compared between machines.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from scheduling.model.cluster_queue import ClusterQueue, ClusterQueuePreemption
from scheduling.model.cohort import FlavorQuotas, ResourceGroup, ResourceQuota
from scheduling.model.configuration import Configuration, FairSharing
from scheduling.model.local_queue import LocalQueue
from scheduling.model.node import Node
from scheduling.model.pod import Container, PodTemplate
from scheduling.model.quantity import NANOS
from scheduling.model.resource_flavor import ResourceFlavor
from scheduling.model.selectors import LabelSelector
from scheduling.model.vocabulary import PlacementScope, ReclaimWithinCohortPolicy, WithinClusterQueuePolicy
from scheduling.model.workload import PodSet, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.world import World

QUEUES = 1000
WORKLOADS = 50
NODES = 1200
RECLAIMING = 100
RECLAIMED = 16
GIB = 2**30


def template(cpu: int) -> PodTemplate:
    """A pod of `cpu` cores and as many GiB."""
    return PodTemplate(containers=(Container("c", {"cpu": cpu * NANOS, "memory": cpu * GIB * NANOS}),))


def world(
    configuration: Configuration,
    cohort_size: int,
    cpu: int,
    preemption: ClusterQueuePreemption,
    queues: int = QUEUES,
) -> World:
    """ClusterQueues of which the first flavor holds half of `cpu`, the second all of it."""
    built = World(configuration)
    built.set_namespace("team", {})
    for flavor in ("reserved", "spot"):
        built.set_resource_flavor(ResourceFlavor(flavor))
    for number in range(queues):
        flavors = tuple(
            FlavorQuotas(
                name, {"cpu": ResourceQuota(share * 1000 * cpu // 2), "memory": ResourceQuota(share * cpu * GIB // 2)}
            )
            for name, share in (("reserved", 1), ("spot", 2))
        )
        built.set_cluster_queue(
            ClusterQueue(
                f"queue-{number:04}",
                f"cohort-{number // cohort_size}",
                (ResourceGroup(("cpu", "memory"), flavors),),
                namespace_selector=LabelSelector(),
                preemption=preemption,
            )
        )
        built.set_local_queue(LocalQueue("team", f"local-{number:04}", f"queue-{number:04}"))
    return built


def submit(
    built: World, count: int, cpu: int, priority: int, start: float, label: str, queues: range = range(QUEUES)
) -> None:
    """`count` workloads to each queue."""
    pods = (PodSet(template=template(cpu)),)
    for number in queues:
        for index in range(count):
            name = f"{label}-{number:04}-{index:02}"
            workload = Workload(
                "team", name, name, f"local-{number:04}", pods, priority=priority, created_at=start + index
            )
            built.set_workload(workload, start)


def cohorts() -> World:
    """Cohorts of 10, classical."""
    built = world(Configuration(), 10, WORKLOADS, ClusterQueuePreemption())
    submit(built, WORKLOADS, 1, 0, 0.0, "w")
    return built


def placed() -> World:
    """Cohorts of 10 over nodes that hold all pods, all but full: no pod is admitted without a node."""
    built = world(Configuration(placement=PlacementScope.ALL), 10, WORKLOADS, ClusterQueuePreemption())
    for number in range(NODES):
        amounts = {"cpu": 42_000, "memory": 42 * GIB, "pods": 110}
        built.set_node(Node(f"node-{number:04}", allocatable=amounts))
    submit(built, WORKLOADS, 1, 0, 0.0, "w")
    return built


def fair() -> World:
    """One cohort of 1,000, fair sharing."""
    built = world(Configuration(fair_sharing=FairSharing()), QUEUES, WORKLOADS, ClusterQueuePreemption())
    submit(built, WORKLOADS, 1, 0, 0.0, "w")
    return built


def preempting() -> World:
    """45 of 50 find room; the last five of each queue preempt workloads of lower priority in it."""
    policy = ClusterQueuePreemption(WithinClusterQueuePolicy.LOWER_PRIORITY, ReclaimWithinCohortPolicy.ANY)
    built = world(Configuration(), 10, 36, policy)
    submit(built, 9, 1, 0, 0.0, "low")
    for _ in run_until_idle(built, 0.0):
        pass
    submit(built, WORKLOADS, 1, 100, 1000.0, "high")
    return built


def reclaiming() -> World:
    """50 queues hold the quota of all 100; the 50 others then take `RECLAIMED` workloads' worth of theirs back."""
    policy = ClusterQueuePreemption(WithinClusterQueuePolicy.LOWER_PRIORITY, ReclaimWithinCohortPolicy.ANY)
    built = world(Configuration(), RECLAIMING, RECLAIMED, policy, RECLAIMING)
    submit(built, 3 * RECLAIMED, 1, 0, 0.0, "low", range(0, RECLAIMING, 2))
    for _ in run_until_idle(built, 0.0):
        pass
    submit(built, RECLAIMED, 1, 0, 1000.0, "back", range(1, RECLAIMING, 2))
    return built


def run(built: World, now: float) -> tuple[int, int]:
    """Cycles until nothing happens; admissions and preemptions. Preempted workloads stop at once, and for good."""
    admitted = preempted = 0
    for result in run_until_idle(built, now):
        admitted += len(result.admissions)
        preempted += len(result.preemptions)
        for preemption in result.preemptions:
            built.finish_workload(preemption.workload, now)
    return admitted, preempted


def print_profile(profile: cProfile.Profile) -> None:
    """Where the time goes: the share of each step of the cycle, then the functions with the most time of their own."""
    stats = pstats.Stats(profile)
    cumulative: dict[str, float] = {}
    for (_file, _line, name), (_calls, _all, _own, total, _callers) in stats.stats.items():  # type: ignore[attr-defined]  # pstats has no types for it
        cumulative[name] = max(total, cumulative.get(name, 0.0))
    whole = cumulative["run_cycle"] or 1.0
    for step in ("nominate", "_find_targets", "_in_order", "fair_order", "_decide", "_requeue"):
        if step in cumulative:
            print(f"  {step.lstrip('_').replace('_', ' '):<14} {cumulative[step] / whole:6.1%} of the cycle")
    stats.sort_stats("tottime").print_stats(12)


def seconds_per_call() -> float:
    """How long this machine takes to call an empty function."""

    def nothing() -> None:
        return None

    started = time.process_time()
    for _ in range(1_000_000):
        nothing()
    return (time.process_time() - started) / 1_000_000


SCENARIOS: dict[str, Callable[[], World]] = {
    "cohorts": cohorts,
    "placed": placed,
    "fair": fair,
    "preempting": preempting,
    "reclaiming": reclaiming,
}


def main() -> None:
    """Print a figure, and with --profile where the time goes, for each scenario."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scenarios", nargs="*", default=list(SCENARIOS), help=", ".join(SCENARIOS))
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    call = seconds_per_call()
    for name in options.scenarios:
        built = SCENARIOS[name]()
        built.has_active()
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # both as the scheduler's worker does after a full load
        profile = cProfile.Profile() if options.profile else None
        started = time.process_time()
        if profile:
            profile.enable()
        admitted, preempted = run(built, 2000.0)
        if profile:
            profile.disable()
        seconds = time.process_time() - started
        pace = f"{admitted / seconds:,.0f} admissions/s, {seconds / admitted / call:,.0f} calls each"
        print(f"{name}: {admitted} admitted, {preempted} preempted in {seconds:.2f} s: {pace}")
        if profile:
            print_profile(profile)


if __name__ == "__main__":
    main()
