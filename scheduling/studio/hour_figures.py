"""Figures of forward runs by hour and ClusterQueue: starts, ends, waits and the use of devices."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, inf, isfinite
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduling.world import World

Floats = npt.NDArray[np.float64]

HOUR_SECONDS: Final = 3600.0


@dataclass(frozen=True, slots=True)
class HourFigures:
    """Lists have one value per hour. Counts and device hours are means of the runs. Waits are quantiles over all runs,
    of workloads that start in the hour, in seconds from the beginning of their wait; None if none starts.

    `median_wait` and `p90_wait` are of all workloads that start in these hours or still wait then; None if that part
    of them waits longer, or none waits.
    """

    started: tuple[float, ...]
    ended: tuple[float, ...]
    waiting: tuple[float, ...]
    device_hours: tuple[float, ...]
    median_waits: tuple[float | None, ...]
    p90_waits: tuple[float | None, ...]
    median_wait: float | None
    p90_wait: float | None


@dataclass(slots=True)
class _Tally:
    """Sums over the runs, of one ClusterQueue, by hour. `waits` are those of the workloads that started."""

    started: Floats
    ended: Floats
    waiting: Floats
    device_seconds: Floats
    waits: list[list[float]]

    @classmethod
    def empty(cls, hours: int) -> _Tally:
        return cls(np.zeros(hours), np.zeros(hours), np.zeros(hours), np.zeros(hours), [[] for _ in range(hours)])


@dataclass(slots=True)
class Tallies:
    """The sums over the runs, by ClusterQueue."""

    hours: int
    by_queue: dict[str, _Tally] = field(default_factory=dict)

    def of(self, cluster_queue: str) -> _Tally:
        """Return the sums of a ClusterQueue."""
        found = self.by_queue.get(cluster_queue)
        if found is None:
            found = self.by_queue[cluster_queue] = _Tally.empty(self.hours)
        return found

    def add(self, more: Tallies) -> None:
        """Add the sums of another run."""
        for name, tally in more.by_queue.items():
            own = self.of(name)
            own.started += tally.started
            own.ended += tally.ended
            own.waiting += tally.waiting
            own.device_seconds += tally.device_seconds
            for waits, others in zip(own.waits, tally.waits, strict=True):
                waits += others


class HourLog:
    """The log of one forward run, which adds to the tallies. Variants count as their parent."""

    def __init__(self, world: World, tallies: Tallies, horizon: float) -> None:
        self._world = world
        self._tallies = tallies
        self._horizon = horizon
        self._device_resources = world.objects.device_resources()
        self._held: dict[str, tuple[str, int, float]] = {}
        """By workload: its ClusterQueue, its devices, and since when it holds them."""
        self._waiting: dict[str, tuple[str, float]] = {}
        """By workload: its ClusterQueue, and since when it waits, in seconds from the beginning of the run."""

    def holds(self, key: str, cluster_queue: str, at: float = 0.0) -> None:
        """Note that a workload holds quota."""
        objects = self._world.objects
        devices = objects.device_count(key)
        if not devices and objects.cluster_queue(cluster_queue) is not None:
            requests = objects.requests(key, cluster_queue)
            devices = sum(requests.get(name, 0) for name in self._device_resources)
        self._held[self._job(key)] = (cluster_queue, devices, at)

    def waits(self, key: str, cluster_queue: str, since: float) -> None:
        """Note that a workload waits."""
        self._waiting[key] = (cluster_queue, since)

    def started(self, key: str, cluster_queue: str, at: float) -> None:
        """Note a start, or the move of a variant that ran elsewhere."""
        job = self._job(key)
        self._release(job, at)
        waited = self._waiting.pop(job, None)
        if waited is not None:
            self._wait_until(*waited, at)
            tally, hour = self._tallies.of(cluster_queue), self._hour(at)
            tally.started[hour] += 1
            tally.waits[hour].append(at - waited[1])
        self.holds(key, cluster_queue, at)

    def stopped(self, key: str, at: float) -> None:
        """Note that a workload waits again."""
        job = self._job(key)
        held = self._release(job, at)
        if held is not None:
            self._waiting[job] = (held, at)

    def ended(self, key: str, at: float) -> None:
        """Note an end."""
        held = self._release(self._job(key), at)
        if held is not None:
            self._tallies.of(held).ended[self._hour(at)] += 1

    def close(self) -> None:
        """Add the workloads that hold quota, or wait, at the end of the hours."""
        for job in [*self._held]:
            self._release(job, self._horizon)
        for queue, since in self._waiting.values():
            self._wait_until(queue, since, inf)

    def _job(self, key: str) -> str:
        found = self._world.workload(key)
        return found.parent or key if found is not None else key

    def _hour(self, at: float) -> int:
        return min(int(at // HOUR_SECONDS), self._tallies.hours - 1)

    def _release(self, job: str, at: float) -> str | None:
        """Add the use of a workload's devices; return its ClusterQueue, None if it held no quota."""
        held = self._held.pop(job, None)
        if held is None:
            return None
        queue, devices, since = held
        if devices:
            ends = np.arange(1, self._tallies.hours + 1) * HOUR_SECONDS
            overlap = np.minimum(ends, at) - np.maximum(ends - HOUR_SECONDS, since)
            self._tallies.of(queue).device_seconds += devices * np.maximum(overlap, 0.0)
        return queue

    def _wait_until(self, cluster_queue: str, since: float, at: float) -> None:
        """Count a workload at the end of each hour in which it waits."""
        first = max(0, ceil(since / HOUR_SECONDS) - 1)
        last = self._tallies.hours if at == inf else ceil(at / HOUR_SECONDS) - 1
        self._tallies.of(cluster_queue).waiting[first : max(first, last)] += 1


def figures_of(tallies: Tallies, cluster_queues: Sequence[str], runs: int, hours: int) -> HourFigures:
    """Return the combined figures of some ClusterQueues in the first hours, over this many runs."""
    found = [tallies.of(name) for name in cluster_queues] or [_Tally.empty(tallies.hours)]
    waits = [np.array([wait for tally in found for wait in tally.waits[hour]]) for hour in range(hours)]
    waiting = np.sum([tally.waiting for tally in found], axis=0)[:hours]
    of_all = np.concatenate([*waits, np.full(int(waiting[-1]), inf)]) if hours else np.array([])
    return HourFigures(
        _means([tally.started for tally in found], runs, hours),
        _means([tally.ended for tally in found], runs, hours),
        _means([tally.waiting for tally in found], runs, hours),
        _means([tally.device_seconds / HOUR_SECONDS for tally in found], runs, hours),
        tuple(_quantile(each, 0.5) for each in waits),
        tuple(_quantile(each, 0.9) for each in waits),
        _quantile(of_all, 0.5),
        _quantile(of_all, 0.9),
    )


def _means(sums: Sequence[Floats], runs: int, hours: int) -> tuple[float, ...]:
    return tuple((np.sum(sums, axis=0)[:hours] / runs).tolist())


def _quantile(waits: Floats, part: float) -> float | None:
    """Return a wait that this part of the waits does not exceed; None if it is infinite, or there are none."""
    found = float(np.quantile(waits, part, method="inverted_cdf")) if waits.size else inf
    return found if isfinite(found) else None
