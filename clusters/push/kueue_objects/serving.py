"""Finds Kueue's kinds that a cluster serves, and writes all of them in a sweep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from accounts.models import Cluster
from clusters.api_objects import Kind
from clusters.client import ClusterClient
from clusters.push.kueue_objects.served_objects import STATUS_SECONDS, ServedObjects
from clusters.push.kueue_objects.served_workloads import ServedWorkloads
from clusters.push.workload_events import WorkloadEvents
from clusters.served.kueue_kinds import KUEUE_KINDS, newest
from clusters.served.workload_specs import KIND
from foundation.wake_ups import request_push

_LOOK_SECONDS: Final = 60.0
_lock: Final = threading.Lock()
_looked: Final[dict[str, tuple[float, Mapping[str, Kind]]]] = {}
_PAUSES: Final = 2.0
"""How much longer than the writes that no job waits for the pause after them is: a busy API server starts jobs then."""
_LONGEST_SECONDS: Final = 3.0
"""The longest time from one of these writes to the next: users look at statuses and events, too."""
_due: Final[dict[tuple[str, int], tuple[float, float]]] = {}
"""When this process last wrote everything that no job waits for, and the seconds to the next time, by the cluster's
server and key."""


class Serving:
    """The writes of one sweep. Jobs start between them: as in Kueue, after their workloads show the admission, and
    before the queues' figures and the events follow."""

    def __init__(
        self, cluster: Cluster, client: ClusterClient, clock: Callable[[], float], *, all_at_once: bool = False
    ) -> None:
        """`all_at_once`: leave no workload for another sweep. Raises ClusterError."""
        served = _served(client)
        self._cluster = cluster
        self._client = client
        self._clock = clock
        self._objects = ServedObjects(cluster, client, served, clock)
        self._workloads = (
            ServedWorkloads(cluster, client, served[KIND], clock, all_at_once=all_at_once) if KIND in served else None
        )
        self._jobs_wait = False
        tells_events = KIND in served and settings.KUBERNETES_EVENTS
        self._events = WorkloadEvents(cluster, client, served[KIND]) if tells_events else None

    def before_jobs(self) -> frozenset[int]:
        """Write the configuration, and the workloads whose jobs start, stop or change.

        Returns the keys of the workloads whose jobs must wait for the next sweep. Raises ClusterError.
        """
        self._objects.tell()
        later = self._workloads.tell_unpushed() if self._workloads is not None else frozenset[int]()
        self._jobs_wait = bool(later)
        if self._events is not None:
            self._events.tell_of_stops()
        return later

    def after_jobs(self) -> None:
        """Write the rest: at most once a second, and more rarely on a busy API server. Raises ClusterError."""
        key, now = (self._client.server, self._cluster.pk), self._clock()
        last, pause = _due.get(key, (float("-inf"), 0.0))
        if 0 <= now - last < pause:
            request_push(self._cluster.name)
            return
        try:
            self.write_rest(now)
        finally:
            wanted = (1 + _PAUSES) * (self._clock() - now)
            _due[key] = now, min(_LONGEST_SECONDS, max(STATUS_SECONDS, wanted))

    def write_rest(self, now: float) -> None:
        """Write all other workloads, the statuses of queues, and the events. Raises ClusterError."""
        if self._events is not None:
            self._events.read()
        waiting = self._workloads.tell() if self._workloads is not None else frozenset()
        statuses_left = self._objects.tell_statuses(now)
        events_left = self._events is not None and self._events.tell(waiting)
        if self._jobs_wait or waiting or statuses_left or events_left:
            request_push(self._cluster.name)


def serve(cluster: Cluster, client: ClusterClient, clock: Callable[[], float]) -> None:
    """Write all of Kueue's objects without the jobs, as before a Kueue takes over. Raises ClusterError."""
    serving = Serving(cluster, client, clock, all_at_once=True)
    serving.before_jobs()
    serving.write_rest(clock())


def _served(client: ClusterClient) -> Mapping[str, Kind]:
    """Kind -> the newest version that the server has of it; asked once a minute."""
    now = time.monotonic()
    with _lock:
        found = _looked.get(client.server)
    if found is not None and now - found[0] < _LOOK_SECONDS:
        return found[1]
    kinds = (kind for versions in KUEUE_KINDS.values() for kind in versions)
    served = {kind.kind: kind for kind in newest(client.served(kinds))}
    with _lock:
        _looked[client.server] = (now, served)
    return served


def forget() -> None:
    """Ask again which kinds the cluster serves, as after an installation, and write everything at once."""
    with _lock:
        _looked.clear()
        _due.clear()
