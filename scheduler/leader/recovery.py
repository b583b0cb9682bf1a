"""Keeps a cluster's scheduling running after unexpected errors.

1. Any error of a run discards the World. The next run loads it again from the rows, which hold whole batches only. The
  batch that failed is written as a scenario, which `manage.py simulate` replays.
2. If runs fail again soon, the workloads of the failed batch are left out. When runs succeed again, the left-out
  workloads return group by group; a group with which a run fails is divided, until one workload is found. It is set
  aside for a while, with an event and a condition that give the reason, and all others are decided.
3. If runs fail even without these workloads, all workloads are left out in the same way.
4. If that fails too, or if the cluster cannot be loaded three times in a row, the process must exit: a supervisor
  restarts it, and meanwhile a standby leads.

While it is left out, a pending workload is unknown to the World, and one that holds quota stays charged and takes no
steps.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from django.db import DatabaseError, close_old_connections

from accounts.models import Cluster
from foundation.outages import is_database_away
from queues.services.workloads import set_aside
from scheduler.leader.engine import Engine
from scheduler.leader.failed_batch import write_failed_batch
from scheduler.store.lease import LeaseLost

_log = logging.getLogger(__name__)

AGAIN_SECONDS: Final = 60.0
"""A run that fails so soon after another one is not a coincidence."""
MAX_FAILURES: Final = 3
"""How many loads in a row, or searches, may fail."""
FIRST_PAUSE_SECONDS: Final = 60.0
MAX_PAUSE_SECONDS: Final = 3600.0
"""How long a workload is set aside: twice as long each time in a row."""

Group = dict[str, int]
"""Workloads: key -> row id."""


class SchedulingFailed(Exception):
    """Scheduling fails whichever workloads are left out: the process must exit."""


@dataclass(slots=True)
class _SetAside:
    id: int
    until: float
    times: int


class Recovery:
    """The scheduling of one cluster, which survives errors. `start` loads an engine without the named workloads."""

    def __init__(
        self,
        cluster: Cluster,
        start: Callable[[Collection[str]], Engine],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster_id = cluster.pk
        self._cluster_name = cluster.name
        self._start = start
        self._clock = clock
        self._engine: Engine | None = None
        self._failed_at = float("-inf")
        self._failures = 0
        self._waiting: list[Group] = []
        """Groups that are left out and will be tried, the last one first."""
        self._trial: Group | None = None
        """The group that was added back last, empty while all are left out; None without a search."""
        self._all_left_out = False
        self._aside: dict[str, _SetAside] = {}

    @property
    def engine(self) -> Engine | None:
        """Return the current engine; None before it is loaded."""
        return self._engine

    def drop(self) -> None:
        """Load everything again in the next run."""
        self._engine = None

    def run(self) -> bool:
        """Run the engine, or recover; return whether another run is due at once. Raises `LeaseLost` and
        `SchedulingFailed`.
        """
        engine = self._engine or self._load()
        if engine is None:
            return False
        try:
            self._try_again(engine)
            result = engine.run()
            searching = self._went_well(engine)
        except LeaseLost:
            raise
        except DatabaseError as error:
            self.drop()
            if not is_database_away(error):
                self._failed(engine, error)
            _log.error("the database failed during a run: %s", error)
            close_old_connections()
            return False
        except Exception as error:  # noqa: BLE001 (what it is does not matter: the World may be half changed)
            _log.exception("cluster %s: a run failed; loading everything again", self._cluster_name)
            self.drop()
            self._failed(engine, error)
            return True
        return result.more or searching

    def _load(self) -> Engine | None:
        try:
            self._engine = self._start(self._left_out())
        except DatabaseError as error:
            _log.error("the database failed while loading: %s", error)
            close_old_connections()
            if not is_database_away(error):
                self._count(error)
        except Exception as error:  # noqa: BLE001 (the next load may succeed)
            _log.exception("cluster %s could not be loaded", self._cluster_name)
            self._count(error)
        return self._engine

    def _count(self, error: Exception) -> None:
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            raise SchedulingFailed(f"cluster {self._cluster_name}: {_described(error)}") from error

    def _left_out(self) -> set[str]:
        return {*self._aside, *(key for group in self._waiting for key in group)}

    def _try_again(self, engine: Engine) -> None:
        """Add back workloads whose time is over, one by one."""
        now = self._clock()
        for key in [key for key, found in self._aside.items() if found.until <= now]:
            if self._trial is None:
                self._trial = {}
            if all(key not in group for group in (self._trial, *self._waiting)):
                self._waiting.append({key: self._aside[key].id})

    def _went_well(self, engine: Engine) -> bool:
        """Add back the next group; return whether there was one."""
        self._failures = 0
        for key in self._trial or ():
            self._aside.pop(key, None)
        if not self._waiting:
            self._trial = None
            self._all_left_out = False
            return False
        self._trial = self._waiting.pop()
        engine.readmit(self._trial)
        return True

    def _failed(self, engine: Engine, error: Exception) -> None:
        """Decide which workloads the next engine leaves out."""
        now = self._clock()
        again = now - self._failed_at < AGAIN_SECONDS
        self._failed_at = now
        if self._trial is None:
            if again:
                self._leave_out(engine.concerned())
            else:
                self._report(engine.concerned())
        elif not self._trial:
            self._leave_out_all(engine, error)
        elif len(self._trial) == 1:
            self._set_aside(self._trial, error)
            self._trial = {}
        else:
            self._divide(self._trial)
            self._trial = {}

    def _report(self, group: Group) -> None:
        try:
            path = write_failed_batch(self._cluster_id, group.values(), self._clock())
        except Exception:  # noqa: BLE001 (the rows that a batch failed with may fail here, too)
            _log.exception("cluster %s: the failed batch could not be written", self._cluster_name)
        else:
            _log.error(
                "cluster %s: the failed batch can be replayed with manage.py simulate: %s", self._cluster_name, path
            )

    def _leave_out(self, group: Group) -> None:
        self._trial = {}
        self._divide({key: id_ for key, id_ in group.items() if key not in self._aside})

    def _leave_out_all(self, engine: Engine, error: Exception) -> None:
        self._waiting = []
        if not self._all_left_out:
            self._all_left_out = True
            self._leave_out(engine.everything())
            return
        self._trial, self._all_left_out = None, False
        raise SchedulingFailed(f"cluster {self._cluster_name}: {_described(error)}") from error

    def _divide(self, group: Group) -> None:
        keys = sorted(group)
        half = len(keys) // 2
        self._waiting += [{key: group[key] for key in part} for part in (keys[half:], keys[:half]) if part]

    def _set_aside(self, group: Mapping[str, int], error: Exception) -> None:
        for key, id_ in group.items():
            times = self._aside[key].times + 1 if key in self._aside else 1
            seconds = min(FIRST_PAUSE_SECONDS * 2 ** (times - 1), MAX_PAUSE_SECONDS)
            now = self._clock()
            self._aside[key] = _SetAside(id_, now + seconds, times)
            why = f"The scheduler failed with this workload ({_described(error)}); it will be retried later"
            namespace, _, name = key.partition("/")
            at = datetime.fromtimestamp(now, UTC)
            cluster = Cluster.objects.get(pk=self._cluster_id)
            set_aside(cluster, [(namespace, name)], at + timedelta(seconds=seconds), why, now=at)
            _log.error("cluster %s: %s is set aside for %d s: %s", self._cluster_name, key, seconds, _described(error))


def _described(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
