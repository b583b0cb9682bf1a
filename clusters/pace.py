"""Keeps the turns of a loop apart: each costs more than the changes that it applies, so few large ones are cheap."""

from __future__ import annotations

from typing import Final

_SHARE: Final = 0.02
"""The share of one processor that a loop may take before its rounds are spaced out."""


class Pace:
    """When the next turn may begin: a moment after its first change, and not too soon after the turn before."""

    def __init__(self, apart: float, *, delay: float = 0.0, longest: float | None = None) -> None:
        """In seconds: the least interval between rounds, how long a round waits for more changes, and the largest
        interval due to cost; None: unlimited.
        """
        self._least = self._apart = apart
        self._longest = apart if longest is None else longest
        self._delay = delay
        self._last = float("-inf")

    def next(self, now: float) -> float:
        """Return the beginning of the turn whose first change came now."""
        self._last = max(now + self._delay, self._last + self._apart)
        return self._last

    def spent(self, processor_seconds: float) -> None:
        """Note the processor time of the turn that ended: after an expensive one, more changes are gathered."""
        self._apart = max(self._least, min(self._longest, processor_seconds / _SHARE))
