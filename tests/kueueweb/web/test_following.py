"""Logs that are followed: streamed without a thread of the pool, to few at once, and ended with their reader."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from clusters.api.pod_views import FOLLOW_HEADER
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.pod_logs import LogQuery
from kueueweb.web.following import Followers, Message, Opened, Receive, Scope, Send
from tests.patience import PATIENCE_SECONDS

QUERY = LogQuery(7, "default", "team", "train-x", "", None, "", timestamps=False)
SCOPE = {"type": "http", "path": "/", "headers": [(b"authorization", b"Token x")]}


async def django(scope: Scope, receive: Receive, send: Send) -> None:
    """What the view answers to one who may follow."""
    headers = [(b"content-type", b"text/plain"), (FOLLOW_HEADER.encode(), QUERY.encoded().encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


async def other(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 418, "headers": []})
    await send({"type": "http.response.body", "body": b"tea"})


class Reader:
    """A client: what it got, and when it leaves."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.left = asyncio.Event()
        self.heard = asyncio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        if message.get("body"):
            self.heard.set()

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])


class Log:
    """A log that grows until it is closed."""

    def __init__(self) -> None:
        self.closed = threading.Event()

    def open(self, query: LogQuery, opened: Opened) -> Iterator[bytes]:
        assert query == QUERY
        opened(self.closed.set)
        while not self.closed.wait(0.005):
            yield b"line\n"


def refuse(error: ClusterError) -> Any:
    def open_log(query: LogQuery, opened: Opened) -> Iterator[bytes]:
        raise error
        yield b""

    return open_log


def test_any_other_answer_passes() -> None:
    async def scene() -> Reader:
        reader = Reader()
        await Followers(other, Log().open)(SCOPE, reader.receive, reader.send)
        return reader

    reader = asyncio.run(scene())
    assert (reader.status, reader.body) == (418, b"tea")


def test_a_log_is_streamed_and_ends_with_its_end() -> None:
    def three(query: LogQuery, opened: Opened) -> Iterator[bytes]:
        yield from (b"a\n", b"b\n", b"c\n")

    async def scene() -> Reader:
        reader = Reader()
        await Followers(django, three)(SCOPE, reader.receive, reader.send)
        return reader

    reader = asyncio.run(scene())
    assert (reader.status, reader.body) == (200, b"a\nb\nc\n")
    assert dict(reader.messages[0]["headers"])[b"cache-control"] == b"no-store"
    assert FOLLOW_HEADER.lower().encode() not in dict(reader.messages[0]["headers"])
    assert not reader.messages[-1].get("more_body")


def test_it_ends_when_the_reader_leaves_and_after_a_while() -> None:
    async def scene(leaves: bool) -> bool:
        log, reader = Log(), Reader()
        followers = Followers(django, log.open, max_seconds=60.0 if leaves else 0.2)
        following = asyncio.create_task(followers(SCOPE, reader.receive, reader.send))
        await reader.heard.wait()
        if leaves:
            reader.left.set()
        await asyncio.wait_for(following, PATIENCE_SECONDS)
        return log.closed.is_set()

    assert asyncio.run(scene(leaves=True))
    assert asyncio.run(scene(leaves=False))


def test_a_user_may_follow_only_a_few_logs_at_once() -> None:
    async def scene() -> list[int]:
        log, readers = Log(), [Reader() for _ in range(6)]
        followers = Followers(django, log.open)
        tasks = [asyncio.create_task(followers(SCOPE, reader.receive, reader.send)) for reader in readers]
        for reader in readers:
            await reader.heard.wait()
        for reader in readers:
            reader.left.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE_SECONDS)
        again = Reader()
        again.left.set()
        await followers(SCOPE, again.receive, again.send)
        return [*(reader.status for reader in readers), again.status]

    assert asyncio.run(scene()) == [200, 200, 200, 200, 429, 429, 200]


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (ClusterError(400, "BadRequest", "is waiting to start"), 400, "Invalid"),
        (ClusterError(404, "NotFound", "not found"), 404, "NotFound"),
        (ClusterError(403, "Forbidden", "may not"), 503, "Unavailable"),
        (ClusterUnreachable("refused"), 503, "Unavailable"),
    ],
)
def test_what_the_cluster_says_against_it_is_an_answer(error: ClusterError, status: int, reason: str) -> None:
    async def scene() -> Reader:
        reader = Reader()
        await Followers(django, refuse(error))(SCOPE, reader.receive, reader.send)
        return reader

    reader = asyncio.run(scene())
    assert (reader.status, orjson.loads(reader.body)["reason"]) == (status, reason)
