"""Keeps the turns of a loop apart: each costs more than the changes that it applies, so few large ones are cheap."""

from __future__ import annotations


class Pace:
    """When the next turn may begin: a moment after its first change, and not too soon after the turn before."""

    def __init__(self, apart: float, *, delay: float = 0.0) -> None:
        """Both in seconds."""
        self._apart = apart
        self._delay = delay
        self._last = float("-inf")

    def next(self, now: float) -> float:
        """The beginning of the turn whose first change came now."""
        self._last = max(now + self._delay, self._last + self._apart)
        return self._last
