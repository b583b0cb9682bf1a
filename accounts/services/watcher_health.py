"""Heartbeats of watchers: keys in Redis that a watcher renews and that expire."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis import RedisError

from foundation.redis_client import redis_client
from scheduling.model.times import rfc3339

_log = logging.getLogger(__name__)

_EXPIRE_SECONDS: Final = 15
_last_event: Final[dict[str, str]] = {}


def watcher_key(cluster: str) -> str:
    """Return the key of a watcher's heartbeat. Its value is {"last_event_at": RFC 3339 or null}; it is absent if no
    watcher runs."""
    return f"kueueweb:watcher:{cluster}"


def beat(cluster: str, now: float, heard: bool) -> None:
    """Renew the heartbeat of a cluster's watcher, with the time of its last event. Never raises."""
    if heard:
        _last_event[cluster] = rfc3339(now)
    try:
        redis_client().set(
            watcher_key(cluster), orjson.dumps({"last_event_at": _last_event.get(cluster)}), ex=_EXPIRE_SECONDS
        )
    except RedisError as error:
        _log.warning("The watcher's heartbeat could not be read: %s", error)


@dataclass(frozen=True, slots=True)
class WatcherHealth:
    """Whether a watcher is alive, and the time of its last event (RFC 3339, None: none yet)."""

    alive: bool
    last_event_at: str | None


def watcher_health(cluster: str) -> WatcherHealth:
    """Return the last heartbeat; not alive if Redis does not answer."""
    return watchers_health([cluster])[cluster]


def watchers_health(clusters: Sequence[str]) -> dict[str, WatcherHealth]:
    """Return the last heartbeats of several clusters, with one query to Redis."""
    silent = dict.fromkeys(clusters, WatcherHealth(False, None))
    if not clusters:
        return silent
    try:
        contents: Any = redis_client().mget([watcher_key(cluster) for cluster in clusters])
    except RedisError as error:
        _log.warning("The watchers' heartbeats could not be read: %s", error)
        return silent
    heard = zip(clusters, contents, strict=True)
    return silent | {
        cluster: WatcherHealth(True, orjson.loads(content)["last_event_at"])
        for cluster, content in heard
        if isinstance(content, bytes)
    }
