"""Runs cycles at one instant until they are idle."""

from __future__ import annotations

from collections.abc import Iterator

from scheduling.model.decisions import CycleResult
from scheduling.world import World

IDLE_CYCLES = 8
"""How many cycles without a decision may run in a row, in addition to two per ClusterQueue and one per active
ClusterQueue."""


def run_until_idle(world: World, now: float, *, limit_idle: bool = False) -> Iterator[CycleResult]:
    """Run cycles at one instant, until no ClusterQueue has an active workload, or until a cycle makes no decision and
    leaves all active workloads active.

    The caller may act between cycles. With `limit_idle` the run also ends after more than `IDLE_CYCLES` consecutive
    cycles without a decision, like recorded runs of Kueue. The run always ends, because workloads in a preemption loop
    are paused (`scheduling.state.preemption_loops`).
    """
    yield from _cycles(world, now, limit_idle=limit_idle)
    while (said := world.drain_outcomes()) is not None:
        yield said


def _cycles(world: World, now: float, *, limit_idle: bool) -> Iterator[CycleResult]:
    queues = len(world.cluster_queue_names())
    idle = 0
    yield from _said(world)
    while world.has_active():
        result = world.run_cycle(now)
        yield result
        yield from _said(world)
        if result.decided or result.read:
            idle = 0
        elif not result.progressed:
            return
        else:
            idle += 1
            if limit_idle and idle > IDLE_CYCLES + 2 * queues + world.active_queue_count():
                return


def _said(world: World) -> Iterator[CycleResult]:
    """Yield the outcomes that were decided outside of a cycle, as results without decisions."""
    for said in (world.pause_preemption_loops(), world.drain_outcomes()):
        if said is not None:
            yield said
