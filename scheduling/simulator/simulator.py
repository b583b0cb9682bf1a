"""The virtual cluster: workloads arrive at their time, run for their duration, and stop at once when they are
preempted.

The clock jumps from one event to the next. At each event, workloads whose duration is over finish first, then due
workloads arrive, then cycles run until nothing more happens; preempted workloads stop after each cycle. A scenario
may instead ask for a number of cycles at time 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import partial
from heapq import heappop, heappush
from typing import Any

from scheduling.lifecycle.conditions import release
from scheduling.model.decisions import CycleResult
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Admission, Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.simulator.results import cycle_result, single_cycle_result, state_at_the_end
from scheduling.simulator.scenario import (
    read_admission_check,
    read_cluster_queue,
    read_cohort,
    read_configuration,
    read_foreign_usage,
    read_limit_range,
    read_local_queue,
    read_node,
    read_reservation,
    read_resource_flavor,
    read_runtime_class,
)
from scheduling.simulator.workload_manifest import read_workload
from scheduling.world import World

EPOCH = 1767225600.0
"""Time 0 of every scenario: 2026-01-01T00:00:00Z."""

MAX_WINDOW_SECONDS = 1_209_600.0
"""A window of a reservation that starts or ends later than this after the last decision is not an event: recurring
windows never end, and two weeks without a decision are as all later ones."""

SECOND_PASS_SECONDS = 1.0
"""In single-cycle scenarios, workloads got their quota this long before time 0, so that their second pass is due in
the first cycle."""


class JobEvent(Enum):
    """An event in the life of a workload on the virtual cluster."""

    STARTED = auto()
    STOPPED = auto()
    ENDED = auto()


@dataclass(slots=True)
class Simulator:
    """A world and its virtual clock, in seconds since `EPOCH`."""

    world: World
    runtimes: dict[str, float]
    horizon: float
    batch: float = 1.0
    single_cycles: int | None = None
    """How many cycles to run at time 0, and nothing else; None runs until no event is left."""
    cycles: list[dict[str, Any]] = field(default_factory=list)
    first_cycle: dict[str, Any] | None = None
    """The decisions of the first of the single cycles."""
    finished: dict[str, float] = field(default_factory=dict)
    events: list[tuple[JobEvent, str, float]] = field(default_factory=list)
    """Starts, stops (by preemption or eviction) and ends, with workload and time, in their order."""
    _arrivals: list[tuple[float, int, Workload]] = field(default_factory=list)
    _ends: list[tuple[float, str, int]] = field(default_factory=list)
    _runs: dict[str, int] = field(default_factory=dict)
    _now: float = -1.0
    _settled: float = 0.0
    """The time of the last decision."""
    _stopping: list[str] = field(default_factory=list)
    _assigned: dict[str, Admission | None] = field(default_factory=dict)

    def submit(self, workload: Workload, run_seconds: float | None = None) -> None:
        """Add a workload at its creation time, rounded up to a whole batch; it may run for a known time.

        A workload that holds quota runs from time 0. A workload that was evicted has already stopped, like all evicted
        workloads here; in a single-cycle scenario, it stops only after the first cycle.
        """
        if run_seconds is not None:
            self.runtimes[workload.key] = run_seconds
        if workload.holds_quota and workload.is_true(ConditionType.EVICTED):
            if self.single_cycles is None:
                workload = release(workload, EPOCH)
            else:
                self._stopping.append(workload.key)
        if workload.holds_quota:
            self._assigned[workload.key] = workload.admission
            self.world.set_workload(workload, EPOCH if self.single_cycles is None else EPOCH - SECOND_PASS_SECONDS)
            self._start(workload.key, 0.0)
            return
        due = max(0.0, math.ceil((workload.created_at - EPOCH) / self.batch) * self.batch)
        heappush(self._arrivals, (due, len(self._arrivals), workload))

    def run(self) -> None:
        """Run the single cycles if there are any; otherwise to the horizon, or until no event is left."""
        if self.single_cycles is not None:
            self._run_single_cycles(self.single_cycles)
            return
        for _ in self.instants():
            continue

    def instants(self) -> Iterator[float]:
        """Run instant after instant, and yield the time of each in seconds once it has settled."""
        while (now := self._next_instant()) is not None and now <= self.horizon:
            self._now = now
            self.world.advance(EPOCH + now)
            self._finish_due(now)
            self._evict_for_windows(now)
            self._arrive(now)
            for result in run_until_idle(self.world, EPOCH + now, limit_idle=True):
                self._record(result, now)
            yield now

    def _run_single_cycles(self, count: int) -> None:
        self._arrive(0.0)
        for _ in range(count):
            result = self.world.run_cycle(EPOCH)
            if self.first_cycle is None:
                self.first_cycle = single_cycle_result(result, self._assigned, self.world)
            self._record(result, 0.0)
            for key in self._stopping:
                self.world.release_workload(key, EPOCH)
            self._stopping.clear()

    def _next_instant(self) -> float | None:
        candidates = [queue[0][0] for queue in (self._arrivals, self._ends) if queue]
        change = self.world.next_window_change(EPOCH + self._now)
        if change is not None and change - EPOCH <= self._settled + MAX_WINDOW_SECONDS:
            candidates.append(change - EPOCH)
        return min(candidates, default=None)

    def _evict_for_windows(self, now: float) -> None:
        """Stop the workloads whose nodes a reservation takes now. They wait again."""
        for key in self.world.evict_for_windows(EPOCH + now):
            self._stop(key, now)

    def _arrive(self, now: float) -> None:
        while self._arrivals and self._arrivals[0][0] <= now:
            self.world.set_workload(heappop(self._arrivals)[2], EPOCH + now)

    def _finish_due(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, key, run = heappop(self._ends)
            if self._runs.get(key) == run:
                self.world.finish_workload(key, EPOCH + now)
                self.finished[key] = now
                self.events.append((JobEvent.ENDED, key, now))

    def _start(self, key: str, now: float) -> None:
        run = self._runs[key] = self._runs.get(key, 0) + 1
        if key in self.runtimes:
            heappush(self._ends, (now + self.runtimes[key], key, run))

    def _stop(self, key: str, now: float) -> None:
        self._runs[key] += 1
        self.world.release_workload(key, EPOCH + now)
        self.events.append((JobEvent.STOPPED, key, now))

    def _record(self, result: CycleResult, now: float) -> None:
        for admission in result.admissions:
            self._start(admission.workload, now)
            self.events.append((JobEvent.STARTED, admission.workload, now))
        stopped = [preemption.workload for preemption in result.preemptions]
        stopped += [eviction.workload for eviction in result.evictions]
        for key in stopped:
            self._stop(key, now)
        if result.decided:
            self._settled = now
            self.cycles.append(cycle_result(result, now))


def build_simulator(scenario: Mapping[str, Any]) -> Simulator:
    """Build a simulator for a scenario of Kubernetes manifests, with the keys of `tests/conformance/kueue`."""
    world = World(read_configuration(scenario))
    for manifest in scenario.get("namespaces") or ():
        world.set_namespace(manifest["metadata"]["name"], manifest["metadata"].get("labels") or {})
    kinds: tuple[tuple[str, Callable[[Mapping[str, Any]], Any], Callable[[Any], None]], ...] = (
        ("topologies", Topology.from_manifest, world.set_topology),
        ("nodes", partial(read_node, foreign_usage=read_foreign_usage(scenario.get("pods") or ())), world.set_node),
        ("reservations", read_reservation, world.set_reservation),
        ("limitRanges", read_limit_range, world.set_limit_range),
        ("runtimeClasses", read_runtime_class, world.set_runtime_class),
        ("resourceFlavors", read_resource_flavor, world.set_resource_flavor),
        ("admissionChecks", read_admission_check, world.set_admission_check),
        ("cohorts", read_cohort, world.set_cohort),
        ("clusterQueues", read_cluster_queue, world.set_cluster_queue),
        ("localQueues", read_local_queue, world.set_local_queue),
    )
    for key, read, add in kinds:
        for manifest in scenario.get(key) or ():
            add(read(manifest))
    simulator = Simulator(
        world,
        dict(scenario.get("runtimeSeconds") or {}),
        float(scenario.get("horizonSeconds", math.inf)),
        float(scenario.get("batchSeconds") or 1),
        scenario.get("cycles"),
    )
    for manifest in scenario.get("workloads") or ():
        simulator.submit(read_workload(manifest))
    return simulator


def simulate(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Run a scenario and return the decisions in the format of the recordings."""
    simulator = build_simulator(scenario)
    simulator.run()
    result: dict[str, Any] = {"cycles": simulator.cycles, "finishedAtSeconds": simulator.finished}
    if simulator.first_cycle is not None:
        result["firstCycle"] = simulator.first_cycle
    return {**result, **state_at_the_end(simulator.world)}
