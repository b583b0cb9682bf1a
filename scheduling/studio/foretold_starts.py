"""When the waiting workloads of a World start: run times of similar workloads, forward runs with cycles, and a
correction by past estimates and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt

from scheduling.estimates.estimator import Estimator, draw_remaining
from scheduling.estimates.run_times import RunHistory
from scheduling.estimates.snapshot import RunningWorkload, Snapshot, StartEstimate, Unknown, WaitingWorkload
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.studio.forward_cycles import ForwardCycles
from scheduling.studio.workload_lengths import (
    STOPPING_SECONDS,
    bounded_lengths,
    known_workload,
    running_workloads,
    waiting_workloads,
)
from scheduling.world import World

Floats = npt.NDArray[np.float64]
HasTime = Callable[[float], bool]
"""Whether less than this share of the whole time has passed."""

DRAWS: Final = 16
"""Forward runs. Each is a World's future: the interval comes from past errors, and the runs only give its centre."""
MIN_DRAWS: Final = 4
MAX_ESTIMATED: Final = 10_000
"""Workloads that are estimated in one round; more would not fit into its answer."""
MAX_SECONDS: Final = 10 * 365 * 86_400.0
"""A later start is beyond the reach of the runs: tenants declare maxima of many years, and dates have an end."""


@dataclass(frozen=True, slots=True)
class ForetoldStart:
    """The estimate of one waiting workload. `tree` is the root of its cohort tree: estimates of a tree are compared
    with each other."""

    workload: str
    uid: str
    cluster_queue: str
    tree: str
    queued_at: float
    estimate: StartEstimate
    is_tried: bool = True
    """False: more workloads wait than are estimated in one round, and this one waits behind them."""


def foretell_starts(
    world: World,
    now: float,
    history: RunHistory,
    estimators: Mapping[str, Estimator],
    random: np.random.Generator,
    has_time: HasTime = lambda _: True,
    max_estimated: int = MAX_ESTIMATED,
) -> list[ForetoldStart]:
    """Return the estimates of all workloads that wait in an active ClusterQueue.

    The World is unchanged afterwards. At most `max_estimated` workloads are tried, the first ones of each ClusterQueue;
    the others are beyond reach. `estimators`, by tree, hold past estimates; a tree without an estimator has no
    estimates. Each forward run gets an equal share of the time. If runs are cut off, the workloads that they did not
    reach are unknown.
    """
    queues = {name: waiting_workloads(world, name) for name in world.cluster_queue_names() if _is_active(world, name)}
    waiting = [each for found in queues.values() for each in found]
    running = running_workloads(world)
    tried = _tried(queues, max_estimated)
    asked = frozenset(each.key for name, count in tried.items() for each in queues[name][:count])
    lasts = draw_remaining(history, [*running.values()], waiting, now, random, DRAWS)
    starts, is_cut = None, False
    if lasts is not None:
        bounded = bounded_lengths(lasts, running, waiting, now)
        starts, is_cut = _forward(world, now, running, waiting, asked, bounded, has_time)
    found: list[ForetoldStart] = []
    first = 0
    for name, of_queue in queues.items():
        count = tried[name]
        columns = None if starts is None else starts[:, first : first + count]
        first += len(of_queue)
        tree = tree_of(world, name)
        estimator = estimators.get(tree) or Estimator(history)
        answers = estimator.answers(Snapshot(now, (), (), tuple(of_queue[:count])), columns)
        answers += [StartEstimate(unknown=Unknown.BEYOND_REACH)] * (len(of_queue) - count)
        for place, (each, answer) in enumerate(zip(of_queue, answers, strict=True)):
            uid, estimate = known_workload(world, each.key).uid, _with_reach(answer, is_cut)
            found.append(ForetoldStart(each.key, uid, name, tree, each.queued_at, estimate, is_tried=place < count))
    return found


def _tried(queues: Mapping[str, Sequence[WaitingWorkload]], max_estimated: int) -> Counter[str]:
    """Return how many of each ClusterQueue are estimated: its first, then its second, so that no queue crowds out
    another."""
    places = sorted((place, name) for name, waiting in queues.items() for place in range(len(waiting)))
    return Counter(name for _, name in places[:max_estimated])


def tree_of(world: World, cluster_queue: str) -> str:
    """Return the name of the root cohort above a ClusterQueue, or its own name if it has none."""
    above = world.objects.cohorts_above(cluster_queue)
    return f"cohort {above[-1]}" if above else f"queue {cluster_queue}"


def _is_active(world: World, cluster_queue: str) -> bool:
    return world.cluster_queue_status(cluster_queue).active


def _forward(
    world: World,
    now: float,
    running: Mapping[str, RunningWorkload],
    waiting: Sequence[WaitingWorkload],
    asked: frozenset[str],
    lasts: Floats,
    has_time: HasTime,
) -> tuple[Floats, bool]:
    """Return (draws, waiting) starts in seconds from now, and whether a run was cut. A run ends when the workloads that
    are asked for have started."""
    ages = np.array([max(0.0, now - each.since) for each in running.values()])
    stopping = {key for key in running if known_workload(world, key).status is WorkloadStatus.EVICTED}
    rows: list[list[float]] = []
    is_cut = False
    for draw, row in enumerate(lasts):
        share = (draw + 1) / len(lasts)
        if draw >= MIN_DRAWS and not has_time(share - 1 / len(lasts)):
            break
        ends = dict(zip(running, row.tolist(), strict=False))
        lengths = dict(zip(running, (row[: len(running)] + ages).tolist(), strict=True))
        lengths |= {each.key: length for each, length in zip(waiting, row[len(running) :].tolist(), strict=True)}
        run = ForwardCycles(world, now, ends | dict.fromkeys(stopping, STOPPING_SECONDS), lengths)
        run.run(asked, partial(has_time, share))
        is_cut |= run.is_cut
        rows.append([run.starts.get(each.key, np.inf) for each in waiting])
    return np.array(rows, dtype=np.float64), is_cut


def _with_reach(estimate: StartEstimate, is_cut: bool) -> StartEstimate:
    if estimate.p90 is not None and estimate.p90 > MAX_SECONDS:
        return replace(estimate, p10=None, p50=None, p90=None, unknown=Unknown.BEYOND_REACH)
    if is_cut and estimate.unknown is Unknown.NO_START_FORESEEN:
        return replace(estimate, unknown=Unknown.BEYOND_REACH)
    return estimate
