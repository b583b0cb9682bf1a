"""Reads pods' logs from the API server. Permissions are checked by the caller."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Final, Self

import orjson
from django.db import connection

from accounts.models import Cluster
from clusters.connection import logs_client_for

MAX_BYTES: Final = 8 * 2**20
"""The limit of one answer that does not follow the log."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """The requested log and its part. `since` is an RFC 3339 time, `user` the key of the reader."""

    user: int
    cluster: str
    namespace: str
    pod: str
    container: str
    tail: int | None
    since: str
    timestamps: bool
    previous: bool = False
    """Whether the log of the container's last instance is read, before its restart."""

    def encoded(self) -> str:
        """Return the query as text for a header."""
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def decoded(cls, text: str | bytes) -> Self:
        """Parse the text of `encoded`."""
        return cls(**orjson.loads(text))


def read_log(cluster: Cluster, query: LogQuery) -> bytes:
    """Return the log so far. Raises ClusterError."""
    pieces = logs_client_for(cluster).pod_log(
        query.namespace,
        query.pod,
        container=query.container,
        tail=query.tail,
        since=query.since,
        timestamps=query.timestamps,
        previous=query.previous,
        limit_bytes=MAX_BYTES,
    )
    return b"".join(pieces)


def follow_log(query: LogQuery, opened: Callable[[Callable[[], None]], None]) -> Iterator[bytes]:
    """Yield the log so far and its continuation, until the container ends or the function given to `opened` is called.
    Raises ClusterError. No database connection is held while it waits."""
    try:
        client = logs_client_for(Cluster.objects.get(name=query.cluster))
    finally:
        connection.close()
    yield from client.pod_log(
        query.namespace,
        query.pod,
        container=query.container,
        tail=query.tail,
        since=query.since,
        timestamps=query.timestamps,
        previous=query.previous,
        follow=True,
        opened=opened,
    )
