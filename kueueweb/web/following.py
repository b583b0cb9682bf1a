"""Logs that are followed: Django checks the permission; then they are streamed without one of its threads.

A thread that waits for the next line of a log would be missing for requests, of which a web process serves few at once.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

import orjson

from clusters.api.pod_views import FOLLOW_HEADER, refused
from clusters.api_errors import ClusterError
from clusters.pod_logs import LogQuery
from kueueweb.api.errors import error_response

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Opened = Callable[[Callable[[], None]], None]
Open = Callable[[LogQuery, Opened], Iterator[bytes]]

MAX_FOLLOWERS: Final = 32
_MAX_PER_USER: Final = 4
_MAX_SECONDS: Final = 600.0
"""After this many seconds the reader requests again, and its permission is checked again."""
_HEADER: Final = FOLLOW_HEADER.lower().encode()
_QUEUE: Final = 64
_PATIENCE_SECONDS: Final = 1.0


class Followers:
    """In front of `application`: an answer with FOLLOW_HEADER is replaced by the log that it names."""

    def __init__(self, application: Application, open_log: Open, max_seconds: float = _MAX_SECONDS) -> None:
        self._application = application
        self._open_log = open_log
        self._max_seconds = max_seconds
        self._threads = ThreadPoolExecutor(max_workers=MAX_FOLLOWERS, thread_name_prefix="log")
        self._users: Counter[int] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found: list[LogQuery] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                asked = [value for name, value in message["headers"] if name.lower() == _HEADER]
                found.extend(LogQuery.decoded(value) for value in asked)
            if not found:
                await send(message)

        await self._application(scope, receive, watched)
        if found:
            await self._follow(found[0], receive, send)

    async def _follow(self, query: LogQuery, receive: Receive, send: Send) -> None:
        if self._users[query.user] >= _MAX_PER_USER or self._users.total() >= MAX_FOLLOWERS:
            message = f"You, or all users together, already follow the maximum number of logs ({_MAX_PER_USER} each)."
            await _answer(send, 429, {"reason": "LimitReached", "message": message, "errors": []})
            return
        with self._counted(query.user):
            await self._stream(query, receive, send)

    @contextmanager
    def _counted(self, user: int) -> Iterator[None]:
        self._users[user] += 1
        try:
            yield
        finally:
            self._users[user] -= 1
            self._users += Counter()  # drop users without a followed log

    async def _stream(self, query: LogQuery, receive: Receive, send: Send) -> None:
        reading = _Reading(self._open_log, query)
        work = asyncio.get_running_loop().run_in_executor(self._threads, reading.run)
        gone = asyncio.create_task(_disconnected(receive, reading.end))
        timer = asyncio.get_running_loop().call_later(self._max_seconds, reading.end)
        started = False
        try:
            async for piece in reading.pieces():
                if not started:
                    await send({"type": "http.response.start", "status": 200, "headers": _TEXT})
                    started = True
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            if reading.error is not None and not started:
                answer = error_response(refused(reading.error, query.cluster), {})
                assert answer is not None
                await _answer(send, answer.status_code, answer.data)
                return
            if not started:
                await send({"type": "http.response.start", "status": 200, "headers": _TEXT})
            await send({"type": "http.response.body", "body": b""})
        finally:
            timer.cancel()
            gone.cancel()
            reading.end()
            await work


class _Reading:
    """One log, read in a thread and handed over to the event loop; a slow reader delays only that thread."""

    def __init__(self, open_log: Open, query: LogQuery) -> None:
        self.error: ClusterError | None = None
        self._open_log = open_log
        self._query = query
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._free = threading.Semaphore(_QUEUE)
        self._ended = threading.Event()
        self._close: Callable[[], None] | None = None

    def end(self) -> None:
        """Stop reading; may be called from any thread, and repeatedly."""
        self._ended.set()
        if self._close is not None:
            self._close()

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the log as it arrives."""
        while (piece := await self._queue.get()) is not None:
            self._free.release()
            yield piece

    def run(self) -> None:
        """Read until the end, in a thread."""
        try:
            for piece in self._open_log(self._query, self._opened):
                if not self._hand_over(piece):
                    break
        except ClusterError as error:
            self.error = error
        finally:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, None)

    def _opened(self, close: Callable[[], None]) -> None:
        self._close = close
        if self._ended.is_set():
            close()

    def _hand_over(self, piece: bytes) -> bool:
        """Wait until the reader has room for it; return whether the reader is still connected."""
        while not self._free.acquire(timeout=_PATIENCE_SECONDS):
            if self._ended.is_set():
                return False
        self._loop.call_soon_threadsafe(self._queue.put_nowait, piece)
        return not self._ended.is_set()


async def _disconnected(receive: Receive, then: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then()


_SAFE: Final = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
_TEXT: Final = [(b"content-type", b"text/plain; charset=utf-8"), *_SAFE]


async def _answer(send: Send, status: int, content: Any) -> None:
    body = orjson.dumps(content)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_SAFE]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
