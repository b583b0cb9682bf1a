"""Watches a cluster: one thread per kind follows it, and one thread applies the changes in batches, through the
services.

Nothing depends on seeing every event: lists are repeated from time to time, and after a database failure.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import nullcontext
from http import HTTPStatus
from typing import Final

from django.db import DatabaseError, close_old_connections

from accounts.cluster_versions import cluster_versions
from accounts.models import Cluster
from accounts.services.served_kinds import record_served_kinds
from accounts.services.watcher_health import beat
from clusters.api_errors import ClusterError
from clusters.api_objects import DEVICE_KINDS, EVENTS, JOB_FLOWS, JOB_TEMPLATES, NAMESPACES, NODES, PODS, Kind
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.inbox import Inbox
from clusters.jobs.cluster_objects import KeptObjects
from clusters.jobs.families.serving import ServingKind
from clusters.jobs.framework.job_kind import JobKind, Stopping
from clusters.jobs.registry import JOB_KINDS
from clusters.leases import LeaseWatch
from clusters.pace import Pace
from clusters.reach_heartbeat import ReachHeartbeat
from clusters.reflector import Reflector
from clusters.served.kueue_kinds import KUEUE_KINDS, PRIORITY_CLASSES, missing, newest
from clusters.sync.configuration import LIMIT_KINDS, ConfigurationSync
from clusters.sync.ended_namespaces import EndedNamespaceSync
from clusters.sync.events import EventSync
from clusters.sync.jobs import JobSync
from clusters.sync.live_kueue import look_for_kueue
from clusters.sync.mirrored_jobs import MirroredJobSync
from clusters.sync.node_failures import LostPodSync, NodeFailures
from clusters.sync.nodes import NodeSync
from clusters.sync.ownership import Ownership
from clusters.sync.pod_groups import PodGroupSync
from clusters.sync.pods import PodSync
from clusters.sync.references import DeviceObjectSync, ReferenceSync
from clusters.sync.served_objects import ServedObjectSync
from clusters.sync.served_workloads import ServedWorkloadSync
from clusters.sync.sets import SetPodSync, SetSync
from clusters.sync.suspendable_jobs import SuspendableJobSync
from clusters.sync.volcano.flow_sync import FlowSync, TemplateSync
from clusters.sync.workloads import WorkloadSync
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, touch_heartbeat
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import joined_wake_ups
from queues.models import Workload

_log = logging.getLogger(__name__)

_KUEUE: Final = frozenset(kind for kinds in KUEUE_KINDS.values() for kind in kinds)
_OPTIONAL: Final = frozenset(
    [
        *(kind.resource for kind in JOB_KINDS.values() if kind.optional),
        *(resource for kind in JOB_KINDS.values() for resource in kind.refers_to),
        *_KUEUE,
        *(kind for versions in DEVICE_KINDS for kind in versions),
        *(JOB_TEMPLATES, JOB_FLOWS),
    ]
)
"""Kinds that a cluster serves only where their operator is installed, each in the versions that we read."""
_MAY_BE_FORBIDDEN: Final = frozenset([*LIMIT_KINDS, *_OPTIONAL, NAMESPACES, PRIORITY_CLASSES, EVENTS])
"""Kinds that the watcher can do without."""
_NO_CONFIGURATION: Final = frozenset([NODES, PODS, *(kind.resource for kind in JOB_KINDS.values())])
"""Kinds whose objects are not looked up in rows."""
_FIELD_SELECTORS: Final = {EVENTS: "involvedObject.kind=Workload"}
RELIST_SECONDS: Final = 60.0
_BATCH: Final = 1000
_GATHER_SECONDS: Final = 0.05
_TURN_SECONDS: Final = 0.25
"""The least interval between rounds under a steady load: a round costs more than a change in it."""
_MAX_TURN_SECONDS: Final = 1.0
"""The interval between rounds if rounds take more than a fiftieth of a processor."""
_BEAT_SECONDS: Final = 5.0
_TICK_SECONDS: Final = 1.0
_RETRY_SECONDS: Final = 1.0

_Item = tuple[Kind, Listing | WatchEvent]
_Sync = (
    NodeSync
    | ConfigurationSync
    | EndedNamespaceSync
    | ReferenceSync
    | DeviceObjectSync
    | JobSync
    | MirroredJobSync
    | ServedObjectSync
    | ServedWorkloadSync
    | WorkloadSync
    | EventSync
    | PodSync
    | PodGroupSync
    | SetPodSync
    | TemplateSync
    | FlowSync
)
_Syncs = dict[Kind, tuple[_Sync, ...]]


class Watcher:
    """The watcher of one cluster. It writes only where kueueweb decides, whatever the client may do.

    * relist_seconds: how often each kind is listed again.

    * clock: seconds since the epoch; steady: seconds that only go forward.
    """

    def __init__(
        self,
        cluster: Cluster,
        client: ClusterClient,
        relist_seconds: float = RELIST_SECONDS,
        clock: Callable[[], float] = time.time,
        steady: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._kueues_lease = LeaseWatch(steady)
        self._given = client
        self._relist_seconds = relist_seconds
        self._clock = clock
        self._steady = steady
        self._beat_at = self._mode_at = float("-inf")
        self._heard = False
        self._served: frozenset[Kind] = frozenset()
        self._looked_at = 0.0
        self._version = ""
        self._kept = KeptObjects()
        self._follow_mode()

    @property
    def server(self) -> str:
        """The URL of the API server."""
        return self._given.server

    def _follow_mode(self) -> None:
        """Follow the kinds of the cluster's mode. Kinds are applied in this order."""
        self._is_mirrored = self._cluster.is_mirrored
        self._client = self._given.reading() if self._is_mirrored else self._given
        self._serves_kueue = self._cluster.serves_kueue
        self._node_failures = None if self._is_mirrored else NodeFailures(self._cluster)
        ownership = Ownership() if self._is_mirrored else None
        self._pods = PodSync(self._cluster, ownership, self._node_failures)
        self._lost_pods = LostPodSync(self._cluster, self._node_failures) if self._node_failures is not None else None
        self._timed: list[SuspendableJobSync | PodGroupSync | FlowSync] = []
        kinds = JOB_KINDS.values()
        references = {each: (ReferenceSync(self._cluster, each),) for kind in kinds for each in kind.refers_to}
        self._syncs: _Syncs = {
            NODES: (NodeSync(self._cluster, self._node_failures),),
            NAMESPACES: (
                ConfigurationSync(self._cluster, NAMESPACES),
                EndedNamespaceSync(self._cluster, self._client),
            ),
            **{kind: (ConfigurationSync(self._cluster, kind),) for kind in LIMIT_KINDS},
            **references,
            **{kind: (DeviceObjectSync(self._cluster, kind),) for kinds in DEVICE_KINDS[:-1] for kind in kinds},
            **(self._scheduled() if ownership is None else self._mirrored(ownership)),
        }
        # Claims last: their owners are known by their pods.
        self._syncs |= {kind: (DeviceObjectSync(self._cluster, kind),) for kind in DEVICE_KINDS[-1]}
        self.kinds: tuple[Kind, ...] = tuple(self._syncs)

    def _scheduled(self) -> _Syncs:
        """Return the syncs for a cluster in which kueueweb decides: jobs become workloads."""
        kinds = [kind for kind in JOB_KINDS.values() if kind.resource != PODS]
        pods_of_sets = SetPodSync(self._cluster)
        jobs = {
            kind.resource: (job_sync(self._cluster, kind, self._client, pods_of_sets, self._kept),) for kind in kinds
        }
        groups = PodGroupSync(self._cluster, self._client)
        templates = TemplateSync()
        flows = FlowSync(self._cluster, self._client, templates)
        self._timed = [*(sync for (sync,) in jobs.values() if isinstance(sync, SuspendableJobSync)), groups, flows]
        lost = (self._lost_pods,) if self._lost_pods is not None else ()
        pods = {PODS: (self._pods, groups, pods_of_sets, *lost)}
        served = self._served_objects()
        # Workload objects last: those of jobs have their rows by then.
        workloads = {kind: served.pop(kind) for kind in KUEUE_KINDS["Workload"] if kind in served}
        return {**served, JOB_TEMPLATES: (templates,), JOB_FLOWS: (flows,), **jobs, **pods, **workloads}

    def _served_objects(self) -> _Syncs:
        """Follow Kueue's objects, if we serve them."""
        if not self._serves_kueue:
            return {}
        workloads = KUEUE_KINDS["Workload"]
        return {
            **{kind: (ServedObjectSync(self._cluster, kind),) for kind in _in_order() if kind not in workloads},
            **{kind: (ServedWorkloadSync(self._cluster, kind),) for kind in workloads},
        }

    def _mirrored(self, ownership: Ownership) -> _Syncs:
        """Mirror Kueue's objects while another Kueue decides."""
        workloads = KUEUE_KINDS["Workload"]
        configuration = [kind for kind in (PRIORITY_CLASSES, *_in_order()) if kind not in workloads]
        jobs = {kind.resource: MirroredJobSync(self._cluster, kind, ownership) for kind in JOB_KINDS.values()}
        pods = jobs.pop(PODS)
        return {
            **{kind: (ConfigurationSync(self._cluster, kind),) for kind in configuration},
            **{kind: (sync,) for kind, sync in jobs.items()},
            **{kind: (WorkloadSync(self._cluster, kind, ownership),) for kind in workloads},
            PODS: (pods, self._pods),
            EVENTS: (EventSync(self._cluster),),
        }

    def resync(self) -> None:
        """List every kind and apply it. Raises ClusterError, except for limits that this account may not read."""
        self._look_at_mode()
        look_for_kueue(self._cluster, self._client, self._kueues_lease)
        self.note_served(_chosen(self._client.served(_OPTIONAL)))
        for kind in self.kinds:
            if kind in _OPTIONAL and kind not in self._served:
                continue
            try:
                listing = self._client.list(kind, field_selector=_FIELD_SELECTORS.get(kind, ""))
            except ClusterError as error:
                if not self._may_be_missing(kind, error):
                    raise
                _log.error("%s of %s cannot be read, so they are ignored: %s", kind.plural, self._client.server, error)
            else:
                if self._steady() - self._mode_at >= _TICK_SECONDS:  # to list all objects of a kind takes time
                    self._read_cluster()
                if not self._is_in_mode():
                    return  # the new mode lists everything again
                self._apply([(kind, listing)])

    @staticmethod
    def _may_be_missing(kind: Kind, error: ClusterError) -> bool:
        """Return whether to go on without the kind: this account may not read it, or its operator was just removed. It
        is tried again with each list."""
        forbidden = kind in _MAY_BE_FORBIDDEN and error.status == HTTPStatus.FORBIDDEN
        return forbidden or (error.not_found and kind in _OPTIONAL)

    def note_served(self, served: Iterable[Kind]) -> None:
        """Record which optional kinds the cluster serves. Other kinds are not watched, and their jobs report that."""
        now = frozenset(served)
        came = self._named(now - self._served)
        if came:
            # Push again at once what the cluster refused because it did not serve the kind.
            waiting = Workload.objects.filter(cluster=self._cluster, job__kind__in=came, push_retry_at__isnull=False)
            with unnoticed_transaction():
                waiting.update(push_retry_at=None)
        jobs = {kind.resource for kind in JOB_KINDS.values() if kind.optional}
        lacking = missing(now) if self._is_mirrored or self._serves_kueue else []
        record_served_kinds(self._cluster, self._named(now & jobs), [*self._named(jobs - now), *lacking])
        self._served = now

    @staticmethod
    def _named(kinds: Iterable[Kind]) -> list[str]:
        return sorted(kind.kind for kind in kinds)

    def apply(self, items: list[_Item]) -> None:
        """Apply a batch to a cluster that may have changed since it was read."""
        if any(isinstance(item, Listing) for _, item in items):
            self._cluster.refresh_from_db()
            if not self._is_in_mode():
                return  # the new mode lists everything again
        self._kept.follow("")
        self._apply(items)

    def _apply(self, items: list[_Item]) -> None:
        """Apply a batch, nodes first, because slices and pods refer to them.

        The present pods are stored before jobs are looked at: a workload whose job ends together with its pods then
        ends at once, instead of waiting for its pods.
        """
        by_kind: dict[Kind, list[Listing | WatchEvent]] = defaultdict(list)
        for kind, item in items:
            by_kind[kind].append(item)
        now = self._clock()
        if not by_kind.keys() <= _NO_CONFIGURATION:
            self._kept.follow("")  # this batch may edit the objects that passes look up
        if PODS in by_kind and not self._is_mirrored:
            self._pods.observe(by_kind[PODS])
        for kind in self.kinds:
            for sync in self._syncs[kind] if kind in by_kind else ():
                sync.apply(by_kind[kind], now)
        if self._node_failures is not None:
            self._node_failures.tick(now)

    def tick(self) -> None:
        """Do the work that depends only on time."""
        now = self._clock()
        if self._node_failures is not None:
            self._node_failures.tick(now)
        self._pods.tick(now)
        if self._lost_pods is not None:
            self._lost_pods.tick(now)
        for sync in self._timed:
            sync.tick(now)

    def run(self, stopped: threading.Event) -> None:
        """Watch until told to stop."""
        heartbeat = ReachHeartbeat(Role.API_SERVER, self._cluster.name, lambda: self._client.ping(HEARTBEAT_SECONDS))
        threading.Thread(target=heartbeat.run, args=(stopped,), name="api-server", daemon=True).start()
        while not stopped.is_set():
            self._run_in_mode(stopped)

    def _run_in_mode(self, stopped: threading.Event) -> None:
        """Watches until the mode changes."""
        inbox: Inbox[_Item] = Inbox(10 * _BATCH)
        reflectors = _Reflectors(self._client, self._relist_seconds, inbox)
        ended = threading.Event()
        optional = _OPTIONAL.intersection(self.kinds)
        asking = threading.Thread(
            target=reflectors.follow_served, args=(optional, self._relist_seconds, ended), name="served", daemon=True
        )
        if self._is_mirrored:
            self._recover(stopped)  # in order, so that pods find the workloads that they belong to
        reflectors.follow(kind for kind in self.kinds if kind not in _OPTIONAL)
        asking.start()
        pace = Pace(_TURN_SECONDS, delay=_GATHER_SECONDS, longest=_MAX_TURN_SECONDS)
        try:
            changed = False
            while not stopped.is_set() and not changed:
                items, before = _gather(inbox, pace), time.thread_time()
                changed = self._turn(items, reflectors, stopped)
                pace.spent(time.thread_time() - before)
        finally:
            ended.set()
            reflectors.stop()

    def _look_around(self, served: frozenset[Kind] | None) -> None:
        """Notes which kinds are served now, and from time to time whether a Kueue decides in the cluster."""
        if served is not None and served != self._served:
            self.note_served(served)
        if self._clock() - self._looked_at >= self._relist_seconds:
            self._looked_at = self._clock()
            look_for_kueue(self._cluster, self._client, self._kueues_lease)

    def _look_at_mode(self) -> bool:
        """Return whether the mode has changed, and with it the watched kinds."""
        self._read_cluster()
        if self._is_in_mode():
            return False
        _log.info("Cluster %s is in mode %s", self._cluster.name, self._cluster.mode)
        self._follow_mode()
        return True

    def _read_cluster(self) -> None:
        """Read the cluster's row, if it has changed."""
        self._mode_at = self._steady()
        version = cluster_versions().get(self._cluster.pk, "")
        if not version or version != self._version:
            self._cluster.refresh_from_db()
            self._version = version
        self._kept.follow(version)

    def _is_in_mode(self) -> bool:
        """Return whether the watched kinds are those of the cluster's mode."""
        now = (self._cluster.is_mirrored, self._cluster.serves_kueue)
        return now == (self._is_mirrored, self._serves_kueue)

    def _turn(self, items: list[_Item], reflectors: _Reflectors, stopped: threading.Event) -> bool:
        """Applies these changes; whether the mode has changed instead."""
        try:
            # Nodes change all the time, by their heartbeats, and are followed in every mode.
            lists = any(isinstance(item, Listing) for _, item in items)
            changes = lists or any(kind != NODES for kind, _ in items)
            if changes or self._steady() - self._mode_at >= _TICK_SECONDS:
                close_old_connections()
                if self._look_at_mode():
                    return True
            self._look_around(reflectors.served)
            with nullcontext() if lists else joined_wake_ups():
                if items:
                    self._apply(items)
                self.tick()
            self._beat(heard=bool(items))
        except DatabaseError as error:
            _log.error("Changes in the cluster could not be stored; listing all objects again: %s", error)
            stopped.wait(_RETRY_SECONDS)
            self._recover(stopped)
        return False

    def _beat(self, *, heard: bool) -> None:
        self._heard = self._heard or heard
        if self._steady() - self._beat_at < _BEAT_SECONDS:
            return
        beat(self._cluster.name, self._clock(), heard=self._heard)
        touch_heartbeat(Role.WATCHER, self._cluster.name)
        self._beat_at, self._heard = self._steady(), False

    def _recover(self, stopped: threading.Event) -> None:
        """Lists and applies everything, kind after kind, as often as needed, until it is stopped."""
        while not stopped.is_set():
            close_old_connections()
            try:
                self.resync()
            except (DatabaseError, ClusterError) as error:
                _log.error("Some objects of cluster %s can't be listed or stored yet: %s", self._cluster.name, error)
                # It waits for a database or a cluster: a restart would not help.
                touch_heartbeat(Role.WATCHER, self._cluster.name)
                stopped.wait(_RETRY_SECONDS)
                continue
            return


def _chosen(served: Collection[Kind]) -> frozenset[Kind]:
    """Return the optional kinds to follow, each in the newest version that the cluster serves."""
    devices = frozenset(kind for versions in DEVICE_KINDS for kind in versions)
    newest_devices = (next((kind for kind in versions if kind in served), None) for versions in DEVICE_KINDS)
    chosen = frozenset(kind for kind in newest_devices if kind is not None)
    return (frozenset(served) - _KUEUE - devices) | newest(served) | chosen


def job_sync(
    cluster: Cluster,
    kind: JobKind,
    client: ClusterClient,
    pods: SetPodSync | None = None,
    kept: KeptObjects | None = None,
) -> JobSync:
    if isinstance(kind, ServingKind) and kind.groups_pods:
        return SetSync(cluster, kind, client, pods, kept)
    suspends = kind.has_workload and kind.stopping is Stopping.SUSPEND
    return (SuspendableJobSync if suspends else JobSync)(cluster, kind, client, kept)


def _in_order() -> Iterable[Kind]:
    """Kueue's configuration kinds in all versions, referenced kinds first."""
    return (kind for kinds in KUEUE_KINDS.values() for kind in kinds)


def _gather(inbox: Inbox[_Item], pace: Pace) -> list[_Item]:
    """Return the next items: waits for the first, then collects others for a while, so that bursts become one batch."""
    if not inbox.wait(1, _TICK_SECONDS):
        return []
    inbox.wait(_BATCH, pace.next(time.monotonic()) - time.monotonic())
    return inbox.take(_BATCH)


class _Reflectors:
    """A thread for each followed kind. Threads start and stop as the cluster begins or ceases to serve kinds."""

    def __init__(self, client: ClusterClient, relist_seconds: float, inbox: Inbox[_Item]) -> None:
        self._client = client
        self._relist_seconds = relist_seconds
        self._inbox = inbox
        self._running: dict[Kind, Reflector] = {}
        self.served: frozenset[Kind] | None = None

    def follow(self, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            reflector = self._running[kind] = Reflector(
                self._client, kind, self._relist_seconds, field_selector=_FIELD_SELECTORS.get(kind, "")
            )
            threading.Thread(target=_feed, args=(reflector, self._inbox), name=kind.plural, daemon=True).start()

    def follow_served(self, optional: Collection[Kind], every_seconds: float, stopped: threading.Event) -> None:
        """Check periodically which kinds are served, and watch them."""
        while not stopped.is_set():
            try:
                served = _chosen(self._client.served(optional))
            except ClusterError as error:
                _log.warning("Could not find out which kinds %s serves: %s", self._client.server, error)
            else:
                for kind in [kind for kind in self._running if kind in optional and kind not in served]:
                    self._running.pop(kind).stop()
                self.follow(served - self._running.keys())
                self.served = served
            stopped.wait(every_seconds)

    def stop(self) -> None:
        for reflector in list(self._running.values()):
            reflector.stop()


def _feed(reflector: Reflector, inbox: Inbox[_Item]) -> None:
    for item in reflector:
        inbox.put((reflector.kind, item))
