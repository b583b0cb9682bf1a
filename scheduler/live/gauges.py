"""Gauges for metrics that only the World can give, stored in Redis for the next scrape."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any, Final

import orjson
from redis import RedisError

from foundation.redis_client import redis_client
from scheduling.world import World

_log = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 10.0
"""The interval between counts; longer if counting takes long, so that it takes at most a hundredth of the time."""
_KEPT_SECONDS: Final = 120
_MOST_GONE: Final = 1_000
"""The deleted ClusterQueues that are remembered, because Kueue keeps exporting their weighted shares."""


def gauges_key(cluster: str) -> str:
    """Return the key of a cluster's gauges in Redis."""
    return f"kueueweb:gauges:{cluster}"


class QueueGauges:
    """Counts from time to time the pending workloads in each queue of a cluster."""

    def __init__(self, cluster: str, epoch: int, steady: Callable[[], float] = time.monotonic) -> None:
        self._cluster = cluster
        self._epoch = epoch
        self._steady = steady
        self._due_at = 0.0
        self._gone: dict[str, None] = {}
        self._there: set[str] = set()

    def publish(self, world: World) -> None:
        """Count if it is time to. Without Redis only these metrics are missing."""
        started = self._steady()
        if started < self._due_at:
            return
        kept = orjson.dumps({"epoch": self._epoch, **count_queues(world), "gone": self._gone_queues(world)})
        ended = self._steady()
        self._due_at = ended + max(INTERVAL_SECONDS, 100 * (ended - started))
        try:
            redis_client().set(gauges_key(self._cluster), kept, ex=_KEPT_SECONDS)
        except RedisError as error:
            _log.warning("cluster %s: the queues' gauges were not kept: %s", self._cluster, error)

    def _gone_queues(self, world: World) -> list[str]:
        """Return the ClusterQueues of an earlier count that no longer exist, in the order of their removal."""
        there = set(world.cluster_queue_names())
        remembered = {**self._gone, **dict.fromkeys(sorted(self._there - there))}
        gone = [name for name in remembered if name not in there][-_MOST_GONE:]
        self._gone, self._there = dict.fromkeys(gone), there
        return gone


def count_queues(world: World) -> dict[str, Any]:
    """Return the gauges of queues.

    `local_queues`: ClusterQueue -> LocalQueue's key -> [active, inadmissible]. `hashes`: ClusterQueue -> the same.
    `fair_sharing`: LocalQueue's key -> the usage that orders it under admission fair sharing. `preemption_skips`:
    ClusterQueue -> the preemptions that its last cycle with skips has skipped.
    """
    counts = {name: world.pending_counts(name) for name in world.cluster_queue_names()}
    return {
        "local_queues": {name: found.local_queues for name, found in counts.items()},
        "hashes": {name: found.hashes for name, found in counts.items()},
        "fair_sharing": world.fair_sharing_usage(),
        "preemption_skips": world.preemption_skips(),
    }
