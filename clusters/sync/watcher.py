"""Watching a cluster: one thread per kind follows it, one applies what they say, in batches, through the services.

Nothing depends on having seen every event: lists come again from time to time, and after a failure of the database.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError, close_old_connections

from accounts.heartbeat import touch_heartbeat
from accounts.models import Cluster
from accounts.services.watcher_health import beat
from clusters.client import NODES, PODS, ClusterClient, ClusterError, Kind, Listing, WatchEvent
from clusters.jobs.running import JOB_KINDS
from clusters.reflector import Reflector
from clusters.sync.jobs import JobSync
from clusters.sync.limits import LIMIT_KINDS, LimitsSync
from clusters.sync.nodes import NodeSync
from clusters.sync.pod_groups import PodGroupSync
from clusters.sync.pods import PodSync

_log = logging.getLogger(__name__)

_OPERATED: Final = frozenset(row.kind for row in JOB_KINDS.values() if row.rules is not None)
_BATCH: Final = 1000
_GATHER_SECONDS: Final = 0.05
_TICK_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 1.0

_Item = tuple[Kind, Listing | WatchEvent]


class Watcher:
    """One cluster's watcher.

    * relist_seconds: how often each kind is listed anew.
    * clock: seconds since the epoch.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        relist_seconds: float = 60.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._cluster = cluster
        self._client = client
        self._relist_seconds = relist_seconds
        self._clock = clock
        self._nodes = NodeSync(cluster)
        self._pods = PodSync(cluster)
        limits = {kind: (LimitsSync(cluster, kind),) for kind in LIMIT_KINDS}
        jobs = {row.kind: (JobSync(cluster, row, client),) for row in JOB_KINDS.values() if row.kind != PODS}
        self._syncs: dict[Kind, tuple[NodeSync | LimitsSync | JobSync | PodSync | PodGroupSync, ...]] = {
            NODES: (self._nodes,),
            **limits,
            **jobs,
            PODS: (self._pods, PodGroupSync(cluster, client)),
        }
        self.kinds: tuple[Kind, ...] = tuple(self._syncs)

    def resync(self) -> None:
        """Lists every kind and applies it. Raises ClusterError, but not for limits that this account may not read."""
        for kind in self.kinds:
            try:
                listing = self._client.list(kind)
            except ClusterError as error:
                if not self._may_be_missing(kind, error):
                    raise
                _log.error("%s of %s can't be read, and so don't count: %s", kind.plural, self._client.server, error)
            else:
                self.apply([(kind, listing)])

    @staticmethod
    def _may_be_missing(kind: Kind, error: ClusterError) -> bool:
        """Whether the rest goes on without the kind: this account may not read it, or the cluster does not serve it as
        long as its operator is not installed. It is tried again with each list."""
        optional = kind in LIMIT_KINDS or kind in _OPERATED
        return optional and (error.status == HTTPStatus.FORBIDDEN or (error.not_found and kind in _OPERATED))

    def apply(self, items: list[_Item]) -> None:
        """Applies a batch, nodes first: slices and pods refer to them."""
        by_kind: dict[Kind, list[Listing | WatchEvent]] = defaultdict(list)
        for kind, item in items:
            by_kind[kind].append(item)
        if any(isinstance(item, Listing) for _, item in items):
            self._cluster.refresh_from_db()
        now = self._clock()
        for kind in self.kinds:
            for sync in self._syncs[kind] if kind in by_kind else ():
                sync.apply(by_kind[kind], now)

    def tick(self) -> None:
        """What time alone brings about."""
        now = self._clock()
        self._nodes.tick(now)
        self._pods.tick(now)

    def run(self, stopped: threading.Event) -> None:
        """Watches until told to stop."""
        inbox: queue.Queue[_Item] = queue.Queue(maxsize=10 * _BATCH)
        reflectors = [Reflector(self._client, kind, self._relist_seconds) for kind in self.kinds]
        threads = [
            threading.Thread(target=_feed, args=(reflector, inbox), name=reflector.kind.plural, daemon=True)
            for reflector in reflectors
        ]
        for thread in threads:
            thread.start()
        try:
            while not stopped.is_set():
                self._turn(inbox, stopped)
        finally:
            for reflector in reflectors:
                reflector.stop()

    def _turn(self, inbox: queue.Queue[_Item], stopped: threading.Event) -> None:
        items = _gather(inbox)
        try:
            close_old_connections()
            if items:
                self.apply(items)
            self.tick()
            beat(self._cluster.name, self._clock(), heard=bool(items))
            touch_heartbeat()
        except DatabaseError as error:
            _log.error("What the cluster said could not be stored; everything is listed again: %s", error)
            self._recover(stopped)

    def _recover(self, stopped: threading.Event) -> None:
        """A batch was lost with the database: lists make up for it, unless the end comes first."""
        while not stopped.wait(_RETRY_SECONDS):
            close_old_connections()
            try:
                self.resync()
            except (DatabaseError, ClusterError) as error:
                _log.error("Still not: %s", error)
                touch_heartbeat()  # it waits for a database: a restart would not bring that back
                continue
            return


def _gather(inbox: queue.Queue[_Item]) -> list[_Item]:
    """The next items: waits for the first, then takes what comes within a moment, so that bursts are one batch."""
    try:
        items = [inbox.get(timeout=_TICK_SECONDS)]
    except queue.Empty:
        return []
    end = time.monotonic() + _GATHER_SECONDS
    while len(items) < _BATCH:
        try:
            items.append(inbox.get(timeout=max(0.0, end - time.monotonic())))
        except queue.Empty:
            break
    return items


def _feed(reflector: Reflector, inbox: queue.Queue[_Item]) -> None:
    for item in reflector:
        inbox.put((reflector.kind, item))
