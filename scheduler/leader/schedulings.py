"""The scheduling of every cluster by one process: if it fails for one cluster, the others are not affected."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Final

from accounts.models import Cluster
from scheduler.leader.engine import Engine
from scheduler.leader.observer import Observer
from scheduler.leader.recovery import Recovery, SchedulingFailed

_log = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS: Final = 30.0
MAX_PAUSE_SECONDS: Final = 600.0
"""How long a cluster pauses whose scheduling fails: twice as long each time in a row."""


class Schedulings:
    """The clusters that this process schedules. `start` loads the engine for a cluster, without the named workloads."""

    def __init__(
        self,
        start: Callable[[type[Engine], Cluster, Collection[str]], Engine],
        *,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._start = start
        self._steady = steady
        self._recoveries: dict[int, Recovery] = {}
        self._pauses: dict[int, float] = {}
        self._paused_until: dict[int, float] = {}
        self._failing: set[int] = set()

    def run(self, cluster: Cluster) -> bool:
        """Schedule a cluster; return whether another run is due at once. Raises `LeaseLost`. Raises `SchedulingFailed`
        if no other cluster is scheduled well, because a new process may succeed."""
        if self._steady() < self._paused_until.get(cluster.pk, 0.0):
            return False
        recovery = self._recovery(cluster)
        try:
            again = recovery.run()
        except SchedulingFailed as reason:
            if not self._others_are_well(cluster):
                raise
            self._pause(cluster, reason)
            return False
        if recovery.engine is None:
            self._failing.add(cluster.pk)
        else:
            self._failing.discard(cluster.pk)
            self._pauses.pop(cluster.pk, None)
        return again

    @property
    def is_well(self) -> bool:
        """Return whether the last run of any cluster ended well, or no run has ended yet."""
        return not self._failing or not self._failing.issuperset(self._recoveries)

    def drop(self) -> None:
        """Load everything again in the next runs."""
        for recovery in self._recoveries.values():
            recovery.drop()

    def _recovery(self, cluster: Cluster) -> Recovery:
        """Return the cluster's scheduling; a new one, under a new epoch, where the mode has changed."""
        kind = Observer if cluster.is_mirrored else Engine
        known = self._recoveries.get(cluster.pk)
        if known is None or (known.engine is not None and type(known.engine) is not kind):
            known = Recovery(cluster, lambda aside: self._start(kind, cluster, aside))
            self._recoveries[cluster.pk] = known
        return known

    def _others_are_well(self, cluster: Cluster) -> bool:
        return any(other != cluster.pk and other not in self._failing for other in self._recoveries)

    def _pause(self, cluster: Cluster, reason: SchedulingFailed) -> None:
        seconds = self._pauses.get(cluster.pk, FIRST_PAUSE_SECONDS)
        self._pauses[cluster.pk] = min(2 * seconds, MAX_PAUSE_SECONDS)
        self._paused_until[cluster.pk] = self._steady() + seconds
        self._failing.add(cluster.pk)
        del self._recoveries[cluster.pk]
        _log.error("%s; retrying in %d s; all other clusters are scheduled meanwhile", reason, seconds)
