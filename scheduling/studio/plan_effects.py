"""Computes the effects of some changes: the next cycles are tried with and without them, and undone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from scheduling.model.vocabulary import ConditionType
from scheduling.outlook import Effects, Eviction, Outlook, decide_ahead, effects, eviction, present_state
from scheduling.state.status import Usage
from scheduling.studio.world_changes import Change, apply_changes
from scheduling.world import World

FIRST_CYCLES = 3
"""The first answer comes after this number of cycles with the changes."""
ENDED = "Ended"
"""The reason of an eviction by the changes themselves: they end the workload."""

GoOn = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A ClusterQueue: how many workloads wait and hold quota, its weighted share, and its usage."""

    pending: int
    reserving: int
    weighted_share: float
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices: their number, the number of those that hold a slice, and the idle part that is too fragmented for
    typical pods, in thousandths of a device; None without typical pods.
    """

    count: int
    used: int
    fragmented_milli: float | None


@dataclass(frozen=True, slots=True)
class Wait:
    """A waiting workload: its ClusterQueue, and why it waits."""

    cluster_queue: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class State:
    """The figures of a World when its cycles are idle."""

    queues: Mapping[str, QueueFigures]
    waiting: Mapping[str, Wait]
    devices: Devices


@dataclass(frozen=True, slots=True)
class FirstAnswer:
    """The effects of the first cycles, compared with as many cycles without the changes."""

    effects: Effects
    evictions: tuple[Eviction, ...]


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The effects until the cycles are idle. `before` and `after` are the states then, without and with the changes."""

    effects: Effects
    evictions: tuple[Eviction, ...]
    before: State
    after: State
    cycles: int

    @property
    def waits(self) -> dict[str, tuple[str, Wait]]:
        """Return the workloads that wait because of the changes, or wait for another reason, each with its reason
        without the changes (empty if it did not wait) and its wait."""
        before = self.before.waiting
        return {
            key: (before[key].reason if key in before else "", wait)
            for key, wait in self.after.waiting.items()
            if key not in before or before[key].reason != wait.reason
        }


def what_if(
    world: World,
    changes: Sequence[Change],
    now: float,
    go_on: GoOn = lambda: True,
    tell: Callable[[FirstAnswer], None] = lambda _: None,
) -> WhatIf:
    """Try the changes with cycles. The World is unchanged afterwards. Raises KeyError for a change of an unknown node.

    `tell` is called with the first answer. `go_on` is called between cycles; when it returns False, the effects are
    those of the cycles so far, and not complete.
    """
    without, before = _tried(world, (), now, _for_cycles(FIRST_CYCLES, go_on))
    with_them, after = _tried(world, changes, now, _for_cycles(FIRST_CYCLES, go_on))
    tell(FirstAnswer(effects(without, with_them), _beyond(with_them, without)))
    if not without.complete:
        without, before = _tried(world, (), now, go_on)
    if not with_them.complete:
        with_them, after = _tried(world, changes, now, go_on)
    return WhatIf(effects(without, with_them), _beyond(with_them, without), before, after, with_them.cycles)


def _for_cycles(count: int, go_on: GoOn) -> GoOn:
    left = iter(range(count - 1))
    return lambda: next(left, None) is not None and go_on()


def _tried(world: World, changes: Sequence[Change], now: float, go_on: GoOn) -> tuple[Outlook, State]:
    """Return the decisions after the changes, and the state then."""
    point = world.savepoint()
    try:
        may_evict = bool(changes) or bool(world.objects.reservations)
        holding = world.objects.reserving() if may_evict else {}
        running = {key: eviction(world, key, queue, ENDED, now) for key, queue in holding.items()}
        apply_changes(world, changes, now)
        for key in world.evict_for_windows(now):
            world.release_workload(key, now)
        left = world.objects.reserving() if may_evict else {}
        by_changes = {key: _by_change(world, lost, now) for key, lost in running.items() if key not in left}
        loads, inactive = present_state(world)
        decided = decide_ahead(world, now, go_on)
        outlook = replace(decided, loads=loads, inactive=inactive, evictions={**decided.evictions, **by_changes})
        return outlook, _state(world)
    finally:
        world.undo(point)


def _by_change(world: World, lost: Eviction, now: float) -> Eviction:
    """Return the eviction with its reason, if the workload waits again."""
    found = world.workload(lost.workload)
    evicted = found.condition(ConditionType.EVICTED) if found is not None else None
    return lost if evicted is None else replace(lost, reason=evicted.reason)


def _beyond(after: Outlook, before: Outlook) -> tuple[Eviction, ...]:
    return tuple(lost for key, lost in sorted(after.evictions.items()) if key not in before.evictions)


def _state(world: World) -> State:
    queues: dict[str, QueueFigures] = {}
    waiting: dict[str, Wait] = {}
    for name in world.cluster_queue_names():
        status = world.cluster_queue_status(name)
        pending = status.pending + status.inadmissible
        queues[name] = QueueFigures(pending, status.reserving, status.weighted_share, status.usage)
        why = "" if status.active else status.message or str(status.reason)
        for position in world.pending(name):
            reason = str(status.reason) if why else str(position.reason)
            waiting[position.workload] = Wait(name, reason, why or position.message)
    report = world.device_report()
    return State(queues, waiting, Devices(report.devices, world.used_device_count(), report.fragmented_milli))
