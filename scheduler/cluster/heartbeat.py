"""That a watcher lives, for those who show it: a key in Redis that expires."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from functools import cache
from typing import Final

import orjson
from django.conf import settings
from redis import Redis, RedisError

_log = logging.getLogger(__name__)

_EXPIRE_SECONDS: Final = 15
_last_event: Final[dict[str, str]] = {}


def watcher_key(cluster: str) -> str:
    """The key: {"last_event_at": RFC 3339 or null}; not there: no watcher lives."""
    return f"kueueweb:watcher:{cluster}"


def beat(cluster: str, now: float, heard: bool) -> None:
    """Says that the watcher of a cluster lives, and whether it has just heard of it. Never raises."""
    if heard:
        _last_event[cluster] = datetime.fromtimestamp(now, UTC).isoformat()
    try:
        _redis().set(
            watcher_key(cluster), orjson.dumps({"last_event_at": _last_event.get(cluster)}), ex=_EXPIRE_SECONDS
        )
    except RedisError as error:
        _log.warning("The watcher's heartbeat is not seen: %s", error)


@cache
def _redis() -> Redis:
    return Redis.from_url(settings.REDIS_URL, socket_timeout=1, socket_connect_timeout=1)
