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


class Circles:
    """Counts preemptions, to see when they go in circles. One that lives over several `settle` sees circles that none
    of them is long enough to see."""

    def __init__(self) -> None:
        """Nothing seen."""
        self.closed = False
        """Whether some workload was preempted too often: the settling ends, and says so on those concerned."""
        self._preempted: Counter[str] = Counter()
        self._pairs: set[tuple[str, str]] = set()

    def note(self, result: CycleResult) -> None:
        """Count the preemptions of a cycle."""
        if not result.preemptions:
            return
        self._preempted.update(decision.workload for decision in result.preemptions)
        self._pairs.update((decision.workload, decision.preemptor) for decision in result.preemptions)
        self.closed = max(self._preempted.values()) >= PREEMPTIONS_PER_WORKLOAD

    def workloads(self) -> list[str]:
        """Those that were preempted again and again, and those that they made room for."""
        victims = {key for key, count in self._preempted.items() if count > PREEMPTIONS_PER_WORKLOAD // 2}
        return sorted(victims | {preemptor for victim, preemptor in self._pairs if victim in victims})


def settle(
    world: World, now: float, *, limit_idle: bool = False, circles: Circles | None = None
) -> Iterator[CycleResult]:
    """Run cycles at one instant: until no ClusterQueue has an active workload, or a cycle decided nothing and left all
    active workloads active. The caller may act between cycles. `limit_idle` also ends it after `IDLE_CYCLES` and more
    cycles in a row that decided nothing, as recorded runs of Kueue do.

    Preemption may go in circles while the clock stands still (19.2 B11): once a workload has been preempted
    `PREEMPTIONS_PER_WORKLOAD` times the rest waits for the next instant, and `world.note_livelock` says so on it. Pass
    `circles` to count on where an earlier call was left.
    """
    circles = Circles() if circles is None else circles
    queues = len(world.cluster_queue_names())
    idle = 0
    yield from _said(world)
    while world.has_active():
        result = world.run_cycle(now)
        circles.note(result)
        yield result
        yield from _said(world)
        if circles.closed:
            yield world.note_livelock(circles.workloads())
            return
        if result.decided:
            idle = 0
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
