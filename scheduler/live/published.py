"""Reads the last published snapshot, for readers outside the scheduler's process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from django.utils import timezone
from redis import RedisError

from accounts.models import Cluster
from foundation.redis_client import redis_client
from scheduler.live.publisher import snapshot_key
from scheduler.models import Lease

ALIVE_SECONDS: Final = 15.0
"""A leader that has not renewed its lease for longer does not count as leading."""


@dataclass(frozen=True, slots=True)
class Published:
    """The data of the last snapshot, and the time when the leader last confirmed it."""

    time: datetime
    data: Mapping[str, Any]


def leads(lease: Lease | None) -> bool:
    """Return whether the lease is held and was renewed lately."""
    newest = timezone.now() - timedelta(seconds=ALIVE_SECONDS)
    return lease is not None and lease.renewed_at is not None and lease.renewed_at >= newest


def read_published(cluster: Cluster) -> Published | None:
    """Read the figures of the present leader; None without a leader, without Redis, or before its first snapshot."""
    return published_of([cluster]).get(cluster.pk)


def published_of(clusters: Sequence[Cluster]) -> dict[int, Published]:
    """Return the figures of the present leaders by cluster, without clusters that have none: one query, one read of
    Redis."""
    leaders = {lease.cluster_id: lease for lease in Lease.objects.filter(cluster__in=clusters) if leads(lease)}
    led = [cluster for cluster in clusters if cluster.pk in leaders]
    if not led:
        return {}
    try:
        kept: Any = redis_client().mget([snapshot_key(cluster.name) for cluster in led])
    except RedisError:
        return {}
    found: dict[int, Published] = {}
    for cluster, snapshot in zip(led, kept, strict=True):
        lease = leaders[cluster.pk]
        frame = orjson.loads(snapshot) if isinstance(snapshot, bytes) else {}
        if frame.get("epoch") == lease.epoch and lease.renewed_at is not None:
            found[cluster.pk] = Published(lease.renewed_at, frame["data"])
    return found
