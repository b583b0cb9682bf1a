"""Watching a cluster: one thread per kind follows it, one applies what they say, in batches, through the services.

Nothing depends on having seen every event: lists come again from time to time, and after a failure of the database.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError, close_old_connections

from accounts.heartbeat import touch_heartbeat
from accounts.models import Cluster
from accounts.services.served_kinds import record_served_kinds
from accounts.services.watcher_health import beat
from accounts.transactions import unnoticed_transaction
from clusters.client import NODES, PODS, ClusterClient, ClusterError, Kind, Listing, WatchEvent
from clusters.jobs.registry import JOB_KINDS
from clusters.reflector import Reflector
from clusters.sync.jobs import JobSync
from clusters.sync.limits import LIMIT_KINDS, LimitsSync
from clusters.sync.nodes import NodeSync
from clusters.sync.pod_groups import PodGroupSync
from clusters.sync.pods import PodSync
from clusters.sync.references import ReferenceSync
from queues.models import Workload

_log = logging.getLogger(__name__)

_OPTIONAL: Final = frozenset(
    [
        *(kind.resource for kind in JOB_KINDS.values() if kind.optional),
        *(resource for kind in JOB_KINDS.values() for resource in kind.refers_to),
    ]
)
"""Kinds that a cluster serves only where their operator is installed."""
_BATCH: Final = 1000
_GATHER_SECONDS: Final = 0.05
_TICK_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 1.0

_Item = tuple[Kind, Listing | WatchEvent]
_Sync = NodeSync | LimitsSync | ReferenceSync | JobSync | PodSync | PodGroupSync


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
        kinds = JOB_KINDS.values()
        references = {each: (ReferenceSync(cluster, each),) for kind in kinds for each in kind.refers_to}
        jobs = {kind.resource: (JobSync(cluster, kind, client),) for kind in kinds if kind.resource != PODS}
        self._syncs: dict[Kind, tuple[_Sync, ...]] = {
            NODES: (self._nodes,),
            **limits,
            **references,
            **jobs,
            PODS: (self._pods, PodGroupSync(cluster, client)),
        }
        self.kinds: tuple[Kind, ...] = tuple(self._syncs)
        self._served: frozenset[Kind] = frozenset()

    def resync(self) -> None:
        """Lists every kind and applies it. Raises ClusterError, but not for limits that this account may not read."""
        self.note_served(self._client.served(_OPTIONAL))
        for kind in self.kinds:
            if kind in _OPTIONAL and kind not in self._served:
                continue
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
        """Whether the rest goes on without the kind: this account may not read it, or its operator has just gone. It is
        tried again with each list."""
        optional = kind in LIMIT_KINDS or kind in _OPTIONAL
        return optional and (error.status == HTTPStatus.FORBIDDEN or (error.not_found and kind in _OPTIONAL))

    def note_served(self, served: Iterable[Kind]) -> None:
        """Which of the optional kinds the cluster serves: the others are not asked for, and their jobs say so."""
        now = frozenset(served)
        came = self._named(now - self._served)
        if came:
            # What the cluster refused because it did not serve the kind is told again at once.
            waiting = Workload.objects.filter(cluster=self._cluster, job__kind__in=came, push_retry_at__isnull=False)
            with unnoticed_transaction():
                waiting.update(push_retry_at=None)
        jobs = {kind.resource for kind in JOB_KINDS.values() if kind.optional}
        record_served_kinds(self._cluster, self._named(now & jobs), self._named(jobs - now))
        self._served = now

    @staticmethod
    def _named(kinds: Iterable[Kind]) -> list[str]:
        return sorted(kind.kind for kind in kinds)

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
        reflectors = _Reflectors(self._client, self._relist_seconds, inbox)
        reflectors.follow(kind for kind in self.kinds if kind not in _OPTIONAL)
        asking = threading.Thread(
            target=reflectors.follow_served, args=(_OPTIONAL, self._relist_seconds, stopped), name="served", daemon=True
        )
        asking.start()
        try:
            while not stopped.is_set():
                self._turn(inbox, stopped)
                if reflectors.served is not None and reflectors.served != self._served:
                    self.note_served(reflectors.served)
        finally:
            reflectors.stop()

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


class _Reflectors:
    """A thread for each kind that is followed. Kinds that the cluster begins or ceases to serve come and go."""

    def __init__(self, client: ClusterClient, relist_seconds: float, inbox: queue.Queue[_Item]) -> None:
        self._client = client
        self._relist_seconds = relist_seconds
        self._inbox = inbox
        self._running: dict[Kind, Reflector] = {}
        self.served: frozenset[Kind] | None = None

    def follow(self, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            reflector = self._running[kind] = Reflector(self._client, kind, self._relist_seconds)
            threading.Thread(target=_feed, args=(reflector, self._inbox), name=kind.plural, daemon=True).start()

    def follow_served(self, optional: Collection[Kind], every_seconds: float, stopped: threading.Event) -> None:
        """Asks from time to time which kinds are served, and follows those."""
        while not stopped.is_set():
            try:
                served = frozenset(self._client.served(optional))
            except ClusterError as error:
                _log.warning("What %s serves is not known: %s", self._client.server, error)
            else:
                for kind in [kind for kind in self._running if kind in optional and kind not in served]:
                    self._running.pop(kind).stop()
                self.follow(served - self._running.keys())
                self.served = served
            stopped.wait(every_seconds)

    def stop(self) -> None:
        for reflector in list(self._running.values()):
            reflector.stop()


def _feed(reflector: Reflector, inbox: queue.Queue[_Item]) -> None:
    for item in reflector:
        inbox.put((reflector.kind, item))
