"""Runs a trace through a configuration on the virtual cluster: waits, use, fairness, fragmentation and preemptions."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import Any, Final

import numpy as np

from scheduling.simulator.simulator import JobEvent, Simulator, build_simulator
from scheduling.simulator.trace_job import CLASSES, TraceJob
from scheduling.world import World

FRAGMENTATION_SAMPLES: Final = 200
"""The fragmentation is a mean of at most this many instants."""

ALL: Final = "all"
_HOUR: Final = 3600.0
AddNodes = Callable[[World], None]


@dataclass(frozen=True, slots=True)
class WaitFigures:
    """Waits for the first start, in seconds. Jobs that never start count as infinite waits; a quantile that falls on
    them is None."""

    jobs: int
    started: int
    median_seconds: float | None
    p90_seconds: float | None
    mean_of_started_seconds: float | None


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The use of a ClusterQueue in device hours. `below_hours`: below its nominal quota while it wanted more."""

    waits: WaitFigures
    nominal_devices: float
    used_hours: float
    below_hours: float
    preemptions: int
    lost_hours: float


@dataclass(frozen=True, slots=True)
class TraceFigures:
    """The figures of one configuration, from the first submission to the last one.

    * utilisation: the used part of all devices; the later work of jobs that still wait at the end is not in it.
    * fairness: Jain's index of used hours per nominal device, of the queues that wanted devices; 1: equal.
    * fragmented: the mean part of all devices that is idle and of no use to typical pods; None without nodes.
    * refused: jobs for which there is no LocalQueue.
    """

    jobs: int
    refused: int
    started: int
    finished: int
    hours: float
    devices: float
    utilisation: float | None
    fairness: float | None
    fragmented: float | None
    preemptions: int
    lost_hours: float
    waits: Mapping[str, WaitFigures]
    queues: Mapping[str, QueueFigures]


@dataclass(slots=True)
class _Queue:
    """Running sums of a ClusterQueue; rates are in devices."""

    nominal: float = 0.0
    held: float = 0.0
    waiting: float = 0.0
    used_seconds: float = 0.0
    below_seconds: float = 0.0
    preemptions: int = 0
    lost_seconds: float = 0.0
    jobs: list[tuple[str, TraceJob]] = field(default_factory=list)
    """With the key of its workload."""

    def pass_time(self, seconds: float) -> None:
        """Add the device seconds of a time in which nothing changed."""
        self.used_seconds += self.held * seconds
        self.below_seconds += max(0.0, min(self.nominal, self.held + self.waiting) - self.held) * seconds


def run_trace(
    configuration: Mapping[str, Any], jobs: Sequence[TraceJob], add_nodes: AddNodes | None = None
) -> TraceFigures:
    """Run the jobs through a configuration of manifests, with the keys of a scenario. `add_nodes` adds nodes with
    devices. Raises what reading the manifests raises, and ValueError without a job."""
    if not jobs:
        raise ValueError("trace: Required value: at least one job")
    simulator = build_simulator({**configuration, "workloads": ()})
    if add_nodes is not None:
        add_nodes(simulator.world)
    run = _TraceRun(simulator, configuration, jobs)
    run.run()
    return run.figures()


class _TraceRun:
    def __init__(self, simulator: Simulator, configuration: Mapping[str, Any], jobs: Sequence[TraceJob]) -> None:
        self._simulator = simulator
        self._world = simulator.world
        self._local_queues = _local_queues(configuration)
        for namespace in dict.fromkeys(key.partition("/")[0] for key in self._local_queues):
            if not any(each["metadata"]["name"] == namespace for each in configuration.get("namespaces") or ()):
                self._world.set_namespace(namespace, {})
        self._queues = {name: _Queue(_nominal(self._world, name)) for name in self._world.cluster_queue_names()}
        self._jobs: dict[str, tuple[TraceJob, _Queue]] = {}
        self._waits: dict[str, float] = {}
        """The wait for the first start, by workload."""
        self._running: dict[str, float] = {}
        """Since when a workload runs."""
        self._end = max(job.submitted_at for job in jobs)
        self._fragmented: list[float] = []
        self._refused = sum(not self._submit(job) for job in jobs)
        self._arrivals = deque(sorted(self._jobs.values(), key=lambda entry: entry[0].submitted_at))

    def _submit(self, job: TraceJob) -> bool:
        local_queue = self._local_queue_of(job)
        if local_queue is None or local_queue[1] not in self._queues:
            return False
        key, name = local_queue
        queue = self._queues[name]
        workload = job.workload(key, {row.resource for row in self._world.cluster_queue_status(name).usage})
        queue.jobs.append((workload.key, job))
        self._jobs[workload.key] = job, queue
        self._simulator.submit(workload, job.run_seconds)
        return True

    def _local_queue_of(self, job: TraceJob) -> tuple[str, str] | None:
        """Return the LocalQueue that the job names, else the first of its namespace, else the first of all."""
        found = self._local_queues
        for key in (f"{job.namespace}/{job.queue}", *(key for key in found if key.startswith(f"{job.namespace}/"))):
            if key in found:
                return key, found[key]
        return next(iter(found.items()), None)

    def run(self) -> None:
        """Run until all jobs have ended, or no waiting job can start."""
        before, next_sample, taken = 0.0, 0.0, 0
        for now in self._simulator.instants():
            seconds = min(now, self._end) - min(before, self._end)
            for queue in self._queues.values() if seconds > 0 else ():
                queue.pass_time(seconds)
            before = now
            while self._arrivals and self._arrivals[0][0].submitted_at <= now:
                job, queue = self._arrivals.popleft()
                queue.waiting += job.devices
            for event, key, at in self._simulator.events[taken:]:
                self._take(event, key, at)
            taken = len(self._simulator.events)
            if next_sample <= now <= self._end:
                self._sample_fragmentation()
                next_sample = now + self._end / FRAGMENTATION_SAMPLES

    def _take(self, event: JobEvent, key: str, now: float) -> None:
        job, queue = self._jobs[key]
        if event is JobEvent.STARTED:
            self._waits.setdefault(key, now - job.submitted_at)
            self._running[key] = now
            queue.held += job.devices
            queue.waiting -= job.devices
            return
        since = self._running.pop(key)
        queue.held -= job.devices
        if event is JobEvent.STOPPED:
            queue.waiting += job.devices
            queue.preemptions += 1
            queue.lost_seconds += job.devices * (now - since)

    def _sample_fragmentation(self) -> None:
        report = self._world.device_report()
        if report.devices and report.fragmented_milli is not None:
            self._fragmented.append(report.fragmented_milli / (1000 * report.devices))

    def figures(self) -> TraceFigures:
        queues = list(self._queues.values())
        devices = float(self._world.device_report().devices) or sum(queue.nominal for queue in queues)
        used, whole = sum(queue.used_seconds for queue in queues), devices * self._end
        every = [entry for queue in queues for entry in queue.jobs]
        return TraceFigures(
            jobs=len(every) + self._refused,
            refused=self._refused,
            started=len(self._waits),
            finished=len(self._simulator.finished),
            hours=self._end / _HOUR,
            devices=devices,
            utilisation=used / whole if whole else None,
            fairness=_jain([queue.used_seconds / queue.nominal for queue in queues if queue.jobs and queue.nominal]),
            fragmented=float(np.mean(self._fragmented)) if self._fragmented else None,
            preemptions=sum(queue.preemptions for queue in queues),
            lost_hours=sum(queue.lost_seconds for queue in queues) / _HOUR,
            waits={ALL: self._waits_of(every)}
            | {name: self._waits_of([entry for entry in every if entry[1].size == name]) for name in CLASSES},
            queues={name: self._of_queue(queue) for name, queue in self._queues.items() if queue.jobs},
        )

    def _of_queue(self, queue: _Queue) -> QueueFigures:
        return QueueFigures(
            self._waits_of(queue.jobs),
            queue.nominal,
            queue.used_seconds / _HOUR,
            queue.below_seconds / _HOUR,
            queue.preemptions,
            queue.lost_seconds / _HOUR,
        )

    def _waits_of(self, jobs: Sequence[tuple[str, TraceJob]]) -> WaitFigures:
        waits = np.array([self._waits.get(key, inf) for key, _ in jobs])
        started = waits[np.isfinite(waits)]
        return WaitFigures(
            len(jobs),
            int(started.size),
            _quantile(waits, 0.5),
            _quantile(waits, 0.9),
            float(started.mean()) if started.size else None,
        )


def _local_queues(configuration: Mapping[str, Any]) -> dict[str, str]:
    """Return the ClusterQueue of each LocalQueue (namespace/name), in the order of the manifests."""
    return {
        f"{each['metadata'].get('namespace') or 'default'}/{each['metadata']['name']}": each["spec"]["clusterQueue"]
        for each in configuration.get("localQueues") or ()
    }


def _nominal(world: World, cluster_queue: str) -> float:
    """Return the devices of its nominal quota."""
    resources = set(world.objects.device_resources())
    usage = world.cluster_queue_status(cluster_queue).usage
    return float(sum(row.nominal for row in usage if row.listed and row.resource in resources))


def _jain(shares: Sequence[float]) -> float | None:
    squares = sum(share * share for share in shares)
    return sum(shares) ** 2 / (len(shares) * squares) if squares else None


def _quantile(waits: np.ndarray[Any, Any], part: float) -> float | None:
    found = float(np.quantile(waits, part, method="inverted_cdf")) if waits.size else inf
    return found if isfinite(found) else None
