"""Mirrors a kind: a list, then its changes, for as long as wanted, across connection failures.

Its output suffices to know the cluster even if events come late, twice or never: lists are complete and are repeated
from time to time, and events are not repeated.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from clusters.api_errors import ClusterError
from clusters.api_objects import Kind
from clusters.client import ClusterClient, Listing, WatchEvent

_log = logging.getLogger(__name__)

_FIRST_WAIT_SECONDS: Final = 0.5
_MAX_WAIT_SECONDS: Final = 30.0
_WATCH_SECONDS: Final = 300.0


class Reflector:
    """Iterates over Listing (all present objects; others are gone) and WatchEvent (one change).

    * relist_seconds: how often everything is listed again, in case events were missed.
    * field_selector: limits the objects of the kind.
    """

    def __init__(
        self,
        client: ClusterClient,
        kind: Kind,
        relist_seconds: float = 60.0,
        clock: Callable[[], float] = time.monotonic,
        *,
        field_selector: str = "",
    ) -> None:
        self.kind = kind
        self._field_selector = field_selector
        self._client = client
        self._relist_seconds = relist_seconds
        self._clock = clock
        self._stopped = threading.Event()
        self._end_watch: Callable[[], None] | None = None
        self._failures = 0
        self._seen: dict[str, str] = {}
        self._version = ""

    def stop(self) -> None:
        """End the iteration, from any thread."""
        self._stopped.set()
        if self._end_watch is not None:
            self._end_watch()

    def __iter__(self) -> Iterator[Listing | WatchEvent]:
        while not self._stopped.is_set():
            try:
                listing = self._client.list(self.kind, field_selector=self._field_selector)
            except ClusterError as error:
                self._wait(error)
                continue
            self._version = listing.resource_version
            self._seen = {item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in listing.items}
            yield listing
            yield from self._changes(self._clock() + self._relist_seconds)

    def _changes(self, until: float) -> Iterator[WatchEvent]:
        """Watch, resuming from the last version, until it is time to list again or the version has expired."""
        while not self._stopped.is_set():
            remaining = until - self._clock()
            if remaining <= 0:
                return
            try:
                yield from self._watch(int(min(_WATCH_SECONDS, max(1.0, remaining))))
            except ClusterError as error:
                self._wait(error)
                if error.status:
                    # The server answered with an error, and will do so again.
                    return

    def _watch(self, seconds: int) -> Iterator[WatchEvent]:
        events = self._client.watch(
            self.kind,
            self._version,
            field_selector=self._field_selector,
            timeout_seconds=seconds,
            opened=self._opened,
        )
        for event in events:
            self._failures = 0
            metadata = event.object["metadata"]
            version, uid = metadata["resourceVersion"], metadata.get("uid", "")
            self._version = version
            if event.type == "BOOKMARK" or not self._is_news(event.type, uid, version):
                continue
            yield event
            if self._stopped.is_set():
                return

    def _is_news(self, kind: str, uid: str, version: str) -> bool:
        if kind == "DELETED":
            return self._seen.pop(uid, None) is not None
        repeated = self._seen.get(uid) == version
        self._seen[uid] = version
        return not repeated

    def _opened(self, end: Callable[[], None]) -> None:
        self._end_watch = end
        if self._stopped.is_set():
            end()

    def _wait(self, error: ClusterError) -> None:
        """Wait, longer with each failure in a row. An expired version causes one short wait only."""
        wait = min(max(_FIRST_WAIT_SECONDS * 2**self._failures, error.retry_after), _MAX_WAIT_SECONDS)
        self._failures += 1
        if not error.expired:
            _log.warning(
                "Watching %s of %s failed: %s; retrying in %.1f s", self.kind.plural, self._client.server, error, wait
            )
        self._stopped.wait(wait)
