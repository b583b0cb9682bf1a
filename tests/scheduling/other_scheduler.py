"""Another scheduler in its cluster: what it decides, change by change, in the order in which the cluster has it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Mapping
from heapq import heappop, heappush
from typing import Any

from scheduling.model.decisions import CycleResult
from scheduling.model.workload import Workload
from scheduling.shadow.trials import cycles_until_rest
from scheduling.simulator.simulator import EPOCH, build_simulator
from scheduling.simulator.workload_manifest import read_workload
from scheduling.world import World

STOPPING_SECONDS = 2.0
"""What preempted pods take to stop."""

Change = tuple[float, str, Workload | None]
"""When, of which workload, and how it is from then on; None: it is over."""


class OtherScheduler:
    """Decides after each event of a scenario.

    * late: with it, decisions are written late and in another order than they were made, behind events that the
      scheduler had not heard of.
    """

    def __init__(self, scenario: Mapping[str, Any], late: random.Random | None = None) -> None:
        self._runtimes: Mapping[str, float] = scenario.get("runtimeSeconds") or {}
        self._horizon = float(scenario.get("horizonSeconds", 10_000))
        self.world = new_world(scenario)
        self._late = late
        self._events: list[tuple[float, int, str, str, int]] = []
        self._numbers = itertools.count()
        self._arriving: dict[str, Workload] = {}
        self._runs: dict[str, int] = {}
        self._unwritten: list[tuple[str, Workload | None]] = []
        for manifest in scenario.get("workloads") or ():
            workload = read_workload(manifest)
            self._arriving[workload.key] = workload
            self._plan(max(workload.created_at, EPOCH), "arrive", workload.key)

    def changes(self) -> Iterator[Change]:
        """All that happens until the horizon."""
        while self._events and self._events[0][0] <= EPOCH + self._horizon:
            now, _, what, key, run = heappop(self._events)
            if what != "arrive" and self._runs.get(key) != run:
                continue  # it was preempted, or has ended
            if self._late is None or key in {each for each, _ in self._unwritten} or self._late.random() < 0.5:
                yield from self._write(now)
            happened = self._happen(now, what, key)
            yield now, key, happened
            yield from self._write(now)
            for result in cycles_until_rest(self.world, now):
                self._decide(result, now)
            if self._late is None or not self._events or self._events[0][0] > now + 1:
                yield from self._write(now)

    def _happen(self, now: float, what: str, key: str) -> Workload | None:
        if what == "arrive":
            self.world.set_workload(self._arriving[key], now)
            self._runs[key] = 0
        elif what == "end":
            self.world.finish_workload(key, now)
        else:
            self.world.release_workload(key, now)
        return self.world.workload(key)

    def _decide(self, result: CycleResult, now: float) -> None:
        for admission in result.admissions:
            key = admission.workload
            self._runs[key] = self._runs.get(key, 0) + 1
            if key in self._runtimes:
                self._plan(now + self._runtimes[key], "end", key)
            self._unwritten.append((key, self.world.workload(key)))
        for victim in result.preemptions:
            self._runs[victim.workload] += 1
            self._plan(now + STOPPING_SECONDS, "stop", victim.workload)
            self._unwritten.append((victim.workload, self.world.workload(victim.workload)))

    def _plan(self, at: float, what: str, key: str) -> None:
        heappush(self._events, (at, next(self._numbers), what, key, self._runs.get(key, 0)))

    def _write(self, now: float) -> Iterator[Change]:
        """Each decision is a request of its own, and some are quicker than others."""
        written, self._unwritten = self._unwritten, []
        if self._late is not None and len({key for key, _ in written}) == len(written):
            self._late.shuffle(written)
        for key, workload in written:
            yield now, key, workload


def new_world(scenario: Mapping[str, Any]) -> World:
    """The scenario's queues, without workloads."""
    return build_simulator({**scenario, "workloads": []}).world
