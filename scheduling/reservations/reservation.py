"""A reservation as a value: its nodes, its windows in time, and the workloads that may use the nodes meanwhile.

The rule is Slurm's: other workloads may use a reserved node before a window only if their declared limit ends before
it. Days and weeks have 86,400 and 604,800 seconds; summer time does not move a window.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, NamedTuple

from scheduling.model.selectors import matches_node_selector


class Recurrence(StrEnum):
    """How often the window of a reservation returns."""

    NONE = "None"
    DAILY = "Daily"
    WEEKLY = "Weekly"


class BusyPolicy(StrEnum):
    """The fate of workloads that use a reserved node when a window starts, and are not allowed there."""

    WAIT = "Wait"
    """They continue to run: the reservation is Busy until they end."""
    EVICT = "Evict"
    """They are evicted at the start of the window."""


class WindowState(StrEnum):
    """The state of a window of a reservation."""

    PLANNED = "Planned"
    """It has not started."""
    ACTIVE = "Active"
    """It has started, and no workload that is not allowed uses its nodes."""
    BUSY = "Busy"
    """It has started, and workloads that are not allowed use its nodes."""
    ENDED = "Ended"
    """It is over."""


PERIOD_SECONDS: Final[Mapping[Recurrence, int]] = {Recurrence.DAILY: 86_400, Recurrence.WEEKLY: 604_800}
"""The time from one start to the next."""


class Window(NamedTuple):
    """One occurrence of a reservation, in seconds since the epoch; the end is excluded."""

    starts_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Admittance:
    """The workloads that may use reserved nodes during a window: of any of these namespaces, LocalQueues
    (`namespace/name`), ClusterQueues or users. Without any entry no workload may: maintenance."""

    namespaces: frozenset[str] = frozenset()
    local_queues: frozenset[str] = frozenset()
    cluster_queues: frozenset[str] = frozenset()
    users: frozenset[str] = frozenset()

    @property
    def is_maintenance(self) -> bool:
        return not (self.namespaces or self.local_queues or self.cluster_queues or self.users)


class Candidate(NamedTuple):
    """A node that may belong to a reservation.

    * is_usable: it is ready and not cordoned.
    * is_open: it has no taint NoSchedule or NoExecute, which a node of the control plane has.
    """

    name: str
    labels: Mapping[str, str]
    is_usable: bool = True
    is_open: bool = True


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes that are kept free from `starts_at` to `ends_at`, and again after each period, if the window starts before
    `until` (None: forever). Its nodes are those with the names, and those with all the labels if there are labels. With
    `node_count`, it has this many of these nodes, or of all nodes if it has neither names nor labels."""

    name: str
    starts_at: float
    ends_at: float
    node_names: frozenset[str] = frozenset()
    node_labels: Mapping[str, str] = field(default_factory=dict)
    recurrence: Recurrence = Recurrence.NONE
    allowed: Admittance = Admittance()
    if_busy: BusyPolicy = BusyPolicy.WAIT
    node_count: int | None = None
    until: float | None = None

    @property
    def lends_without_limit(self) -> bool:
        """Whether workloads without a declared limit may use its nodes until a window starts, at which they are
        evicted. Otherwise a window that returns would close its nodes to them forever."""
        return self.if_busy is BusyPolicy.EVICT and self.recurrence in PERIOD_SECONDS

    def covers(self, node: str, labels: Mapping[str, str]) -> bool:
        """Return whether a node belongs to it or, with `node_count`, may be chosen for it."""
        wanted = self.node_labels
        if self.node_count is not None and not (wanted or self.node_names):
            return True
        return node in self.node_names or (bool(wanted) and matches_node_selector(wanted, labels))

    def chosen(self, nodes: Iterable[Candidate]) -> frozenset[str]:
        """Return the names of its nodes among these. With `node_count` they are the first in the order of their names
        that are usable and open, then usable ones, and others only if these are too few: another node takes the place
        of a failed one.
        """
        covered = [node for node in nodes if self.covers(node.name, node.labels)]
        if self.node_count is not None:
            covered = sorted(covered, key=lambda node: (not node.is_usable, not node.is_open, node.name))
            covered = covered[: self.node_count]
        return frozenset(node.name for node in covered)

    def window(self, now: float) -> Window | None:
        """Return the present window, or else the next one; None if all are over."""
        period = PERIOD_SECONDS.get(self.recurrence)
        if period is None:
            return Window(self.starts_at, self.ends_at) if now < self.ends_at else None
        number = max(0, math.floor((now - self.ends_at) / period) + 1)
        found = Window(self.starts_at + number * period, self.ends_at + number * period)
        return None if self.until is not None and found.starts_at >= self.until else found

    def windows(self, start: float, end: float) -> Iterator[Window]:
        """Return the windows that overlap the time from `start` to `end`, in order. Without recurrence there is one at
        most; the caller bounds the time of others."""
        at: float | None = start
        while at is not None and (window := self.window(at)) is not None and window.starts_at < end:
            yield window
            at = window.ends_at if self.recurrence in PERIOD_SECONDS else None
