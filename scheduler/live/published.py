"""Reads the last published snapshot, for readers outside the scheduler's process."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import orjson
from django.utils import timezone
from redis import RedisError

from accounts.models import Cluster
from accounts.redis_client import redis_client
from scheduler.live.publisher import snapshot_key
from scheduler.models import Lease

ALIVE_SECONDS: Final = 15.0
"""A leader that has not renewed its lease for longer does not count as leading."""


@dataclass(frozen=True, slots=True)
class Published:
    """The data of the last snapshot, and when the leader last confirmed it."""

    time: datetime
    data: Mapping[str, Any]


def leads(lease: Lease | None) -> bool:
    """Whether the lease is held and was renewed lately."""
    newest = timezone.now() - timedelta(seconds=ALIVE_SECONDS)
    return lease is not None and lease.renewed_at is not None and lease.renewed_at >= newest


def read_published(cluster: Cluster) -> Published | None:
    """The figures of the present leader; None without a leader, without Redis, or before its first snapshot."""
    lease = Lease.objects.filter(cluster=cluster).first()
    if lease is None or lease.renewed_at is None or not leads(lease):
        return None
    try:
        kept = redis_client().get(snapshot_key(cluster.name))
    except RedisError:
        return None
    frame = orjson.loads(kept) if isinstance(kept, bytes) else {}
    return Published(lease.renewed_at, frame["data"]) if frame.get("epoch") == lease.epoch else None
