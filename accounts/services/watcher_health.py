"""Whether a watcher lives: a key in Redis that it renews and that expires."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson
from redis import RedisError

from accounts.redis_client import redis_client
from scheduling.model.times import rfc3339

_log = logging.getLogger(__name__)

_EXPIRE_SECONDS: Final = 15
_last_event: Final[dict[str, str]] = {}


def watcher_key(cluster: str) -> str:
    """The key: {"last_event_at": RFC 3339 or null}; not there: no watcher lives."""
    return f"kueueweb:watcher:{cluster}"


def beat(cluster: str, now: float, heard: bool) -> None:
    """Says that the watcher of a cluster lives, and whether it has just heard of it. Never raises."""
    if heard:
        _last_event[cluster] = rfc3339(now)
    try:
        redis_client().set(
            watcher_key(cluster), orjson.dumps({"last_event_at": _last_event.get(cluster)}), ex=_EXPIRE_SECONDS
        )
    except RedisError as error:
        _log.warning("The watcher's heartbeat is not seen: %s", error)


@dataclass(frozen=True, slots=True)
class WatcherHealth:
    """Whether a watcher lives, and when it last heard of its cluster (RFC 3339, None: not yet)."""

    alive: bool
    last_event_at: str | None


def watcher_health(cluster: str) -> WatcherHealth:
    """What the last heartbeat said; not alive, too, where Redis does not answer."""
    return watchers_health([cluster])[cluster]


def watchers_health(clusters: Sequence[str]) -> dict[str, WatcherHealth]:
    """The same of several clusters, in one question to Redis."""
    silent = dict.fromkeys(clusters, WatcherHealth(False, None))
    if not clusters:
        return silent
    try:
        contents: Any = redis_client().mget([watcher_key(cluster) for cluster in clusters])
    except RedisError as error:
        _log.warning("Whether the watchers live is not known: %s", error)
        return silent
    heard = zip(clusters, contents, strict=True)
    return silent | {
        cluster: WatcherHealth(True, orjson.loads(content)["last_event_at"])
        for cluster, content in heard
        if isinstance(content, bytes)
    }
