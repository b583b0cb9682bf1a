"""Loads a cluster's World from its present rows, for queries that must not disturb the scheduler's own World."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from django.db import connection, transaction
from django.db.models import Q

from accounts.models import Cluster
from foundation.garbage_collection import without_collection
from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from queues.models import Workload
from scheduler.store.configuration import cluster_configuration
from scheduler.store.row_index import RowIndex
from scheduling.model.vocabulary import WorkloadStatus
from scheduling.world import World


def read_world(cluster: Cluster, now: float, also: Sequence[tuple[str, str]] = (), *, holders: bool = True) -> World:
    """Read the cluster in one snapshot, with the workloads that hold quota, and the pending workloads named in `also`.

    With `holders` False, the workloads that hold quota are left out, so that all quota and all devices are free. `also`
    are (namespace, name); `now` is in seconds since the epoch.
    """
    world, rows = _empty(cluster)
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if alone:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        rows.load(now, dict(_workload_ids(cluster, also, holders=holders)))
    return world


def read_whole_world(cluster: Cluster, now: float) -> tuple[World, RowIndex]:
    """Read the cluster as a new leader would load it, from the rows that this transaction shows."""
    world, rows = _empty(cluster)
    with without_collection():
        rows.load(now)
    return world, rows


def _empty(cluster: Cluster) -> tuple[World, RowIndex]:
    """Return a World with the cluster's settings, and the reader of its rows."""
    settings = cluster.device_plugin_configuration.get("settings", {})
    world = World(cluster_configuration(cluster))
    rows = RowIndex(cluster.pk, world)
    rows.set_features(world.configuration.features, 0.0)
    rows.vendors = configured_vendors(settings, VENDORS)
    world.set_vendors(rows.vendors)
    world.set_placement_policies(*configured_policies(settings))
    return world, rows


def _workload_ids(cluster: Cluster, also: Sequence[tuple[str, str]], *, holders: bool) -> Iterator[tuple[int, str]]:
    wanted = Q(quota_reserved_at__isnull=False) & ~Q(status=WorkloadStatus.FINISHED) if holders else Q(pk__in=())
    for namespace, name in also:
        wanted |= Q(namespace=namespace, name=name)
    for id_, namespace, name in Workload.objects.filter(wanted, cluster=cluster).values_list("id", "namespace", "name"):
        yield id_, f"{namespace}/{name}"
