"""The virtual cluster: workloads come at their time, run for their time, and stop at once when they are preempted.

The clock jumps from one instant at which something happens to the next. At an instant, workloads whose time is up
finish, then those that are due arrive, then cycles run until nothing more happens; after each cycle the preempted have
stopped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from scheduling.lifecycle.conditions import release
from scheduling.model.decisions import Admit, CycleResult
from scheduling.model.quantity import format_amount
from scheduling.model.topology import Topology
from scheduling.model.vocabulary import ConditionType
from scheduling.model.workload import Workload
from scheduling.run_until_idle import run_until_idle
from scheduling.simulator.scenario import (
    read_admission_check,
    read_cluster_queue,
    read_cohort,
    read_configuration,
    read_limit_range,
    read_local_queue,
    read_node,
    read_resource_flavor,
    read_runtime_class,
    read_workload,
)
from scheduling.state.status import Usage
from scheduling.world import World

EPOCH = 1767225600.0
"""Time 0 of every scenario: 2026-01-01T00:00:00Z."""


@dataclass(slots=True)
class Simulator:
    """A world and its virtual clock, in seconds since `EPOCH`."""

    world: World
    runtimes: Mapping[str, float]
    horizon: float
    batch: float = 1.0
    cycles: list[dict[str, Any]] = field(default_factory=list)
    finished: dict[str, float] = field(default_factory=dict)
    _arrivals: list[tuple[float, int, Workload]] = field(default_factory=list)
    _ends: list[tuple[float, str, int]] = field(default_factory=list)
    _runs: dict[str, int] = field(default_factory=dict)

    def submit(self, workload: Workload) -> None:
        """Let a workload become visible at its creation time, rounded up to a whole batch; one that holds quota is
        running from time 0. One that was evicted already has stopped by then, as all do here."""
        if workload.holds_quota and workload.is_true(ConditionType.EVICTED):
            workload = release(workload, EPOCH)
        if workload.holds_quota:
            self.world.set_workload(workload, EPOCH)
            self._start(workload.key, 0.0)
            return
        due = max(0.0, math.ceil((workload.created_at - EPOCH) / self.batch) * self.batch)
        heappush(self._arrivals, (due, len(self._arrivals), workload))

    def run(self) -> None:
        """Run to the horizon, or until nothing is left to happen."""
        while (now := self._next_instant()) is not None and now <= self.horizon:
            self._finish_due(now)
            while self._arrivals and self._arrivals[0][0] <= now:
                self.world.set_workload(heappop(self._arrivals)[2], EPOCH + now)
            for result in run_until_idle(self.world, EPOCH + now, limit_idle=True):
                self._record(result, now)

    def _next_instant(self) -> float | None:
        candidates = [queue[0][0] for queue in (self._arrivals, self._ends) if queue]
        return min(candidates, default=None)

    def _finish_due(self, now: float) -> None:
        while self._ends and self._ends[0][0] <= now:
            _, key, run = heappop(self._ends)
            if self._runs.get(key) == run:
                self.world.finish_workload(key, EPOCH + now)
                self.finished[key] = now

    def _start(self, key: str, now: float) -> None:
        run = self._runs[key] = self._runs.get(key, 0) + 1
        if key in self.runtimes:
            heappush(self._ends, (now + self.runtimes[key], key, run))

    def _record(self, result: CycleResult, now: float) -> None:
        for admission in result.admissions:
            self._start(admission.workload, now)
        for preemption in result.preemptions:
            self._runs[preemption.workload] += 1
            self.world.release_workload(preemption.workload, EPOCH + now)
        if result.decided:
            self.cycles.append(
                {
                    "atSeconds": now,
                    "admitted": [_admitted(a) for a in sorted(result.admissions, key=lambda a: a.workload)],
                    "preempted": [
                        {"workload": p.workload, "reason": p.reason.value}
                        for p in sorted(result.preemptions, key=lambda p: p.workload)
                    ],
                }
            )


def _admitted(admission: Admit) -> dict[str, Any]:
    pod_sets = []
    for assignment in admission.pod_sets:
        entry: dict[str, Any] = {
            "name": assignment.name,
            "count": assignment.count,
            "flavors": dict(assignment.flavors),
        }
        if assignment.topology_assignment is not None:
            entry["topologyAssignment"] = [
                {"values": list(domain.values), "count": domain.count}
                for domain in assignment.topology_assignment.domains
            ]
        pod_sets.append(entry)
    return {"workload": admission.workload, "clusterQueue": admission.cluster_queue, "podSets": pod_sets}


def build_simulator(scenario: Mapping[str, Any]) -> Simulator:
    """A simulator for a scenario of Kubernetes manifests (the keys are those of `tests/conformance/kueue`)."""
    world = World(read_configuration(scenario))
    for manifest in scenario.get("namespaces") or ():
        world.set_namespace(manifest["metadata"]["name"], manifest["metadata"].get("labels") or {})
    kinds: tuple[tuple[str, Callable[[Mapping[str, Any]], Any], Callable[[Any], None]], ...] = (
        ("topologies", Topology.from_manifest, world.set_topology),
        ("nodes", read_node, world.set_node),
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
    )
    for manifest in scenario.get("workloads") or ():
        simulator.submit(read_workload(manifest))
    return simulator


def simulate(scenario: Mapping[str, Any]) -> dict[str, Any]:
    """Run a scenario to its end: cycles that decided something, finish times, who is left, usage per ClusterQueue."""
    simulator = build_simulator(scenario)
    simulator.run()
    world = simulator.world
    result: dict[str, Any] = {
        "cycles": simulator.cycles,
        "finishedAtSeconds": simulator.finished,
        "pending": {},
        "inadmissible": {},
        "clusterQueues": {},
    }
    fair = world.configuration.fair_sharing is not None
    for name in world.cluster_queue_names():
        waiting = world.pending(name)
        for key, inadmissible in (("pending", False), ("inadmissible", True)):
            names = [entry.workload for entry in waiting if entry.inadmissible is inadmissible]
            if names:
                result[key][name] = names
        view = world.cluster_queue_view(name)
        usage = [row for row in view.usage if row.listed]  # Kueue reports on the flavors of the spec only
        entry: dict[str, Any] = {
            "flavorsReservation": _by_flavor(usage, "used"),
            "borrowed": _by_flavor([row for row in usage if row.borrowed], "borrowed"),
        }
        if fair:
            share = view.weighted_share
            entry["weightedShare"] = "+Inf" if math.isinf(share) else share
        result["clusterQueues"][name] = entry
    return result


def _by_flavor(rows: list[Usage], field_name: str) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = {}
    for row in rows:
        amount = row.used if field_name == "used" else row.borrowed
        found.setdefault(row.flavor, {})[row.resource] = format_amount(row.resource, amount)
    return found
