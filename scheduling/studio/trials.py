"""Tries changes for one waiting workload: cycles until nothing more happens, then everything is undone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from scheduling.outlook import Effects, Outlook, decide_ahead, effects
from scheduling.studio.world_changes import Change, apply_changes
from scheduling.world import World


class Trials:
    """Trials of one World at one time. `go_on` is called between cycles: when it returns False, trials end early."""

    def __init__(self, world: World, key: str, now: float, go_on: Callable[[], bool] = lambda: True) -> None:
        """`key` is the workload that should start."""
        self.world = world
        self.key = key
        self.now = now
        self.count = 0
        self._go_on = go_on

    @cached_property
    def before(self) -> Outlook:
        """The decisions of the next cycles without any change."""
        return self.outlook(())

    def has_time(self) -> bool:
        """Return whether there is time for another trial."""
        return self._go_on()

    def outlook(self, changes: Sequence[Change]) -> Outlook:
        """Return the decisions of the next cycles after these changes. The World is unchanged afterwards."""
        self.count += 1
        point = self.world.savepoint()
        try:
            apply_changes(self.world, changes, self.now)
            return decide_ahead(self.world, self.now, self._go_on)
        finally:
            self.world.undo(point)

    def starts(self, changes: Sequence[Change]) -> bool:
        """Return whether the workload starts at once after these changes, and keeps its place as the others are
        decided."""
        return self.key in self.outlook(changes).starts

    def effects(self, changes: Sequence[Change]) -> Effects | None:
        """Return all effects of the changes compared with no change; None if the workload does not start."""
        after = self.outlook(changes)
        return effects(self.before, after) if self.key in after.starts else None
