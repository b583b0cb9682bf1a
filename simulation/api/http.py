"""The API server over HTTP: an ASGI application, watches as streams, and the time that drives the cluster.

One thread does everything that changes the cluster, so that requests and controllers never interleave. What only reads
is answered by the event loop, in between or while that thread waits for an admission webhook: which may itself send a
request to this server before it answers.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from random import Random
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import orjson
from prometheus_client import CONTENT_TYPE_LATEST

from simulation.api import errors
from simulation.api.api_server import Answer, ApiServer, Request, WatchRequest
from simulation.api.objects import JsonObject, namespace_of
from simulation.api.pod_logs import LogRequest, PodLogs
from simulation.api.store import Change
from simulation.clock import VirtualClock
from simulation.cluster import SimulatedCluster
from simulation.control import Control
from simulation.controllers.monitor import METRICS_PATH, Monitors

_Result = TypeVar("_Result")
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

_MAX_BODY_BYTES = 3 * 1024 * 1024
_BOOKMARK_SECONDS = 10.0
_WATCH_SECONDS = 1800
_SAVE_SECONDS = 2.0
_LOG_SECONDS = 0.2


class Application:
    """ASGI 3."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self.cluster = cluster
        self._lock = threading.Lock()
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="cluster")
        cluster.registry.webhooks.outside = self._outside
        self._server = ApiServer(cluster)
        self._control = Control(cluster)
        self._monitors = Monitors(cluster.environment)
        self._logs = PodLogs(cluster.environment)
        self._random = Random(cluster.registry.seed)  # noqa: S311 - chaos must be repeatable, not unguessable
        self._wake = asyncio.Event()
        self._watches: set[WatchStream] = set()

    def end_watches(self) -> None:
        """End all streams in an orderly way, like an API server that shuts down."""
        for watch in self._watches:
            watch.end()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        tasks = [asyncio.create_task(self._live()), asyncio.create_task(self._keep())]
        await send({"type": "lifespan.startup.complete"})
        await receive()
        for task in tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        await self._write(self.cluster.save)
        self._writer.shutdown()
        await send({"type": "lifespan.shutdown.complete"})

    @contextlib.contextmanager
    def _outside(self) -> Iterator[None]:
        """Lets others read while the writing thread waits."""
        self._lock.release()
        try:
            yield
        finally:
            self._lock.acquire()

    async def _write(self, change: Callable[[], _Result]) -> _Result:
        """Carries out a change, after those that came before it."""

        def locked() -> _Result:
            with self._lock:
                return change()

        return await asyncio.get_running_loop().run_in_executor(self._writer, locked)

    async def _live(self) -> None:
        """Lets everything happen at its time."""
        while True:
            self._wake.clear()
            due = await self._write(self.cluster.settle)
            timeout = None
            if due is not None and not isinstance(self.cluster.clock, VirtualClock):
                timeout = max(0.0, due - self.cluster.clock.now())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), timeout)

    async def _keep(self) -> None:
        """Saves the snapshot when something has changed."""
        saved = self.cluster.store.resource_version
        while self.cluster.snapshot is not None:
            await asyncio.sleep(_SAVE_SECONDS)
            if self.cluster.store.resource_version != saved:
                saved = self.cluster.store.resource_version
                await self._write(self.cluster.save)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {key.decode("latin-1").lower(): value.decode("latin-1") for key, value in scope["headers"]}
        try:
            body = await _read(receive)
        except errors.ApiError as error:
            await _respond(send, Answer(error.code, error.status()))
            return
        request = Request(
            method=scope["method"],
            path=scope["path"],
            query=dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)),
            content_type=headers.get("content-type", ""),
            body=body,
            user_agent=headers.get("user-agent", ""),
        )
        if request.path == METRICS_PATH and request.method == "GET":
            with self._lock:
                text = self._monitors.text()
            await _send(send, 200, _TEXT, text)
            return
        if request.method == "GET":
            with self._lock:
                answer = self._answer(request)
        else:
            answer = await self._write(lambda: self._answer(request))
        if isinstance(answer, WatchRequest):
            await self._stream(answer, receive, send)
            return
        if isinstance(answer, LogRequest):
            await self._send_log(answer, receive, send)
            return
        if request.method != "GET":
            self._wake.set()
        await _respond(send, answer)

    def _answer(self, request: Request) -> Answer | WatchRequest | LogRequest:
        answer = self._control.answer(request) or self._refusal() or self._server.answer(request)
        if request.method != "GET":
            self.cluster.settle()
        return answer

    def _refusal(self) -> Answer | None:
        code = self.cluster.refusal
        return Answer(code, errors.refusal(code).status()) if code else None

    async def _stream(self, watch: WatchRequest, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _JSON})
        # The first bytes tell the client that the watch is open.
        await send({"type": "http.response.body", "body": b"", "more_body": True})
        stream = WatchStream(self.cluster, watch, self._random, self._lock)
        self._watches.add(stream)
        gone = asyncio.create_task(_disconnected(receive, stream.wake))
        try:
            async for lines in stream:
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": lines, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()
            stream.close()
            self._watches.discard(stream)

    async def _send_log(self, asked: LogRequest, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": _TEXT})
        gone = asyncio.create_task(_disconnected(receive, asyncio.Event()))
        try:
            async for lines in self._log(asked):
                if gone.done():
                    return
                await send({"type": "http.response.body", "body": lines, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            gone.cancel()

    async def _log(self, asked: LogRequest) -> AsyncIterator[bytes]:
        """Yield the log so far, then new lines until the container ends."""
        with self._lock:
            lines, running = self._logs.recent(asked)
        text = b"".join(line.encoded(timestamp=asked.timestamps) for line in lines)
        yield text[: asked.limit_bytes]
        last = lines[-1].at if lines else asked.since
        while asked.follow and running:
            await asyncio.sleep(_LOG_SECONDS)
            try:
                with self._lock:
                    lines, running = self._logs.recent(replace(asked, tail=None, since=last))
            except errors.ApiError:  # the pod is gone
                return
            lines = [line for line in lines if line.at > last]
            yield b"".join(line.encoded(timestamp=asked.timestamps) for line in lines)
            last = lines[-1].at if lines else last


class WatchStream:
    """The events of one watch as JSON lines, chaos included."""

    def __init__(
        self, cluster: SimulatedCluster, watch: WatchRequest, random: Random, lock: AbstractContextManager[bool]
    ) -> None:
        self.wake = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._lock = lock
        self._cluster = cluster
        self._watch = watch
        self._random = random
        self._cursor = watch.resource_version or 0
        self._ended = False
        cluster.store.listeners.append(self._on_change)

    def end(self) -> None:
        """End the iteration."""
        self._ended = True
        self.wake.set()

    def close(self) -> None:
        self._cluster.store.listeners.remove(self._on_change)

    def _on_change(self, plural: str, change: Change) -> None:
        if plural == self._watch.plural and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self.wake.set)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._watch.timeout_seconds or _WATCH_SECONDS)
        if self._watch.resource_version is None:
            yield self._initial()
        elif self._watch.resource_version > self._cluster.store.resource_version:
            why = f"Too large resource version: {self._watch.resource_version}"
            yield _line("ERROR", errors.ApiError(504, "Timeout", why).status())
            return
        while loop.time() < end and not self._ended:
            self.wake.clear()
            try:
                with self._lock:
                    changes = self._cluster.store.changes_since(self._watch.plural, self._cursor)
                    version = self._cluster.store.resource_version
            except errors.ApiError as error:
                yield _line("ERROR", error.status())
                return
            for change in changes:
                self._cursor = change.resource_version
                event = self._event(change)
                if event is not None and self._cluster.chaos.disconnects(self._random):
                    return
                if event is not None:
                    await asyncio.sleep(self._cluster.chaos.delay_seconds)
                    yield event * self._cluster.chaos.copies(self._random)
            if not changes:
                # Everything up to the store's version has been sent, including changes of other kinds.
                self._cursor = max(self._cursor, version)
                if not await _wait(self.wake, min(_BOOKMARK_SECONDS, end - loop.time())):
                    yield self._bookmark() if self._watch.bookmarks else b""

    def _initial(self) -> bytes:
        with self._lock:
            self._cursor = self._cluster.store.resource_version
            items = list(self._cluster.store.items(self._watch.plural, self._watch.namespace))
        return b"".join(_line("ADDED", item) for item in items if self._watch.matches(item))

    def _event(self, change: Change) -> bytes | None:
        """Return the change as an event of this watch: an object that begins or ceases to match is added or deleted."""
        if self._watch.namespace and namespace_of(change.object) != self._watch.namespace:
            return None
        before = change.previous is not None and self._watch.matches(change.previous)
        after = change.type != "DELETED" and self._watch.matches(change.object)
        if before and after:
            return _line("MODIFIED", change.object)
        if after:
            return _line("ADDED", change.object)
        return _line("DELETED", change.object) if before else None

    def _bookmark(self) -> bytes:
        version = str(self._cursor)
        item = {
            "kind": self._watch.kind,
            "apiVersion": self._watch.api_version,
            "metadata": {"resourceVersion": version, "creationTimestamp": None},
        }
        return _line("BOOKMARK", item)


_JSON = [(b"content-type", b"application/json"), (b"cache-control", b"no-cache, private")]
_TEXT = [(b"content-type", CONTENT_TYPE_LATEST.encode())]


def _line(kind: str, item: JsonObject) -> bytes:
    return orjson.dumps({"type": kind, "object": item}) + b"\n"


async def _wait(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), max(0.0, seconds))
    except TimeoutError:
        return False
    return True


async def _read(receive: Receive) -> bytes:
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > _MAX_BODY_BYTES:
            raise errors.ApiError(413, "RequestEntityTooLarge", f"limit is {_MAX_BODY_BYTES} bytes")
        if not message.get("more_body"):
            return bytes(body)


async def _disconnected(receive: Receive, wake: asyncio.Event) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    wake.set()


async def _respond(send: Send, answer: Answer) -> None:
    await _send(send, answer.code, _JSON, orjson.dumps(answer.body))


async def _send(send: Send, code: int, headers: Headers, body: bytes) -> None:
    headers = [*headers, (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": code, "headers": headers})
    await send({"type": "http.response.body", "body": body})
