"""The reservations of a cluster and their nodes: which nodes are closed to a workload at a time.

A node is closed to a workload that a reservation does not allow while a window is open, and before it if the workload
may run into it. A workload without a declared limit runs into every window: only a window that returns and evicts does
not close its nodes to it before the start. Only the next window of a reservation counts: a workload that ends before it
ends before all later ones.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Final, NamedTuple

from scheduling.model.node import Node
from scheduling.model.selectors import TaintEffect
from scheduling.model.workload import Workload
from scheduling.reservations.reservation import BusyPolicy, Candidate, Reservation, Window

NO_NODES: Final[frozenset[str]] = frozenset()
CLOSING_EFFECTS: Final = frozenset({TaintEffect.NO_SCHEDULE, TaintEffect.NO_EXECUTE})
"""The effects of taints that keep pods without a toleration from a node."""
_MAX_REMEMBERED: Final = 256
_MAX_MOMENTS: Final = 16


@dataclass(frozen=True, slots=True)
class ReservedWindow:
    """A window of a reservation."""

    reservation: str
    starts_at: float
    ends_at: float


@dataclass(frozen=True, slots=True)
class Claimant:
    """The facts about a workload that decide which nodes are closed to it.

    * ends_at: when it ends at the latest, if it starts or moves now; None if that is not known.
    * is_unlimited: it declares no limit.
    """

    namespace: str
    local_queue: str
    cluster_queue: str
    user: str
    ends_at: float | None = None
    is_unlimited: bool = False

    @classmethod
    def of(cls, workload: Workload, cluster_queue: str, ends_at: float | None = None) -> Claimant:
        """Return the facts about a workload in a ClusterQueue."""
        is_unlimited = workload.time_left_seconds is None
        return cls(workload.namespace, workload.queue_key, cluster_queue, workload.submitted_by, ends_at, is_unlimited)

    def is_allowed_by(self, reservation: Reservation) -> bool:
        """Return whether it may use the nodes of a reservation during its windows."""
        allowed = reservation.allowed
        return (
            self.namespace in allowed.namespaces
            or self.local_queue in allowed.local_queues
            or self.cluster_queue in allowed.cluster_queues
            or (bool(self.user) and self.user in allowed.users)
        )


class _Barring(NamedTuple):
    """The present or next windows that bar a workload, by their starts; the starts; and the names.

    * is_whole: no window is left out of `windows` because it lends its nodes to the workload until it starts.
    """

    windows: Sequence[ReservedWindow]
    starts: Sequence[float]
    names: frozenset[str]
    is_whole: bool = True


class ReservedNodes:
    """The known reservations. False without any: then no answer is needed."""

    def __init__(self, nodes: Mapping[str, Node]) -> None:
        """`nodes` is the live mapping of the cluster's nodes."""
        self._nodes = nodes
        self._known: dict[str, Reservation] = {}
        self._members: dict[str, frozenset[str]] = {}
        self._unions: dict[tuple[str, ...], frozenset[str]] = {}
        self._evicting: dict[str, list[str]] | None = None
        """The names of the reservations that evict from each node."""
        self._present: dict[float, list[tuple[Reservation, ReservedWindow]]] = {}
        """Per time, the reservations that are not over, by the starts of their windows."""
        self._barring: dict[tuple[float, Claimant], _Barring] = {}
        self._names: dict[frozenset[str], frozenset[str]] = {}
        """Equal sets of names as one object: each waiting workload holds one."""
        self._moment: float | None = None
        self._lifted: frozenset[str] | None = NO_NODES

    def __bool__(self) -> bool:
        return bool(self._known)

    @property
    def known(self) -> Mapping[str, Reservation]:
        """The reservations by name."""
        return self._known

    def set(self, reservation: Reservation) -> None:
        """Add or replace a reservation."""
        self._known[reservation.name] = reservation
        self._forget()

    def delete(self, name: str) -> None:
        """Remove a reservation; unknown names are ignored."""
        self._known.pop(name, None)
        self._forget()

    def _forget(self) -> None:
        """Find nodes and windows again, because a reservation changed."""
        for remembered in (self._members, self._unions, self._present, self._barring, self._names):
            remembered.clear()
        self._evicting = None

    def node_changed(self, before: Node | None, after: Node | None) -> bool:
        """Note that a node was added (from None), changed or removed (to None).

        Its own places in reservations change, and so do the nodes of each reservation with a count. Return whether
        another node may have left such a reservation.
        """
        node = after or before
        if node is None or (before is not None and after is not None and candidate_of(before) == candidate_of(after)):
            return False
        chosen_anew = False
        keeps_labels = before is not None and after is not None and before.labels == after.labels
        for name, members in list(self._members.items()):
            known = self._known[name]
            if known.node_count is not None:
                if any(each is not None and known.covers(each.name, each.labels) for each in (before, after)):
                    self._note_members(name, None)
                    chosen_anew = True
            elif not keeps_labels:
                covered = after is not None and known.covers(node.name, node.labels)
                if covered != (node.name in members):
                    self._note_members(name, members ^ {node.name})
        return chosen_anew

    def _note_members(self, name: str, members: frozenset[str] | None) -> None:
        """Set the nodes of a reservation; None: they are found again."""
        if members is None:
            del self._members[name]
        else:
            self._members[name] = members
        self._unions.clear()
        self._evicting = None

    def nodes_of(self, name: str) -> frozenset[str]:
        """Return the present nodes of a reservation; raises KeyError."""
        found = self._members.get(name)
        if found is None:
            reservation = self._known[name]
            found = self._members[name] = reservation.chosen(map(candidate_of, self._nodes.values()))
        return found

    @contextmanager
    def at(self, moment: float | None) -> Iterator[None]:
        """Answer for another time until the context ends (used for planned starts)."""
        before, self._moment = self._moment, moment
        try:
            yield
        finally:
            self._moment = before

    @contextmanager
    def lifted(self, names: Collection[str] | None = None) -> Iterator[None]:
        """Answer without the reservations of these names until the context ends; None for all reservations."""
        before, self._lifted = self._lifted, None if names is None else frozenset(names)
        try:
            yield
        finally:
            self._lifted = before

    def time(self, now: float) -> float:
        """Return the time for which it answers."""
        return now if self._moment is None else self._moment

    def barring(self, claimant: Claimant, now: float) -> frozenset[str]:
        """Return the names of the reservations that are not over and do not allow the workload."""
        return self._barring_of(claimant, now).names

    def _barring_of(self, claimant: Claimant, now: float) -> _Barring:
        key = (now, replace(claimant, ends_at=None))
        found = self._barring.get(key)
        if found is None:
            if len(self._barring) >= _MAX_REMEMBERED:
                self._barring.clear()
            all_windows = [pair for pair in self._windows(now) if not claimant.is_allowed_by(pair[0])]
            names = frozenset(window.reservation for _, window in all_windows)
            names = self._names.setdefault(names, names)
            windows = [
                window
                for each, window in all_windows
                if not (claimant.is_unlimited and each.lends_without_limit and window.starts_at > now)
            ]
            starts = [window.starts_at for window in windows]
            found = self._barring[key] = _Barring(windows, starts, names, len(windows) == len(all_windows))
        return found

    def _windows(self, now: float) -> list[tuple[Reservation, ReservedWindow]]:
        found = self._present.get(now)
        if found is None:
            if len(self._present) >= _MAX_MOMENTS:
                self._present.clear()
            known = ((each, each.window(now)) for each in self._known.values())
            windows = [(each, ReservedWindow(each.name, *window)) for each, window in known if window is not None]
            found = self._present[now] = sorted(windows, key=lambda pair: pair[1].starts_at)
        return found

    def count_closing(self, claimant: Claimant, now: float) -> int:
        """Return how many windows close nodes to the workload now, if no reservation is lifted.

        These are the windows that start first: workloads that the same reservations bar have the same windows if they
        have the same number of them. For a workload without a limit to which nodes are lent, it is a negative number,
        which no other workload has.
        """
        count = self._count_first(claimant, now)
        return count if self._barring_of(claimant, now).is_whole else -1 - count

    def _count_first(self, claimant: Claimant, now: float) -> int:
        starts, ends_at = self._barring_of(claimant, now).starts, claimant.ends_at
        return len(starts) if ends_at is None else max(bisect_right(starts, now), bisect_left(starts, ends_at))

    def closing(self, claimant: Claimant, now: float) -> list[ReservedWindow]:
        """Return the windows that close nodes to the workload now, in order of their ends."""
        lifted = self._lifted
        if lifted is None:
            return []
        first = self._barring_of(claimant, now).windows[: self._count_first(claimant, now)]
        found = [window for window in first if window.reservation not in lifted]
        return sorted(found, key=lambda window: (window.ends_at, window.reservation))

    def closed_to(self, claimant: Claimant, now: float) -> frozenset[str]:
        """Return the nodes that are closed to the workload now."""
        names = tuple(sorted(window.reservation for window in self.closing(claimant, now)))
        if not names:
            return NO_NODES
        union = self._unions.get(names)
        if union is None:
            if len(self._unions) >= _MAX_REMEMBERED:
                self._unions.clear()
            union = self._unions[names] = NO_NODES.union(*map(self.nodes_of, names))
        return union

    def spans(self, claimant: Claimant, left: float | None, now: float) -> list[tuple[float, float]]:
        """Return the spans of time from now in each of which the same nodes are closed to a workload that may run for
        `left` seconds (None: without limit) from its start. Later windows of a recurrence are left out."""
        edges: set[float] = set()
        horizon = inf
        for reservation in self._known.values():
            window = reservation.window(now)
            if window is None or claimant.is_allowed_by(reservation):
                continue
            lends = claimant.is_unlimited and reservation.lends_without_limit
            closes_at = window.starts_at if lends else -inf if left is None else window.starts_at - left
            edges |= {closes_at, window.ends_at}
            later = reservation.window(window.ends_at)
            if later is not None:
                horizon = min(horizon, later.starts_at if left is None else later.starts_at - left)
        times = [now, *sorted(at for at in edges if now < at < horizon), max(now, horizon)]
        return [(start, end) for start, end in pairwise(times) if start < end]

    def evicting(self, claimant: Claimant, nodes: frozenset[str], now: float) -> ReservedWindow | None:
        """Return the first window, present or to come, at whose start a workload that uses these nodes is evicted."""
        names = {name for node in nodes for name in self._evicting_from().get(node, ())}
        found = [
            ReservedWindow(name, *window)
            for name, each in ((name, self._known[name]) for name in names)
            if (window := each.window(now)) is not None and not claimant.is_allowed_by(each)
        ]
        return min(found, key=lambda window: (window.starts_at, window.reservation), default=None)

    def _evicting_from(self) -> Mapping[str, Sequence[str]]:
        if self._evicting is None:
            self._evicting = {}
            for name, each in self._known.items():
                for node in self.nodes_of(name) if each.if_busy is BusyPolicy.EVICT else ():
                    self._evicting.setdefault(node, []).append(name)
        return self._evicting

    @property
    def evicts(self) -> bool:
        """Whether some reservation evicts holders of its nodes."""
        return bool(self._evicting_from())

    def ends_from(self, at: float, now: float) -> float | None:
        """Return the first end of a current or next window that is after now and not before another time; None if there
        is none."""
        return min((window.ends_at for _, window in self._windows(now) if window.ends_at >= at), default=None)

    def changes_after(self, now: float) -> float | None:
        """Return the next time at which a window starts or ends; None if there is none."""
        windows = [window for each in self._known.values() if (window := each.window(now)) is not None]
        return min((at for window in windows for at in _edges(window) if at > now), default=None)

    def snapshot(self) -> dict[str, Reservation]:
        """Return a copy of the reservations."""
        return dict(self._known)

    def restore(self, values: dict[str, Reservation]) -> None:
        """Restore a snapshot, and match the nodes again."""
        self._known = dict(values)
        self._forget()


def candidate_of(node: Node) -> Candidate:
    """Return the facts about a node that decide which reservations it belongs to."""
    is_open = all(taint.effect not in CLOSING_EFFECTS for taint in node.taints)
    return Candidate(node.name, node.labels, node.ready and not node.unschedulable, is_open)


def _edges(window: Window) -> tuple[float, float]:
    return window.starts_at, window.ends_at
