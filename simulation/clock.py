"""Time in the simulated cluster."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """The source of the simulated time. A time scale divides durations of pods and jobs, never timestamps."""

    def now(self) -> float:
        """Return the seconds since the epoch."""
        ...


class WallClock:
    def now(self) -> float:
        return time.time()


class VirtualClock:
    """A clock that advances only by a call."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start

    def now(self) -> float:
        return self._now

    def advance_to(self, moment: float) -> None:
        """Move forward to `moment`; time never goes back."""
        self._now = max(self._now, moment)
