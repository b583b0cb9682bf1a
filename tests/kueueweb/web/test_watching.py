"""Watches of one workload: what is streamed or answered, to whom, and when it ends; the ordinary address is played."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import parse_qs

import orjson
import pytest
from django.db import InterfaceError

from foundation.serving.bodies import Message, Receive
from kueueweb.web.gate import Scope, Send
from kueueweb.web.watching import Watchers, WatchLimits
from queues.api.watches import WATCH_HEADER, WatchQuery

PATIENCE = 20
QUICK = WatchLimits(per_user=2, in_all=3, beat_seconds=60, pause_seconds=0.002)
BEATING = WatchLimits(beat_seconds=0.01, pause_seconds=60)


class Server:
    """One workload and what its address answers; who has no right to see it any more gets a refusal."""

    def __init__(self) -> None:
        self.version: str | None = "1"
        self.status = "Pending"
        self.key = 7
        self.refusal: tuple[int, str] | None = None
        self.broken = 0
        self.asked: list[Scope] = []
        self.looked: list[list[int]] = []
        self.left = threading.Event()

    def read(self, workloads: list[int]) -> dict[int, str]:
        self.looked.append(workloads)
        if not workloads:
            self.left.set()
        if self.broken:
            self.broken -= 1
            raise InterfaceError("connection already closed")
        return {7: self.version} if self.version is not None and self.key == 7 else {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = parse_qs(scope["query_string"].decode())
        if "watch" in query or "resource_version" in query:
            headers = [(WATCH_HEADER.encode(), watch_query(query).encoded().encode())]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            await send({"type": "http.response.body", "body": b"{}"})
            return
        assert (await receive())["type"] == "http.request"
        self.asked.append(scope)
        status, body, headers = 200, {"id": self.key, "status": self.status}, [(b"ETag", f'"{self.version}"'.encode())]
        if self.refusal or self.version is None:
            status, reason = self.refusal or (404, "NotFound")
            body, headers = {"reason": reason, "message": "no", "errors": []}, []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": orjson.dumps(body)})


def watch_query(query: dict[str, list[str]]) -> WatchQuery:
    version, seconds = query.get("resource_version", [""])[0], int(query.get("timeout_seconds", ["600"])[0])
    return WatchQuery(workload=7, user=1, version=version, stream="watch" in query, seconds=seconds)


class Reader:
    """A client: what it got, and when it leaves."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.left = asyncio.Event()
        self._news = asyncio.Event()

    async def receive(self) -> Message:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        self.messages.append(message)
        self._news.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._news.clear()
            await self._news.wait()

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.messages[0]["headers"])

    @property
    def events(self) -> list[tuple[str, Any]]:
        lines = b"".join(message.get("body", b"") for message in self.messages[1:]).splitlines()
        return [(event["type"], event["object"]) for event in map(orjson.loads, lines)]

    @property
    def ended(self) -> bool:
        return bool(self.messages) and self.messages[-1] == {"type": "http.response.body", "body": b""}


class Scene:
    """Watchers in front of a server, and readers that come."""

    def __init__(self, limits: WatchLimits = QUICK) -> None:
        self.server = Server()
        self.watchers = Watchers(self.server, self.server.read, limits)
        self.tasks: list[asyncio.Task[None]] = []

    def come(self, query: str = "watch=true") -> Reader:
        reader = Reader()
        scope = {
            "type": "http", "path": "/base/w/", "root_path": "/base", "query_string": f"cluster=east&{query}".encode(),
            "headers": [(b"authorization", b"Token x"), (b"accept-encoding", b"gzip")],
        }  # fmt: skip
        self.tasks.append(asyncio.create_task(self.watchers(scope, reader.receive, reader.send)))
        return reader

    async def end(self) -> None:
        await asyncio.gather(*self.tasks)


def play(act: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(act(), PATIENCE))


def test_a_stream_shows_each_state_and_ends_with_the_workload() -> None:
    async def act() -> None:
        scene = Scene()
        reader = scene.come()
        await reader.until(lambda: len(reader.messages) > 1)
        scene.server.version, scene.server.status = "2", "Admitted"
        await reader.until(lambda: len(reader.messages) > 2)
        scene.server.version, scene.server.status = "3", "Finished"
        await scene.end()
        assert (reader.status, reader.headers[b"content-type"]) == (200, b"application/x-ndjson")
        assert reader.headers[b"cache-control"] == b"no-store"
        states = [("ADDED", "Pending"), ("MODIFIED", "Admitted"), ("MODIFIED", "Finished")]
        assert [(kind, found["status"]) for kind, found in reader.events] == states
        assert reader.ended
        inner = scene.server.asked[-1]
        assert (inner["query_string"], inner["root_path"]) == (b"cluster=east", "/base")
        assert inner["headers"] == [(b"authorization", b"Token x")]

    play(act)


def test_a_stream_begins_after_the_version_that_is_known_and_ends_when_its_time_is_over() -> None:
    async def act() -> None:
        scene = Scene()
        known, older = (scene.come(f"watch=true&resource_version={v}&timeout_seconds=0") for v in ("1", "0"))
        await scene.end()
        assert [kind for kind, _ in known.events] == ["BOOKMARK"]
        assert known.events[0][1] == {"resource_version": "1"}
        assert [kind for kind, _ in older.events] == ["MODIFIED"]
        assert known.ended

    play(act)


def test_a_question_is_answered_at_once_where_there_is_news_and_else_when_there_is() -> None:
    async def act() -> None:
        scene = Scene()
        older, known = scene.come("resource_version=0"), scene.come("resource_version=1")
        await older.until(lambda: len(older.messages) > 1)
        assert not known.messages
        scene.server.version = "2"
        await scene.end()
        assert (older.status, older.headers[b"ETag"]) == (200, b'"1"')
        assert (known.status, known.headers[b"ETag"]) == (200, b'"2"')

    play(act)


def test_a_question_without_news_is_answered_with_304_in_the_end() -> None:
    async def act() -> None:
        scene = Scene()
        reader = scene.come("resource_version=1&timeout_seconds=0")
        await scene.end()
        assert (reader.status, reader.headers[b"etag"], reader.ended) == (304, b'"1"', True)

    play(act)


@pytest.mark.parametrize("refusal", [(401, "NotAuthenticated"), (403, "NotPermitted"), (404, "NotFound")])
def test_who_has_lost_the_right_is_told_so_though_nothing_has_changed(refusal: tuple[int, str]) -> None:
    async def act() -> None:
        scene = Scene(BEATING)
        stream, question = scene.come(), scene.come("resource_version=1")
        await stream.until(lambda: ("BOOKMARK", {"resource_version": "1"}) in stream.events)
        scene.server.refusal = refusal
        await scene.end()
        assert stream.events[-1] == ("ERROR", {"status": refusal[0], "reason": refusal[1], "message": "no"})
        assert stream.ended
        assert question.status == refusal[0]

    play(act)


def test_what_is_refused_from_the_start_is_an_ordinary_answer() -> None:
    async def act() -> None:
        scene = Scene()
        scene.server.refusal = (403, "NotPermitted")
        reader = scene.come()
        await scene.end()
        assert (reader.status, orjson.loads(reader.messages[1]["body"])["reason"]) == (403, "NotPermitted")

    play(act)


def test_a_workload_that_is_gone_is_shown_as_it_was_last() -> None:
    async def act() -> None:
        scene = Scene()
        deleted = scene.come()
        await deleted.until(lambda: len(deleted.messages) > 1)
        scene.server.version = None
        await scene.end()
        assert [kind for kind, _ in deleted.events] == ["ADDED", "DELETED"]
        assert deleted.events[1][1] == deleted.events[0][1]
        scene.server.version = "5"
        replaced, question = scene.come(), scene.come("resource_version=5")
        await replaced.until(lambda: len(replaced.messages) > 1)
        scene.server.key, scene.server.version = 8, "9"
        await scene.end()
        assert [(kind, found["id"]) for kind, found in replaced.events] == [("ADDED", 7), ("DELETED", 7)]
        assert question.status == 200

    play(act)


def test_one_query_looks_at_all_and_none_is_made_when_nobody_watches() -> None:
    async def act() -> None:
        scene = Scene()
        scene.server.broken = 2
        readers = [scene.come(), scene.come("resource_version=1")]
        await readers[0].until(lambda: len(readers[0].messages) > 1)
        scene.server.version, scene.server.status = "2", "Finished"
        await scene.end()
        assert {tuple(keys) for keys in scene.server.looked} <= {(7,), ()}
        looking = scene.watchers._versions._task
        assert looking is not None
        await looking
        assert await asyncio.to_thread(scene.server.left.wait, PATIENCE), "the thread is told that nobody watches"

    play(act)


def test_a_user_may_watch_only_so_many_and_a_reader_that_leaves_makes_room() -> None:
    async def act() -> None:
        scene = Scene()
        first, second = scene.come(), scene.come()
        await first.until(lambda: len(first.messages) > 1)
        await second.until(lambda: len(second.messages) > 1)
        third = scene.come()
        await scene.tasks[2]
        assert (third.status, third.headers[b"retry-after"]) == (429, b"5")
        refusal = orjson.loads(third.messages[1]["body"])
        assert refusal["reason"] == "LimitReached"
        assert "End a watch and try again" in refusal["message"]
        first.left.set()
        await scene.tasks[0]
        fourth = scene.come()
        await fourth.until(lambda: len(fourth.messages) > 1)
        assert fourth.status == 200
        scene.watchers.end()
        await scene.end()
        assert second.ended
        assert fourth.ended

    play(act)
