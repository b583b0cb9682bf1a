"""A cluster's World as its rows are now, for questions that must not disturb the scheduler's own."""

from __future__ import annotations

from django.db import connection, transaction

from gpus.manifests import configured_policies, configured_vendors
from gpus.vendors import VENDORS
from queues.models import Cluster
from scheduler.core.world import World
from scheduler.store.configuration import read_configuration
from scheduler.store.mirror import Mirror


def read_world(cluster: Cluster, now: float) -> World:
    """Everything of the cluster in one snapshot; `now` is in seconds since the epoch. Costs what a full load costs."""
    settings = cluster.device_plugin_configuration.get("settings", {})
    world = World(read_configuration(cluster.configuration))
    mirror = Mirror(cluster.pk, world)
    mirror.vendors = configured_vendors(settings, VENDORS)
    world.set_vendors(mirror.vendors)
    world.set_placement_policies(*configured_policies(settings))
    alone = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if alone:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        mirror.load(now)
    return world
