"""A World per cluster that a process keeps for queries, updated to the present rows before each query.

Queries must not disturb the scheduler's own World, and loading a large cluster takes seconds. So the versions of all
rows (PostgreSQL's xmin and ctid) are compared with those loaded before, and only rows that differ are read again, in
one snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final

from django.db import connection, transaction
from django.db.models import Model

from accounts.models import Cluster, Namespace
from gpus.manifests import configured_policies, configured_vendors
from gpus.models import Node
from gpus.vendors import VENDORS
from queues.models import (
    AdmissionCheck,
    ClusterObject,
    ClusterQueue,
    Cohort,
    LimitRange,
    LocalQueue,
    Reservation,
    ResourceFlavor,
    ResourceQuota,
    RuntimeClass,
    Topology,
    Workload,
)
from scheduler.store.changes import Changes
from scheduler.store.configuration import cluster_configuration
from scheduler.store.device_objects import DEVICE_KINDS, DEVICE_OBJECT
from scheduler.store.row_index import RowIndex
from scheduling.world import World

MAX_KEPT: Final = 4
"""At most this many Worlds are kept; the least recently used one is dropped."""

_NAMED: Final = "name"
_NAMESPACED: Final = "namespace || '/' || name"
_OF_KIND: Final = "kind || ' ' || namespace || '/' || name"
_TABLES: Final[Mapping[str, tuple[type[Model], str]]] = {
    "namespace": (Namespace, _NAMED),
    "runtimeclass": (RuntimeClass, _NAMED),
    "limitrange": (LimitRange, _NAMESPACED),
    "resourcequota": (ResourceQuota, _NAMESPACED),
    "resourceflavor": (ResourceFlavor, _NAMED),
    "topology": (Topology, _NAMED),
    "admissioncheck": (AdmissionCheck, _NAMED),
    "cohort": (Cohort, _NAMED),
    "clusterqueue": (ClusterQueue, _NAMED),
    "localqueue": (LocalQueue, _NAMESPACED),
    "reservation": (Reservation, _NAMED),
    "node": (Node, _NAMED),
    DEVICE_OBJECT: (ClusterObject, _OF_KIND),
    "workload": (Workload, _NAMESPACED),
}
"""kind -> rows and key. Rows that belong to an object (quotas, devices, found slices) raise its row's generation."""
_CONDITIONS: Final[Mapping[str, str]] = {
    "workload": " AND status <> 'Finished'",
    DEVICE_OBJECT: f" AND kind IN {tuple(DEVICE_KINDS)}",
}

_VERSIONS: Final = "SELECT id, {key}, xmin::text || ctid::text FROM {table} WHERE cluster_id = %s{condition}"

Versions = dict[str, dict[int, tuple[str, str]]]
"""kind -> row id -> key and version."""


@dataclass(slots=True)
class _Kept:
    world: World
    rows: RowIndex
    configuration: tuple[Any, ...]
    versions: Versions = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)


_kept: dict[int, _Kept] = {}
_kept_lock = Lock()


@contextmanager
def kept_world(cluster: Cluster, now: float) -> Iterator[World]:
    """Open the cluster as its rows are now, with all unfinished workloads. `now` is in seconds since the epoch. The
    World is locked within the block. It must be left unchanged, because the next query uses it too."""
    kept = _take(cluster)
    with kept.lock:
        try:
            _catch_up(cluster, kept, now)
            yield kept.world
        except BaseException:
            forget_world(cluster)  # the World may be half updated
            raise


def changed_rows(cluster: Cluster) -> dict[str, dict[int, str]]:
    """Return the rows of this transaction that differ from the rows of the kept World, which is not changed: kind ->
    row id -> key. Raises KeyError if no World of the cluster is kept."""
    with _kept_lock:
        before = _kept[cluster.pk].versions
    found = {kind: _difference(before.get(kind, {}), _versions(kind, cluster.pk)) for kind in _TABLES}
    return {kind: noted for kind, noted in found.items() if noted}


def forget_world(cluster: Cluster) -> None:
    """Load everything again on the next use."""
    with _kept_lock:
        _kept.pop(cluster.pk, None)


def _take(cluster: Cluster) -> _Kept:
    """Return the kept World, or a new one if the cluster's own settings changed, because they affect how everything is
    read."""
    configuration = (cluster.configuration, cluster.device_plugin_configuration, cluster.placement)
    with _kept_lock:
        kept = _kept.pop(cluster.pk, None)
        if kept is None or kept.configuration != configuration:
            kept = _empty(cluster, configuration)
        _kept[cluster.pk] = kept
        while len(_kept) > MAX_KEPT:
            del _kept[next(iter(_kept))]
        return kept


def _empty(cluster: Cluster, configuration: tuple[Any, ...]) -> _Kept:
    settings = cluster.device_plugin_configuration.get("settings", {})
    world = World(cluster_configuration(cluster))
    rows = RowIndex(cluster.pk, world)
    rows.set_features(world.configuration.features, 0.0)
    rows.vendors = configured_vendors(settings, VENDORS)
    world.set_vendors(rows.vendors)
    world.set_placement_policies(*configured_policies(settings))
    return _Kept(world, rows, configuration)


def _catch_up(cluster: Cluster, kept: _Kept, now: float) -> None:
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if alone:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        versions = {kind: _versions(kind, cluster.pk) for kind in _TABLES}
        changed = {
            kind: found
            for kind, now_there in versions.items()
            if (found := _difference(kept.versions.get(kind, {}), now_there))
        }
        kept.rows.apply(Changes(cluster.configuration_generation, (), changed), now)
    kept.versions = versions
    kept.rows.forget_due()
    kept.world.advance(now)


def _versions(kind: str, cluster_id: int) -> dict[int, tuple[str, str]]:
    model, key = _TABLES[kind]
    with connection.cursor() as cursor:
        cursor.execute(
            _VERSIONS.format(key=key, table=model._meta.db_table, condition=_CONDITIONS.get(kind, "")),
            [cluster_id],
        )
        return {id_: (name, version) for id_, name, version in cursor.fetchall()}


def _difference(before: Mapping[int, tuple[str, str]], after: Mapping[int, tuple[str, str]]) -> dict[int, str]:
    """Row id -> key of deleted rows, then of new or changed ones."""
    if before == after:
        return {}
    gone = {id_: key for id_, (key, _) in before.items() if id_ not in after}
    return gone | {id_: found[0] for id_, found in after.items() if before.get(id_) != found}
