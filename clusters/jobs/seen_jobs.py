"""Jobs that wait, as the watcher saw them last: with them, the push starts a job without reading it first.

They are kept in Redis for a while. Any of them may be missing, and each is written back with its resourceVersion: a job
that has changed since is refused by the API server, and read then.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable
from typing import Any, Final

import orjson
from redis import RedisError

from accounts.models import Cluster
from clusters.jobs.framework.manifest import JsonObject, uid_of, version_of
from foundation.redis_client import redis_client

_log = logging.getLogger(__name__)

_KEPT_SECONDS: Final = 60
"""Longer than a job waits that starts at once. One that waits longer is read when it starts."""
_MAX_AT_ONCE: Final = 500
"""Maximum number of waiting jobs in a cached list: most of them will wait on."""
_MAX_BYTES: Final = 8 * 1024
"""Maximum size of a cached job: tenants write jobs of up to a megabyte, as fast as they like, and Redis holds them all.
"""


def keep_seen(cluster: Cluster, jobs: Collection[JsonObject]) -> None:
    """Cache the current state of these jobs of the cluster. Without Redis, the push reads the jobs from the cluster."""
    if not jobs or len(jobs) > _MAX_AT_ONCE:
        return
    try:
        with redis_client().pipeline(transaction=False) as pipeline:
            for job in jobs:
                text = _text_of(job)
                if text is not None:
                    pipeline.set(_key(cluster, uid_of(job)), text, ex=_KEPT_SECONDS)
            pipeline.execute()
    except RedisError as error:
        _log.warning("Waiting jobs of cluster %s will be read before they start: %s", cluster.name, error)


def seen_jobs(cluster: Cluster, uids: Iterable[str]) -> dict[str, JsonObject]:
    """Return the cached jobs of these uids, by uid."""
    wanted = list(uids)
    if not wanted:
        return {}
    try:
        found: Any = redis_client().mget([_key(cluster, uid) for uid in wanted])
    except RedisError as error:
        _log.warning("Waiting jobs of cluster %s are read before they start: %s", cluster.name, error)
        return {}
    return {uid: orjson.loads(text) for uid, text in zip(wanted, found, strict=True) if text is not None}


def _key(cluster: Cluster, uid: str) -> str:
    return f"kueueweb:seen-job:{cluster.pk}:{uid}"


def _text_of(job: JsonObject) -> bytes | None:
    """Return the job without the record of its writers, which is half of it and which no rule reads; None if not
    cached."""
    metadata = {key: value for key, value in job["metadata"].items() if key != "managedFields"}
    try:
        text = orjson.dumps({**job, "metadata": metadata})
    except orjson.JSONEncodeError:  # too deep for orjson, not for the API server
        return None
    return text if len(text) <= _MAX_BYTES and version_of(job) else None
