"""Chooses how many changes the engine reads and decides per batch.

A long batch has less overhead but delays all changes that arrive meanwhile. So batches are long while all changes come
from one tenant, and short for some time after a second tenant was seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.store.changes import Changes


@dataclass(frozen=True, slots=True)
class Pace:
    """The size of a batch: notes per line of a tenant, steps outside the cycle, and seconds of cycles."""

    notes_of_a_line: int
    steps: int
    seconds: float


ALONE: Final = Pace(notes_of_a_line=250, steps=1000, seconds=0.2)
"""A transaction of this length is seldom refused."""
SHARED: Final = Pace(notes_of_a_line=25, steps=100, seconds=0.02)
SHARED_SECONDS: Final = 60.0
"""How long batches stay short after two tenants were seen."""


class Pacing:
    """Chooses the pace by the tenants whose workloads change."""

    def __init__(self) -> None:
        self._heard_at: dict[str, float] = {}

    def hear(self, changes: Changes, now: float) -> None:
        """Note the tenants whose workloads changed."""
        for key in changes.by_kind.get("workload", {}).values():
            self._heard_at[key.partition("/")[0]] = now

    def pace(self, now: float) -> Pace:
        """Return the pace of the next batch."""
        self._heard_at = {tenant: at for tenant, at in self._heard_at.items() if now - at < SHARED_SECONDS}
        return SHARED if len(self._heard_at) > 1 else ALONE
