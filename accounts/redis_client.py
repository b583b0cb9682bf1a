"""The one way to Redis: a client per process, one time-out, no retries."""

from functools import cache
from typing import Any, Final

import redis
import redis.asyncio
from django.conf import settings

_TIMEOUT_SECONDS: Final = 0.5
# Nothing in Redis is worth holding up a request for: all of it can be derived from rows. So the time-out is short, and
# what fails is not repeated here; the tick or the next frame makes up for it.
_OPTIONS: Final[dict[str, Any]] = {
    "socket_timeout": _TIMEOUT_SECONDS,
    "socket_connect_timeout": _TIMEOUT_SECONDS,
    "retry": None,
}


def redis_client() -> redis.Redis:
    """The process's client; safe to share between threads."""
    return _client(settings.REDIS_URL)


@cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(url, **_OPTIONS)


def asynchronous_redis_client() -> redis.asyncio.Redis:
    """A client for one event loop, which closes it."""
    return redis.asyncio.Redis.from_url(settings.REDIS_URL, **_OPTIONS)
