"""Redis or Valkey: whether it answers, accepts writes, and keeps them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from redis import RedisError

from foundation.redis_client import redis_client
from kueueweb.checkup.finding import Finding, clock, fail, ok, warn

_OLDEST: Final = (6, 2)
_KEY: Final = "kueueweb:checkup"


def redis_checks() -> Iterator[Finding]:
    """Yield the findings; only the first if it does not answer."""
    client = redis_client()
    try:
        ours = datetime.now(UTC)
        seconds, microseconds = client.time()
        took = (datetime.now(UTC) - ours).total_seconds()
        info: dict[str, Any] = client.info()
    except RedisError as error:
        yield fail(
            "redis", f"Redis does not answer: {error}", "Compare REDIS_URL with the server's address and password."
        )
        return
    yield _version(info)
    yield clock("redis-clock", datetime.fromtimestamp(seconds + microseconds / 1e6, UTC), ours, precision_seconds=took)
    yield _writes()
    policy = str(info.get("maxmemory_policy", "noeviction"))
    if policy.startswith("allkeys"):
        yield warn("redis-eviction", f"maxmemory-policy is {policy}: messages may be evicted", "Set it to noeviction.")


def _version(info: dict[str, Any]) -> Finding:
    version = str(info["redis_version"])
    said = f"Valkey {info['valkey_version']}" if "valkey_version" in info else f"Redis {version}"
    if tuple(int(part) for part in version.split(".")[:2]) < _OLDEST:
        return fail("redis", said, "Upgrade to Redis 6.2 or newer, or Valkey.")
    return ok("redis", said)


def _writes() -> Finding:
    check = "redis-writes"
    try:
        redis_client().set(_KEY, b"1", ex=10)
    except RedisError as error:
        return fail(check, str(error), "Set REDIS_URL to a writable primary with free memory.")
    return ok(check, "taken")
