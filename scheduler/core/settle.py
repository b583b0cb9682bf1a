"""Cycles until nothing more happens while the clock stands still."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from scheduler.core.decisions import CycleResult
from scheduler.core.world import World

IDLE_CYCLES = 8
"""Cycles without a decision that are run in a row, beside two per ClusterQueue and one per ClusterQueue still
active."""
PREEMPTIONS_PER_WORKLOAD = 16
"""How often one workload may be preempted at one instant before that counts as going in circles."""


def settle(world: World, now: float, *, limit_idle: bool = False) -> Iterator[CycleResult]:
    """Run cycles at one instant: until no ClusterQueue has an active workload, or a cycle decided nothing and left all
    active workloads active. The caller may act between cycles. `limit_idle` also ends it after `IDLE_CYCLES` and more
    cycles in a row that decided nothing, as recorded runs of Kueue do.

    Preemption may go in circles while the clock stands still (19.2 B11): once a workload has been preempted
    `PREEMPTIONS_PER_WORKLOAD` times the rest waits for the next instant, and `world.note_livelock` says so on it.
    """
    preempted: Counter[str] = Counter()
    pairs: set[tuple[str, str]] = set()
    queues = len(world.cluster_queue_names())
    idle = 0
    yield from _said(world)
    while world.has_active():
        result = world.run_cycle(now)
        yield result
        yield from _said(world)
        if result.decided:
            idle = 0
            preempted.update(decision.workload for decision in result.preemptions)
            pairs.update((decision.workload, decision.preemptor) for decision in result.preemptions)
            if preempted and max(preempted.values()) >= PREEMPTIONS_PER_WORKLOAD:
                yield world.note_livelock(_circling(preempted, pairs))
                return
        elif not result.progressed:
            return
        else:
            idle += 1
            if limit_idle and idle > IDLE_CYCLES + 2 * queues + world.active_queue_count():
                return


def _said(world: World) -> Iterator[CycleResult]:
    """What was said outside of a cycle, as a result without decisions."""
    said = world.take_outcomes()
    if said is not None:
        yield said


def _circling(preempted: Counter[str], pairs: set[tuple[str, str]]) -> list[str]:
    """The workloads that were preempted again and again, and those that they made room for."""
    victims = {key for key, count in preempted.items() if count > PREEMPTIONS_PER_WORKLOAD // 2}
    return sorted(victims | {preemptor for victim, preemptor in pairs if victim in victims})
