"""Replays a trace of pods that take whole devices, and estimates each start from the information at its time.

The queue is best-effort FIFO: at each moment, every waiting pod is tried in the order of creation. A pod takes the node
with the fewest free devices that has enough, the first of equal ones. All nodes have eight devices.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

import numpy as np

from scheduling.estimates.estimator import STAGES_SECONDS, Estimator
from scheduling.estimates.judgement import JudgedEstimate, accuracy, median_error
from scheduling.estimates.rivals import RecentWaits, plan_with_longest_runs
from scheduling.estimates.snapshot import (
    EndedRun,
    Levels,
    RunningWorkload,
    Snapshot,
    StartEstimate,
    WaitingWorkload,
)

DEVICES_PER_NODE: Final = 8


@dataclass(frozen=True, slots=True)
class TracePod:
    """A pod of a trace; times in seconds. `levels` are the groups of like pods, the narrowest first."""

    name: str
    created_at: int
    run_seconds: int
    devices: int
    levels: Levels
    declared_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class TraceEstimate:
    """An estimate made in the replay, the rivals' estimates at the same time, and the remaining wait in seconds."""

    pod: str
    stage: int
    made_at: int
    estimate: StartEstimate
    waited: int
    mean_wait: float
    longest_runs: float | None
    """Planned at submission only."""


@dataclass(frozen=True, slots=True)
class PlacedPod:
    """When a pod starts, and the index of its node."""

    start: int
    node: int


def placements(pods: Sequence[TracePod], device_count: int) -> list[PlacedPod]:
    """Return the start of each pod, by the queue's rule. `pods` are in the order of creation.

    Raises ValueError for a number of devices that is no multiple of eight, and for a pod that fits on no node.
    """
    if device_count <= 0 or device_count % DEVICES_PER_NODE:
        raise ValueError(f"gpus: Invalid value: {device_count}: must be a positive multiple of {DEVICES_PER_NODE}")
    for pod in pods:
        if pod.devices > DEVICES_PER_NODE:
            raise ValueError(f"{pod.name}: Invalid value: {pod.devices}: a node has {DEVICES_PER_NODE} devices")
    free = [DEVICES_PER_NODE] * (device_count // DEVICES_PER_NODE)
    placed: dict[int, PlacedPod] = {}
    ends: list[tuple[int, int]] = []
    waiting: list[int] = []
    coming = 0
    while coming < len(pods) or ends:
        next_end = ends[0][0] if ends else None
        next_pod = pods[coming].created_at if coming < len(pods) else None
        now = min(at for at in (next_end, next_pod) if at is not None)
        while ends and ends[0][0] <= now:
            ended = heapq.heappop(ends)[1]
            free[placed[ended].node] += pods[ended].devices
        while coming < len(pods) and pods[coming].created_at <= now:
            waiting.append(coming)
            coming += 1
        waiting = _start_fitting(pods, waiting, free, placed, ends, now)
    return [placed[index] for index in range(len(pods))]


def _start_fitting(
    pods: Sequence[TracePod],
    waiting: list[int],
    free: list[int],
    placed: dict[int, PlacedPod],
    ends: list[tuple[int, int]],
    now: int,
) -> list[int]:
    """Start each pod that fits, in order; return the pods that still wait."""
    rest = []
    for index in waiting:
        fitting = [node for node, devices in enumerate(free) if devices >= pods[index].devices]
        if not fitting:
            rest.append(index)
            continue
        node = min(fitting, key=free.__getitem__)
        free[node] -= pods[index].devices
        placed[index] = PlacedPod(now, node)
        heapq.heappush(ends, (now + pods[index].run_seconds, index))
    return rest


def replay(pods: Sequence[TracePod], device_count: int, seed: int) -> Iterator[TraceEstimate]:
    """Yield the estimates of all pods that do not start at once, at submission and at each later stage, in order of
    time. Each estimate uses only the information of its time: ended runs, the ages of the others, and the queue."""
    placed = placements(pods, device_count)
    moments = sorted(
        (pod.created_at + stage, index, stage)
        for index, pod in enumerate(pods)
        for stage in STAGES_SECONDS
        if placed[index].start > pod.created_at + stage
    )
    known = _Known(pods, placed, device_count)
    for now, index, stage in moments:
        known.advance(now)
        snapshot = known.snapshot(now, index)
        position = len(snapshot.waiting) - 1
        # One seed per estimate, so that none depends on the number made before.
        random = np.random.default_rng([seed, index, stage])
        found = known.estimator.estimate(snapshot, position, random)
        known.estimator.remember(str(index), stage, now, found)
        yield TraceEstimate(
            pods[index].name,
            stage,
            now,
            found,
            placed[index].start - now,
            known.waits.mean(now),
            plan_with_longest_runs(snapshot, known.estimator.history) if stage == 0 else None,
        )


class _Known:
    """The knowledge at one moment of the trace."""

    def __init__(self, pods: Sequence[TracePod], placed: Sequence[PlacedPod], device_count: int) -> None:
        self.estimator = Estimator()
        self.waits = RecentWaits()
        self._pods = pods
        self._placed = placed
        self._nodes = device_count // DEVICES_PER_NODE
        self._running: dict[int, RunningWorkload] = {}
        self._waiting: dict[int, WaitingWorkload] = {}
        # Ends before starts, at equal times: a start at that moment uses what the end released.
        events = [(pod.created_at, 0, index) for index, pod in enumerate(pods)]
        events += [(placed[index].start, 2, index) for index in range(len(pods))]
        events += [(placed[index].start + pod.run_seconds, 1, index) for index, pod in enumerate(pods)]
        self._events = sorted(events, reverse=True)

    def advance(self, now: int) -> None:
        """Process all events until `now`."""
        while self._events and self._events[-1][0] <= now:
            at, kind, index = self._events.pop()
            (self._created, self._ended, self._started)[kind](index, at)

    def snapshot(self, now: int, index: int) -> Snapshot:
        """Return the queue up to the pod of this index, and the devices."""
        free = [DEVICES_PER_NODE] * self._nodes
        for each in self._running.values():
            free[each.place] -= each.amounts[0]
        waiting = tuple(workload for each, workload in self._waiting.items() if each <= index)
        return Snapshot(now, tuple((count,) for count in free), tuple(self._running.values()), waiting)

    def _created(self, index: int, at: int) -> None:
        pod = self._pods[index]
        self._waiting[index] = WaitingWorkload(str(index), pod.levels, at, (pod.devices,), pod.declared_seconds)

    def _ended(self, index: int, at: int) -> None:
        pod = self._pods[index]
        del self._running[index]
        self.estimator.history.add(EndedRun(pod.levels, pod.run_seconds, pod.declared_seconds))

    def _started(self, index: int, at: int) -> None:
        pod = self._pods[index]
        del self._waiting[index]
        node = self._placed[index].node
        self._running[index] = RunningWorkload(pod.levels, at, node, (pod.devices,), pod.declared_seconds)
        self.waits.started(at, at - pod.created_at)
        self.estimator.started(str(index), at)


def judged_replay(pods: Sequence[TracePod], device_count: int, seed: int) -> dict[str, object]:
    """Return the accuracy of all estimates of the replay and of both rivals, in seconds, as JSON has it."""
    found = list(replay(pods, device_count, seed))
    at_submission = [each for each in found if each.stage == 0]
    own = accuracy([_judged(each) for each in at_submission])
    rivals = {
        "mean_wait_of_last_hour": median_error([each.mean_wait - each.waited for each in at_submission]),
        "plan_with_longest_runs": median_error(
            [each.longest_runs - each.waited for each in at_submission if each.longest_runs is not None]
        ),
    }
    better = min((error for error in rivals.values() if error is not None), default=None)
    error = own.median_error_seconds
    return {
        "pods": len(pods),
        "waiting": len(at_submission),
        "gpus": device_count,
        "seed": seed,
        "estimate": asdict(own),
        "rivals_median_error_seconds": rivals,
        "better_rival_median_error_seconds": better,
        "error_ratio_to_better_rival": error / better if error is not None and better else None,
        "stages": {str(stage): _stage(found, stage) for stage in STAGES_SECONDS},
    }


def _stage(found: Sequence[TraceEstimate], stage: int) -> dict[str, object]:
    """Return the accuracy at a stage, and the error at submission of the same pods."""
    here = [each for each in found if each.stage == stage]
    names = {each.pod for each in here}
    before = [_judged(each) for each in found if each.stage == 0 and each.pod in names]
    return {
        **asdict(accuracy([_judged(each) for each in here])),
        "median_error_seconds_of_the_same_at_submission": accuracy(before).median_error_seconds,
    }


def _judged(found: TraceEstimate) -> JudgedEstimate:
    return JudgedEstimate(found.waited, found.estimate.p10, found.estimate.p50, found.estimate.p90)
