"""The Redis client of a process, with one time-out and no retries."""

from functools import cache
from typing import Any, Final

import redis
import redis.asyncio
from django.conf import settings

_TIMEOUT_SECONDS: Final = 0.5
# Nothing in Redis is worth holding up a request for: all of it can be derived from rows. So the time-out is short, and
# Failures are not retried here: the tick or the next frame repeats the work.
_OPTIONS: Final[dict[str, Any]] = {
    "socket_timeout": _TIMEOUT_SECONDS,
    "socket_connect_timeout": _TIMEOUT_SECONDS,
    "retry": None,
}


def redis_client() -> redis.Redis:
    """Return the process's client. Threads may share it."""
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, **_OPTIONS)


def asynchronous_redis_client() -> redis.asyncio.Redis:
    """Return a client for one event loop. The caller closes it."""
    return redis.asyncio.Redis.from_url(settings.REDIS_URL, **_OPTIONS)
