"""Detects preemption loops by counting, and pauses the workloads in them for growing times.

Example: H preempts L. The freed quota goes to X. L reclaims it from X and is admitted. That wakes H, which preempts L
again. Each step follows the rules, but the steps repeat forever. A workload in such a loop is treated as if it had no
preemption candidates, until something changes in its cohort tree or the pause ends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from scheduling.model.times import rfc3339
from scheduling.model.workload import Workload
from scheduling.state.workload_info import owner_fields

PREEMPTIONS_PER_WORKLOAD = 16
"""A workload that is preempted this often, while nothing else changes, is in a loop."""
PREEMPTIONS_ONCE_SEEN = 2
"""The same limit for a workload that was in a loop before."""
FIRST_PAUSE_SECONDS = 60.0
MAX_PAUSE_SECONDS = 3600.0


class Pause(NamedTuple):
    """The number of consecutive pauses of a workload, and the end of the last one. A lifted pause ends in the past."""

    times: int
    until: float
    lifted: bool = False


class PreemptionLoopGuard:
    """Counts the preemptions by pair of workloads, and records which workloads are paused. Times are seconds since the
    epoch.
    """

    def __init__(self) -> None:
        self._preempted: Counter[str] = Counter()
        self._preemptors: dict[str, frozenset[str]] = {}
        self._pauses: dict[str, Pause] = {}

    def __bool__(self) -> bool:
        return bool(self._preempted or self._pauses)

    def snapshot(self) -> tuple[Counter[str], dict[str, frozenset[str]], dict[str, Pause]]:
        """Return a copy of all counts and pauses."""
        return self._preempted.copy(), dict(self._preemptors), dict(self._pauses)

    def restore(self, values: tuple[Counter[str], dict[str, frozenset[str]], dict[str, Pause]]) -> None:
        """Go back to a snapshot."""
        self._preempted, self._preemptors, self._pauses = values

    def note(self, victim: str, preemptor: str) -> None:
        self._preempted[victim] += 1
        self._preemptors[victim] = self._preemptors.get(victim, frozenset()) | {preemptor}

    def paused_until(self, key: str, now: float) -> float | None:
        """Return when the pause of a workload ends; None if it may preempt."""
        pause = self._pauses.get(key)
        return pause.until if pause is not None and not pause.lifted and pause.until > now else None

    def close(self, now: float) -> dict[str, float]:
        """Pause the workloads that are in a loop, if any. Returns key -> end of the pause; their counts start again."""
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
        """Twice the previous pause. A pause that ended long ago does not count."""
        before = self._pauses.get(key)
        times = before.times if before is not None and now < before.until + MAX_PAUSE_SECONDS else 0
        seconds = min(FIRST_PAUSE_SECONDS * 2**times, MAX_PAUSE_SECONDS)
        return Pause(min(times + 1, 16), now + seconds)

    def forget(self, key: str) -> None:
        self._preempted.pop(key, None)
        self._preemptors.pop(key, None)
        self._pauses.pop(key, None)

    def lift(self, keys: Iterable[str]) -> list[str]:
        """Restart the counts of these workloads and end their pauses. Returns the keys of those that were paused."""
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
        """Return the keys of all workloads with a count or a pause."""
        return [*{**self._preempted, **self._pauses}]


def is_news(before: Workload, after: Workload) -> bool:
    """Return whether the workload's owner or the cluster changed something. Our own decisions do not count."""
    return _news_fields(before) != _news_fields(after)


def _news_fields(workload: Workload) -> tuple[object, ...]:
    return (*owner_fields(workload), workload.admission_gates)


def describe_pause(until: float) -> str:
    """Return the message on a paused workload."""
    at = rfc3339(until, whole_seconds=True)
    return (
        f"workloads preempt each other in a loop: this one may not preempt until {at}, unless something "
        "else changes in its cohort tree"
    )
