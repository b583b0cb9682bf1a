"""How much the engine takes in and decides at once.

A long batch costs less in all, and holds up everyone whose note comes meanwhile. So batches are long while one tenant
alone is heard of, and short for a while after a second one was.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from scheduler.store.changes import Changes


@dataclass(frozen=True, slots=True)
class Pace:
    """The size of a batch: notes of one tenant, steps outside the cycle, and seconds of cycles."""

    notes_of_a_tenant: int
    steps: int
    seconds: float


ALONE: Final = Pace(notes_of_a_tenant=250, steps=1000, seconds=0.2)
"""A transaction of this length is seldom refused."""
SHARED: Final = Pace(notes_of_a_tenant=25, steps=100, seconds=0.02)
SHARED_SECONDS: Final = 60.0
"""So long after two tenants were heard of."""


class Pacing:
    """Chooses the pace by who was heard of."""

    def __init__(self) -> None:
        """Nobody yet."""
        self._heard_at: dict[str, float] = {}

    def hear(self, changes: Changes, now: float) -> None:
        """Note whose workloads changed."""
        for key in changes.by_kind.get("workload", {}).values():
            self._heard_at[key.partition("/")[0]] = now

    def pace(self, now: float) -> Pace:
        """The pace of the batch that begins now."""
        self._heard_at = {tenant: at for tenant, at in self._heard_at.items() if now - at < SHARED_SECONDS}
        return SHARED if len(self._heard_at) > 1 else ALONE
