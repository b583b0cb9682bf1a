"""The input of an estimate: free amounts, running workloads, waiting workloads, ended runs."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

Levels: TypeAlias = tuple[Hashable, ...]
"""Groups of similar workloads, the narrowest first, for example (namespace, queue, stem, shape), (queue, shape), ()."""


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A run that has ended. `declared_seconds` is the length that its owner stated, or None."""

    levels: Levels
    seconds: float
    declared_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class RunningWorkload:
    """A workload that holds `amounts` of the place with index `place` since `since` (seconds)."""

    levels: Levels
    since: float
    place: int
    amounts: tuple[int, ...]
    declared_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class WaitingWorkload:
    """A workload that waits since `queued_at` (seconds) for `amounts` on one place."""

    key: str
    levels: Levels
    queued_at: float
    amounts: tuple[int, ...]
    declared_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The workloads of one queue tree at `now`. `waiting` is in the order in which the queue tries them.

    A place is a node with its whole devices, or a quota tree with its cells; `free` has one row of amounts per place.
    """

    now: float
    free: tuple[tuple[int, ...], ...]
    running: tuple[RunningWorkload, ...]
    waiting: tuple[WaitingWorkload, ...]


class Unknown(StrEnum):
    """Why there is no estimate."""

    NO_RUN_ENDED = "NoRunEnded"
    """Too few runs have ended to estimate run times."""
    NO_START_FORESEEN = "NoStartForeseen"
    """In more than a tenth of the forward runs it does not start, so the interval has no end."""
    BEYOND_REACH = "BeyondReach"
    """The forward runs ended at their limit of time before it started: it starts later than they reached."""
    NO_MEMORY = "NoMemory"
    """The memory that a plan's forward runs may take did not suffice."""
    ERROR = "Error"
    """A plan's forward runs ended with an error; the studio's log has it."""


@dataclass(frozen=True, slots=True)
class StartEstimate:
    """Seconds from `now` to the start, as three quantiles, or the reason why they are unknown."""

    p10: float | None = None
    p50: float | None = None
    p90: float | None = None
    unknown: Unknown | None = None
    forecasts_compared: int = 0
    """The number of past forecasts with known outcomes that corrected the interval; 0 means that it is not
    corrected.
    """
    features: tuple[float, ...] = field(default=(), compare=False)
    """Values that the correction needs to learn from this estimate later."""
