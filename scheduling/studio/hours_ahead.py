"""The hours after a plan: forward runs of the same futures without and with its changes, as figures by ClusterQueue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from scheduling.estimates.estimator import draw_lengths
from scheduling.estimates.run_times import MIN_ENDED_RUNS, RunHistory
from scheduling.estimates.snapshot import RunningWorkload, Unknown, WaitingWorkload
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.outlook import stop_reason
from scheduling.studio.forward_cycles import ForwardCycles, GoOn, Steps
from scheduling.studio.hour_figures import HOUR_SECONDS, HourFigures, HourLog, Tallies, figures_of
from scheduling.studio.workload_lengths import (
    STOPPING_SECONDS,
    bounded_lengths,
    known_workload,
    running_workloads,
    waiting_workloads,
)
from scheduling.studio.world_changes import Change, apply_changes, evict_and_requeue
from scheduling.world import World

MAX_HOURS: Final = 24
RUNS: Final = 16
MIN_RUNS: Final = 2
"""Further runs are made while there is time. The two runs of a pair differ by the changes alone, so that few pairs tell
the difference."""
_STEPS: Final = Steps(share=0.03, min_seconds=300.0)
"""Larger steps than those of estimates, because the figures are of whole hours, and a day must fit into the time."""

HasTime = Callable[[float], bool]
"""Whether less than this share of the whole time has passed."""


@dataclass(frozen=True, slots=True)
class QueueHours:
    """The figures of one ClusterQueue, or of all (an empty name), without and with the changes; None where run times
    are known of fewer than half of its workloads.

    `workloads` wait or hold quota. `with_run_times` is the number of them whose own length is declared, or of whose
    like enough runs have ended.
    """

    name: str
    workloads: int
    with_run_times: int
    before: HourFigures | None
    after: HourFigures | None


@dataclass(frozen=True, slots=True)
class HoursAhead:
    """The figures of `hours` whole hours, at most as many as were asked for, by `runs` pairs of forward runs.

    `unknown` says why there are none. `ended_runs` is the number of ended runs from which run times are drawn.
    Queues whose figures differ most, in device hours and then in waiting workloads, are first; queues without figures
    are last.
    """

    asked_hours: int
    hours: int
    runs: int
    ended_runs: int
    total: QueueHours
    queues: tuple[QueueHours, ...]
    unknown: Unknown | None = None


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two futures at its beginning: the workloads that hold quota, the workloads that wait, and their
    ClusterQueues."""

    changes: Sequence[Change]
    running: Mapping[str, RunningWorkload]
    waiting: Mapping[str, WaitingWorkload]
    queues: Mapping[str, str]
    stopping: frozenset[str]


def hours_ahead(
    world: World,
    changes: Sequence[Change],
    now: float,
    history: RunHistory,
    random: np.random.Generator,
    hours: int = MAX_HOURS,
    has_time: HasTime = lambda _: True,
) -> HoursAhead:
    """Run forward for so many hours. The World is unchanged afterwards. Raises what the changes raise.

    Both futures of a pair have the same run times, so that they differ by the changes alone. Runs that are cut shorten
    the hours. Later arrivals are not simulated.
    """
    sides = [_side(world, each, now) for each in ((), changes)]
    lengths = _Lengths(sides, history, now, random)
    found = _Runs(world, now, hours, sides, lengths)
    if lengths.are_known:
        found.run(has_time)
    reach = found.reach if lengths.are_known else 0
    names = sorted({name for side in sides for name in side.queues.values()})
    queues = tuple(sorted((_of_queue(name, [name], lengths, found, reach) for name in names), key=_order))
    unknown = None if reach else Unknown.BEYOND_REACH if lengths.are_known else Unknown.NO_RUN_ENDED
    return HoursAhead(
        hours, reach, found.pairs, history.count, _of_queue("", names, lengths, found, reach), queues, unknown
    )


def _of_queue(name: str, queues: Sequence[str], lengths: _Lengths, runs: _Runs, reach: int) -> QueueHours:
    workloads, known = (sum(counts.get(queue, 0) for queue in queues) for counts in (lengths.count, lengths.known))
    if not reach or 2 * known < workloads:
        return QueueHours(name, workloads, known, None, None)
    before, after = (figures_of(tallies, queues, runs.pairs, reach) for tallies in runs.tallies)
    return QueueHours(name, workloads, known, before, after)


def _order(queue: QueueHours) -> tuple[bool, float, float, int, str]:
    """Return the place of a queue: the largest change first; of equal changes, the queue with the most workloads."""
    if queue.before is None or queue.after is None:
        return True, 0.0, 0.0, -queue.workloads, queue.name
    devices = abs(sum(queue.after.device_hours) - sum(queue.before.device_hours))
    waiting = abs(sum(queue.after.waiting) - sum(queue.before.waiting))
    return False, -devices, -waiting, -queue.workloads, queue.name


def _prepare(world: World, changes: Iterable[Change], now: float) -> None:
    """Make the changes, and their evictions. Their pods have stopped at once."""
    apply_changes(world, changes, now)
    for key in world.evict_for_windows(now):
        world.release_workload(key, now)
    for key, queue in world.drained_workloads().items():
        evict_and_requeue(world, key, stop_reason(world, queue), "The queue is stopped", now)


def _side(world: World, changes: Sequence[Change], now: float) -> _Side:
    point = world.savepoint()
    try:
        _prepare(world, changes, now)
        running = running_workloads(world)
        queues = world.objects.reserving()
        waiting: dict[str, WaitingWorkload] = {}
        for name in world.cluster_queue_names():
            for each in waiting_workloads(world, name):
                waiting[each.key] = each
                queues[each.key] = name
        stopping = {key for key in running if known_workload(world, key).status is WorkloadStatus.EVICTED}
        return _Side(changes, running, waiting, queues, frozenset(stopping))
    finally:
        world.undo(point)


class _Lengths:
    """The run times of all workloads of both futures, the same in both."""

    def __init__(self, sides: Sequence[_Side], history: RunHistory, now: float, random: np.random.Generator) -> None:
        self._history = history
        running = {key: each for side in sides for key, each in side.running.items()}
        waiting = {key: each for side in sides for key, each in side.waiting.items() if key not in running}
        self.count: dict[str, int] = {}
        self.known: dict[str, int] = {}
        queues = {key: queue for side in reversed(sides) for key, queue in side.queues.items()}
        for key, each in (running | waiting).items():
            queue = queues[key]
            self.count[queue] = self.count.get(queue, 0) + 1
            self.known[queue] = self.known.get(queue, 0) + self._is_known(each)
        drawn = draw_lengths(history, [*running.values()], [*waiting.values()], now, random, RUNS)
        self.are_known = drawn is not None
        if drawn is not None:
            self._rows = bounded_lengths(drawn, running, [*waiting.values()], now)
        self._keys = [*running, *waiting]
        self._ages = [max(0.0, now - each.since) for each in running.values()]

    def _is_known(self, each: RunningWorkload | WaitingWorkload) -> bool:
        own = each.levels[:-1]  # the last one is of all workloads
        ended = (len(self._history.ended(level, as_shares=False)) for level in own)
        return bool(each.declared_seconds) or max(ended, default=0) >= MIN_ENDED_RUNS

    def of_run(self, number: int) -> tuple[dict[str, float], dict[str, float]]:
        """Return the remaining seconds of each workload in one future, and its whole length."""
        row = self._rows[number].tolist()
        whole = [left + age for left, age in zip(row, self._ages, strict=False)]
        return dict(zip(self._keys, row, strict=True)), dict(zip(self._keys, whole + row[len(whole) :], strict=True))


class _Runs:
    """Pairs of forward runs, and the tallies of each side."""

    def __init__(self, world: World, now: float, hours: int, sides: Sequence[_Side], lengths: _Lengths) -> None:
        self._world = world
        self._now = now
        self._hours = hours
        self._sides = sides
        self._lengths = lengths
        self.tallies = [Tallies(hours) for _ in sides]
        self.pairs = 0
        self.reach = hours

    def run(self, has_time: HasTime) -> None:
        """Make the pairs: the first ones share the whole time, further ones are made as long as another one fits."""
        for number in range(RUNS):
            if number >= MIN_RUNS and not has_time(number / (number + 1)):
                return
            shares = (1.0, 1.0) if number >= MIN_RUNS else ((number + 0.5) / MIN_RUNS, (number + 1) / MIN_RUNS)
            found = [Tallies(self._hours) for _ in self._sides]
            reach = min(
                self._one(side, tallies, number, partial(has_time, share))
                for side, tallies, share in zip(self._sides, found, shares, strict=True)
            )
            if self.pairs and 2 * reach < self.reach:
                return  # fewer pairs say more than shorter ones
            self.reach = min(self.reach, reach)
            for tallies, more in zip(self.tallies, found, strict=True):
                tallies.add(more)
            self.pairs += 1

    def _one(self, side: _Side, tallies: Tallies, number: int, go_on: GoOn) -> int:
        """Make a run; return the whole hours that it reached."""
        world, now, horizon = self._world, self._now, self._hours * HOUR_SECONDS
        remaining, lengths = self._lengths.of_run(number)
        ends = {key: remaining[key] for key in side.running} | dict.fromkeys(side.stopping, STOPPING_SECONDS)
        point = world.savepoint()
        try:
            _prepare(world, side.changes, now)
            log = HourLog(world, tallies, horizon)
            for key in side.running:
                log.holds(key, side.queues[key])
            for key, each in side.waiting.items():
                log.waits(key, side.queues[key], each.queued_at - now)
            run = ForwardCycles(world, now, ends, lengths, log, horizon, _STEPS)
            run.play(lambda: False, go_on)
            log.close()
        finally:
            world.undo(point)
        return int(run.reached // HOUR_SECONDS) if run.is_cut else self._hours


def no_hours(asked_hours: int, why: Unknown) -> HoursAhead:
    """Return the answer if the runs could not be made."""
    nothing = QueueHours("", 0, 0, None, None)
    return HoursAhead(asked_hours, 0, 0, 0, nothing, (), why)
