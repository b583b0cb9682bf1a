"""Watches of single workloads: Django gives each answer, and between two of them only the event loop waits.

A watch holds no thread and no database connection. When the version of its workload changes, and at intervals without
a change, the ordinary address is requested again with the watcher's own credentials. So rights are checked each time,
and a user who has lost them gets the refusal instead of the next state.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import orjson
from django.db import Error as DatabaseFailure

from foundation.serving.bodies import Headers, Message, Receive
from kueueweb.web.gate import Application, Scope, Send, answer
from kueueweb.web.versions import ReadVersions, Versions
from queues.api.watches import WATCH_HEADER, WATCH_MEDIA_TYPE, WATCH_NAMES, WatchQuery

MAX_WATCHES: Final = 500
_MAX_PER_USER: Final = 50
_BEAT_SECONDS: Final = 15.0
"""The interval of a watch without news, and of an empty line in a stream: proxies cut silent connections."""
Header = tuple[bytes, bytes]
_HEADER: Final = WATCH_HEADER.lower().encode()
_NOT_SENT: Final = (b"accept-encoding", b"content-length", b"transfer-encoding")
_SAFE: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


@dataclass(frozen=True, slots=True)
class WatchLimits:
    """The maximum number of watches of a user in one process, and of all users; the interval at which each checks again
    without news.
    """

    per_user: int = _MAX_PER_USER
    in_all: int = MAX_WATCHES
    beat_seconds: float = _BEAT_SECONDS
    pause_seconds: float = 1.0


class Watchers:
    """In front of `application`: an answer with WATCH_HEADER is replaced by later answers."""

    def __init__(self, application: Application, read: ReadVersions[int], limits: WatchLimits | None = None) -> None:
        self._application = application
        self._limits = limits or WatchLimits()
        self._versions = Versions(read, self._limits.pause_seconds)
        self._users: Counter[int] = Counter()
        self._open: set[_Watch] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found: list[WatchQuery] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                asked = [value for name, value in message["headers"] if name.lower() == _HEADER]
                found.extend(WatchQuery.decoded(value) for value in asked)
            if not found:
                await send(message)

        await self._application(scope, receive, watched)
        if found:
            await self._admit(found[0], scope, receive, send)

    def end(self) -> None:
        """End all watches, each after its last complete line, because the server stops."""
        for watch in list(self._open):
            watch.end()

    async def _admit(self, query: WatchQuery, scope: Scope, receive: Receive, send: Send) -> None:
        if self._users[query.user] >= self._limits.per_user or self._users.total() >= self._limits.in_all:
            message = (
                f"You watch {self._users[query.user]} workloads here and may watch {self._limits.per_user}; all "
                f"users together watch {self._users.total()} of {self._limits.in_all}. End a watch and try again, "
                "or use the lists: workloads/ and the live stream."
            )
            refusal = {"reason": "LimitReached", "message": message, "errors": []}
            await answer(send, HTTPStatus.TOO_MANY_REQUESTS, refusal, [(b"retry-after", b"5")])
            return

        async def ask() -> Answer:
            return await asked(self._application, scope)

        watch = _Watch(query, ask, self._versions, self._limits.beat_seconds)
        gone = asyncio.create_task(disconnected(receive, watch.end))
        try:
            with self._counted(query.user), self._versions.watched():
                self._open.add(watch)
                await watch.run(send)
        finally:
            self._open.discard(watch)
            gone.cancel()

    @contextmanager
    def _counted(self, user: int) -> Iterator[None]:
        self._users[user] += 1
        try:
            yield
        finally:
            self._users[user] -= 1
            self._users += Counter()  # drop users without a watch


@dataclass(slots=True)
class Answer:
    """The answer of the ordinary address."""

    status: int = 0
    headers: Headers = field(default_factory=list)
    body: bytes = b""

    @property
    def version(self) -> str:
        """The version of the workload in the answer."""
        return next((value for name, value in self.headers if name.lower() == b"etag"), b"").decode().strip('"')

    def reason(self) -> dict[str, str]:
        """Return the reason of the refusal, in the words of an error."""
        try:
            said = orjson.loads(self.body)
            return {"reason": said["reason"], "message": said["message"]}
        except (orjson.JSONDecodeError, KeyError):  # not an answer of the API
            return {"reason": "Unavailable", "message": f"The server answers with status {self.status}."}

    async def take(self, message: Message) -> None:
        """Process a message that the application sends."""
        if message["type"] == "http.response.start":
            self.status, self.headers = message["status"], list(message["headers"])
        elif message["type"] == "http.response.body":
            self.body += message.get("body", b"")

    async def pass_on(self, send: Send) -> None:
        """Send the answer unchanged."""
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        await send({"type": "http.response.body", "body": self.body})


class _Watch:
    """A watch: the state that it has shown, and its end."""

    def __init__(
        self, query: WatchQuery, ask: Callable[[], Awaitable[Answer]], versions: Versions[int], beat_seconds: float
    ) -> None:
        self._query = query
        self._ask = ask
        self._versions = versions
        self._beat_seconds = beat_seconds
        self._loop = asyncio.get_running_loop()
        self._ends_at = self._loop.time() + query.seconds
        self._over: asyncio.Future[None] = self._loop.create_future()

    def end(self) -> None:
        """End the watch soon; may be called repeatedly."""
        if not self._over.done():
            self._over.set_result(None)

    async def run(self, send: Send) -> None:
        """Answer until the watch is over."""
        first = await self._ask()
        if self._query.stream and first.status == HTTPStatus.OK:
            await self._stream(first, send)
        else:
            await self._answer_once(first, send)

    async def _answer_once(self, found: Answer, send: Send) -> None:
        known = self._query.version
        while found.status == HTTPStatus.OK and found.version == known:
            if not await self._wait(known):
                headers = [*_SAFE, (b"etag", f'"{known}"'.encode())]
                await send({"type": "http.response.start", "status": HTTPStatus.NOT_MODIFIED, "headers": headers})
                await send({"type": "http.response.body", "body": b""})
                return
            found = await self._ask()
        await found.pass_on(send)

    async def _stream(self, found: Answer, send: Send) -> None:
        headers = [(b"content-type", WATCH_MEDIA_TYPE.encode()), *_SAFE]
        await send({"type": "http.response.start", "status": HTTPStatus.OK, "headers": headers})
        kind, seen, last = "MODIFIED" if self._query.version else "ADDED", self._query.version, found.body
        while found.status == HTTPStatus.OK:
            workload = orjson.loads(found.body)
            if workload["id"] != self._query.workload:  # another workload of that name
                await send(line("DELETED", last))
                break
            if found.version == seen:
                await send(line("BOOKMARK", orjson.dumps({"resource_version": seen})))
            else:
                await send(line(kind, found.body))
            kind, seen, last = "MODIFIED", found.version, found.body
            if workload["status"] == "Finished" or not await self._wait(seen):
                break
            found = await self._ask()
        else:
            await send(await self._last_line(found, last))
        await send({"type": "http.response.body", "body": b""})

    async def _last_line(self, refusal: Answer, last: bytes) -> Message:
        """Return the last line: the workload is deleted, or why it is no longer shown."""
        try:
            if refusal.status == HTTPStatus.NOT_FOUND and await self._versions.is_gone(self._query.workload):
                return line("DELETED", last)
        except DatabaseFailure:
            pass  # then the answer is passed on unchanged
        return line("ERROR", orjson.dumps({"status": refusal.status, **refusal.reason()}))

    async def _wait(self, version: str) -> bool:
        """Wait until it is time to ask again, because of a change or to check permissions again. False at the end."""
        left = self._ends_at - self._loop.time()
        if self._over.done() or left <= 0:
            return False
        with self._versions.expected(self._query.workload, version) as change:
            waiting: set[asyncio.Future[Any]] = {change, self._over}
            await asyncio.wait(waiting, timeout=min(left, self._beat_seconds), return_when=asyncio.FIRST_COMPLETED)
            if self._over.done():
                return False
            return change.done() or self._loop.time() < self._ends_at


async def asked(
    application: Application, scope: Scope, more: Sequence[Header] = (), left_out: Collection[str] = WATCH_NAMES
) -> Answer:
    """Return the answer of the ordinary address to the watcher: with more headers in the request, and without the
    parameters for waiting."""
    parameters = parse_qsl(scope["query_string"].decode("ascii"), keep_blank_values=True)
    query = urlencode([(name, value) for name, value in parameters if name not in left_out])
    headers = [*((name, value) for name, value in scope["headers"] if name.lower() not in _NOT_SENT), *more]
    found = Answer()
    await application({**scope, "query_string": query.encode(), "headers": headers}, _no_body(), found.take)
    return found


def _no_body() -> Receive:
    """Receives an empty body, and then nothing more."""
    messages = iter([{"type": "http.request", "body": b"", "more_body": False}])

    async def receive() -> Message:
        for message in messages:
            return message
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    return receive


def line(kind: str, content: bytes) -> dict[str, Any]:
    body = orjson.dumps({"type": kind, "object": orjson.Fragment(content)}) + b"\n"
    return {"type": "http.response.body", "body": body, "more_body": True}


async def disconnected(receive: Receive, then: Callable[[], None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    then()
