"""Preemption in circles: seen by counting, and given a pause that grows.

H preempts L; the room goes to X; L reclaims it from X and is admitted; that wakes H, which preempts L again: every step
is right, and together they never end. Whoever goes round preempts nobody for a while, as if it had found no candidates,
until something changes in its tree of cohorts or the pause is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from scheduling.model.times import rfc3339
from scheduling.model.workload import Workload
from scheduling.state.workload_info import owner_fields

PREEMPTIONS_PER_WORKLOAD = 16
"""How often one workload may be preempted, with nothing else changing, before that counts as going in circles."""
PREEMPTIONS_ONCE_SEEN = 2
"""The same for one that went in circles before: it has to show less."""
FIRST_PAUSE_SECONDS = 60.0
MAX_PAUSE_SECONDS = 3600.0


class Pause(NamedTuple):
    """How often in a row the workload was paused, and until when; a lifted pause is over."""

    times: int
    until: float
    lifted: bool = False


class PreemptionLoopGuard:
    """Counts which workload preempts which, and knows which are paused. Times are seconds since the epoch."""

    def __init__(self) -> None:
        self._preempted: Counter[str] = Counter()
        self._preemptors: dict[str, frozenset[str]] = {}
        self._pauses: dict[str, Pause] = {}

    def __bool__(self) -> bool:
        return bool(self._preempted or self._pauses)

    def snapshot(self) -> tuple[Counter[str], dict[str, frozenset[str]], dict[str, Pause]]:
        """What is known, to undo to."""
        return self._preempted.copy(), dict(self._preemptors), dict(self._pauses)

    def restore(self, values: tuple[Counter[str], dict[str, frozenset[str]], dict[str, Pause]]) -> None:
        """Go back to a snapshot."""
        self._preempted, self._preemptors, self._pauses = values

    def note(self, victim: str, preemptor: str) -> None:
        self._preempted[victim] += 1
        self._preemptors[victim] = self._preemptors.get(victim, frozenset()) | {preemptor}

    def paused_until(self, key: str, now: float) -> float | None:
        """Until when the workload may not preempt; None when it may."""
        pause = self._pauses.get(key)
        return pause.until if pause is not None and not pause.lifted and pause.until > now else None

    def close(self, now: float) -> dict[str, float]:
        """Pause those that go in circles, if any do: key -> until. They count anew."""
        if all(count < self._limit(key) for key, count in self._preempted.items()):
            return {}
        victims = {key for key, count in self._preempted.items() if 2 * count > self._limit(key)}
        concerned = victims.union(*(self._preemptors[victim] for victim in victims))
        for key in concerned:
            self._pauses[key] = self._next_pause(key, now)
            self._preempted.pop(key, None)
            self._preemptors.pop(key, None)
        return {key: self._pauses[key].until for key in sorted(concerned)}

    def _limit(self, key: str) -> int:
        return PREEMPTIONS_ONCE_SEEN if key in self._pauses else PREEMPTIONS_PER_WORKLOAD

    def _next_pause(self, key: str, now: float) -> Pause:
        """Twice as long as the one before; one that is long over does not count any more."""
        before = self._pauses.get(key)
        times = before.times if before is not None and now < before.until + MAX_PAUSE_SECONDS else 0
        seconds = min(FIRST_PAUSE_SECONDS * 2**times, MAX_PAUSE_SECONDS)
        return Pause(min(times + 1, 16), now + seconds)

    def forget(self, key: str) -> None:
        self._preempted.pop(key, None)
        self._preemptors.pop(key, None)
        self._pauses.pop(key, None)

    def lift(self, keys: Iterable[str]) -> list[str]:
        """These count anew, and those of them that are paused may preempt again: returns them."""
        lifted: list[str] = []
        for key in keys:
            self._preempted.pop(key, None)
            self._preemptors.pop(key, None)
            pause = self._pauses.get(key)
            if pause is not None and not pause.lifted:
                self._pauses[key] = pause._replace(lifted=True)
                lifted.append(key)
        return lifted

    def known(self) -> list[str]:
        """All workloads of which something is known."""
        return [*{**self._preempted, **self._pauses}]


def is_news(before: Workload, after: Workload) -> bool:
    """Whether the workload's owner or the cluster changed something; a decision of ours is no news."""
    return _news_fields(before) != _news_fields(after)


def _news_fields(workload: Workload) -> tuple[object, ...]:
    return (*owner_fields(workload), workload.admission_gates)


def describe_pause(until: float) -> str:
    """What is said on a workload that has a pause."""
    at = rfc3339(until, whole_seconds=True)
    return (
        f"workloads preempt each other in circles: it preempts nobody until {at}, unless something else changes in its "
        "tree of cohorts before that"
    )
