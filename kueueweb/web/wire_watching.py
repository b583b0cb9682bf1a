"""Watches in Kubernetes' wire format: Django gives the changes, and between two answers only the event loop waits.

A watch holds no thread and no database connection. When rows of its kind change, its address is requested again with
the watcher's own credentials, so that rights are checked each time.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from typing import Any, Final

import orjson
from redis import RedisError

from foundation.serving.bodies import Message, Receive
from kueueweb.web.gate import Application, Scope, Send, answer
from kueueweb.web.versions import RESTS, ReadVersions, Versions
from kueueweb.web.watching import Answer, WatchLimits, asked, disconnected
from kueueweb.wire.object_reading import Key
from kueueweb.wire.refusals import status
from kueueweb.wire.watches import CURSOR_HEADER, START, WATCH_HEADER, WireWatch, remember

_HEADER: Final = WATCH_HEADER.lower().encode()
_CURSOR: Final = CURSOR_HEADER.lower().encode()
_JSON: Final = ((b"content-type", b"application/json"), (b"cache-control", b"no-cache, private"))
_INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"

ReadMarkers = ReadVersions[tuple[int, str]]
Ask = Callable[[str], Awaitable[Answer]]
"""Asks Django for the changes since a cursor."""


class WireWatchers:
    """In front of `application`: an answer with WATCH_HEADER is replaced by a stream of events."""

    def __init__(self, application: Application, read: ReadMarkers, limits: WatchLimits | None = None) -> None:
        self._application = application
        self._limits = limits or WatchLimits()
        self._markers = Versions(read, self._limits.pause_seconds)
        self._users: Counter[int] = Counter()
        self._open: set[_Watch] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found: list[WireWatch] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [value for name, value in message["headers"] if name.lower() == _HEADER]
                found.extend(WireWatch.decoded(value) for value in headers)
            if not found:
                await send(message)

        headers = [(name, value) for name, value in scope["headers"] if name.lower() != _CURSOR]
        await self._application({**scope, "headers": headers}, receive, watched)
        if found:
            await self._admit(found[0], {**scope, "headers": headers}, receive, send)

    def end(self) -> None:
        """End all watches, each after its last complete event, because the server stops."""
        for watch in list(self._open):
            watch.end()

    async def _admit(self, query: WireWatch, scope: Scope, receive: Receive, send: Send) -> None:
        mine, everything = self._users[query.user], self._users.total()
        if mine >= self._limits.per_user or everything >= self._limits.in_all:
            message = f"you have {mine} watches here and may have {self._limits.per_user}; all users have {everything}"
            await answer(send, HTTPStatus.TOO_MANY_REQUESTS, status(429, message), [(b"retry-after", b"5")])
            return

        async def ask(cursor: str) -> Answer:
            return await asked(self._application, scope, [(_CURSOR, cursor.encode())], ())

        watch = _Watch(query, ask, self._markers, self._limits.beat_seconds)
        gone = asyncio.create_task(disconnected(receive, watch.end))
        self._users[query.user] += 1
        self._open.add(watch)
        try:
            with self._markers.watched():
                await watch.run(send)
        finally:
            self._open.discard(watch)
            self._users[query.user] -= 1
            self._users += Counter()  # drop users without a watch
            gone.cancel()


class _Watch:
    """A watch: the objects that its client knows, and its end."""

    def __init__(self, query: WireWatch, ask: Ask, markers: Versions[tuple[int, str]], beat_seconds: float) -> None:
        self._query = query
        self._ask = ask
        self._markers = markers
        self._marker = self._settled = ""
        self._beat_seconds = beat_seconds
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + query.seconds
        self._over: asyncio.Future[None] = self._loop.create_future()
        self._known: dict[str, Key] = {}
        self._sent: dict[str, str] = {}
        self._cursor = 0
        self._version = query.version
        self._bookmark_at = self._loop.time() + beat_seconds
        self._rests_until = 0.0

    def end(self) -> None:
        """End the watch soon; may be called repeatedly."""
        if not self._over.done():
            self._over.set_result(None)

    async def run(self, send: Send) -> None:
        """Stream events until the watch is over."""
        found = await self._changes(START)
        if found.status != HTTPStatus.OK:
            await found.pass_on(send)
            return
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": list(_JSON)})
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        body = orjson.loads(found.body)
        self._known = {key[0]: tuple(key) for key in body["before"]}
        await self._tell(body, send)
        if self._query.initial_events:
            await self._bookmark(send, {_INITIAL_EVENTS_END: "true"})
        while await self._wait():
            found = await self._changes(str(self._cursor))
            if found.status != HTTPStatus.OK:
                await self._event(send, "ERROR", orjson.loads(found.body))
                break
            told = await self._tell(orjson.loads(found.body), send)
            if not told and self._query.bookmarks and self._loop.time() >= self._bookmark_at:
                await self._bookmark(send, {})
        await asyncio.to_thread(self._remember)
        await send({"type": "http.response.body", "body": b""})

    async def _changes(self, cursor: str) -> Answer:
        """Return the changes since the cursor, and a rest that is as long as many objects need."""
        began = self._loop.time()
        found = await self._ask(cursor)
        ended = self._loop.time()
        self._rests_until = ended + RESTS * (ended - began)
        return found

    async def _tell(self, body: Mapping[str, Any], send: Send) -> bool:
        """Send the events of an answer; return whether there were any."""
        there = {key[0]: tuple(key) for key in body["keys"]}
        told = False
        for gone in [key for uid, key in self._known.items() if uid not in there]:
            del self._known[gone[0]]
            await self._event(send, "DELETED", self._tombstone(gone, body["cursor"]))
            told = True
        for changed in body["objects"]:
            uid, version = changed["uid"], changed["version"]
            if self._sent.get(uid) == version:
                continue  # written by a transaction that became visible before an older one was complete
            await self._event(send, "MODIFIED" if uid in self._known else "ADDED", changed["object"])
            self._known[uid] = there.get(uid, (uid, "", ""))
            self._version = version
            told = True
        self._sent = {changed["uid"]: changed["version"] for changed in body["objects"]}
        self._cursor = body["cursor"]
        return told

    def _tombstone(self, key: Key, cursor: int) -> dict[str, Any]:
        uid, namespace, name = key
        self._version = str(cursor)
        metadata = {"name": name, "uid": uid, "resourceVersion": self._version}
        if namespace:
            metadata["namespace"] = namespace
        if not self._query.form:
            return {"kind": self._query.kind, "apiVersion": self._query.api_version, "metadata": metadata}
        item = {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata}
        if self._query.form != "Table":
            return item
        row = {"cells": [name], "object": item}
        return {"kind": "Table", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "columnDefinitions": [], "rows": [row]}

    async def _bookmark(self, send: Send, annotations: Mapping[str, str]) -> None:
        self._version = str(self._cursor)
        self._bookmark_at = self._loop.time() + self._beat_seconds
        metadata: dict[str, Any] = {"resourceVersion": self._version, "creationTimestamp": None}
        if annotations:
            metadata["annotations"] = dict(annotations)
        kind = {"kind": self._query.kind, "apiVersion": self._query.api_version}
        await self._event(send, "BOOKMARK", {**kind, "metadata": metadata})

    @staticmethod
    async def _event(send: Send, kind: str, item: Mapping[str, Any]) -> None:
        body = orjson.dumps({"type": kind, "object": item}) + b"\n"
        await send({"type": "http.response.body", "body": body, "more_body": True})

    def _remember(self) -> None:
        """Let the client continue from the last version that it has seen, in whichever process."""
        try:
            remember(self._query.user, self._query.asked, self._version, self._cursor, self._known.values())
        except RedisError:
            return  # the version is too old then, and the client must list again

    def _note(self, marker: str) -> None:
        """Note that the rows have changed. If numbers follow the changes, ask once more a moment later."""
        follows = self._query.is_computed and marker != self._settled
        self._settled, self._marker = marker, "" if follows else marker

    async def _wait(self) -> bool:
        """Wait until it is time to ask again, because of a change or to check permissions again. False at the end."""
        rest = min(self._rests_until, self._ends_at) - self._loop.time()
        if rest > 0:
            await asyncio.wait({self._over}, timeout=rest)
        left = self._ends_at - self._loop.time()
        if self._over.done() or left <= 0:
            return False
        with self._markers.expected((self._query.cluster, self._query.kind), self._marker) as change:
            waiting: set[asyncio.Future[Any]] = {change, self._over}
            await asyncio.wait(waiting, timeout=min(left, self._beat_seconds), return_when=asyncio.FIRST_COMPLETED)
        if self._over.done():
            return False
        if change.done():
            self._note(change.result() or "")
        return change.done() or self._loop.time() < self._ends_at
