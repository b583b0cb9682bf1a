"""What stands before Django's threads: slow and huge bodies, probes, turns."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from foundation.serving.bodies import BodyReader, Disconnected, Message, Receive, Refused
from kueueweb.web.gate import Gate, Scope, Send, callers
from kueueweb.web.turns import Turns
from tests.patience import PATIENCE_SECONDS

AUTHORISED = [(b"authorization", b"Token x")]


def ready() -> dict[str, str]:
    return {"database": "ok", "redis": "ok"}


def scope(path: str = "/api/v1/workloads/", **more: Any) -> dict[str, Any]:
    return {"path": path, "query_string": b"", "headers": AUTHORISED, "client": ("10.0.0.1", 1), **more}


def chunks(*parts: bytes) -> Receive:
    """A client that sends these, and then nothing more forever."""
    left = list(parts)

    async def receive() -> Message:
        if not left:
            await asyncio.Event().wait()
        part = left.pop(0)
        return {"type": "http.request", "body": part, "more_body": True}

    return receive


def whole(body: bytes = b"") -> Receive:
    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


class Answers:
    """What was sent."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        self.messages.append(message)

    @property
    def status(self) -> int:
        return int(self.messages[0]["status"])

    @property
    def body(self) -> dict[str, Any]:
        found: dict[str, Any] = orjson.loads(self.messages[1]["body"])
        return found


async def echo(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


def gate(application: Any = echo, **reader: Any) -> Gate:
    bodies = BodyReader(**{"max_bytes": 100, "max_held_bytes": 150, **reader})
    return Gate(application, ready, bodies, ready_seconds=PATIENCE_SECONDS)


async def test_a_whole_body_goes_through() -> None:
    answers = Answers()
    await gate()(scope(), whole(b"{}"), answers)
    assert (answers.status, answers.body) == (200, {})


@pytest.mark.parametrize(
    ("parts", "status", "reason"),
    [([b"a"], 408, "BodyTooSlow"), ([b"a" * 60, b"a" * 60], 413, "TooLarge")],
)
async def test_a_slow_or_huge_body_never_takes_a_thread(parts: Sequence[bytes], status: int, reason: str) -> None:
    async def unreachable(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("the application was asked")

    answers = Answers()
    await gate(unreachable, first_seconds=0.05)(scope(), chunks(*parts), answers)
    assert (answers.status, answers.body["reason"]) == (status, reason)
    assert (b"connection", b"close") in answers.messages[0]["headers"]


async def test_requests_without_credentials_are_limited_to_the_size_of_a_login() -> None:
    reader = BodyReader(max_bytes=2**26, max_held_bytes=2**28)
    with pytest.raises(Refused, match="more than 64 KiB"):
        await reader.read(whole(b"a" * 65_537), [])
    assert len(await reader.read(whole(b"a" * 65_537), AUTHORISED)) == 65_537


async def test_made_up_credentials_are_found_out_before_more_than_a_login_is_taken() -> None:
    asked: list[Any] = []

    async def is_known(headers: Any) -> bool:
        asked.append(headers)
        return (b"authorization", b"Token right") in headers

    reader = BodyReader(max_bytes=2**20, max_held_bytes=2**22, is_known=is_known)
    assert await reader.read(whole(b"{}"), AUTHORISED)
    assert asked == [], "a small body costs no look-up"
    with pytest.raises(Refused, match="more than 64 KiB"):
        await reader.read(chunks(b"a" * 65_536, b"a"), AUTHORISED)
    right = [(b"authorization", b"Token right")]
    assert len(await reader.read(whole(b"a" * 65_537), right)) == 65_537
    with pytest.raises(Refused, match="more than 1 MiB"):
        await reader.read(whole(b"a" * (2**20 + 1)), right)


async def test_one_address_holds_a_share_of_all_bodies() -> None:
    reader = BodyReader(max_bytes=100, max_held_bytes=200, max_held_by_address=100)
    held = await reader.read(whole(b"a" * 80), AUTHORISED, "10.0.0.1")
    with pytest.raises(Refused, match="Too many large requests"):
        await reader.read(whole(b"a" * 80), AUTHORISED, "10.0.0.1")
    assert await reader.read(whole(b"a" * 80), AUTHORISED, "10.0.0.2")
    reader.release(held, "10.0.0.1")
    assert await reader.read(whole(b"a" * 80), AUTHORISED, "10.0.0.1")


async def test_bodies_that_are_held_have_a_limit_together() -> None:
    reader = BodyReader(max_bytes=100, max_held_bytes=150)
    held = await reader.read(whole(b"a" * 100), AUTHORISED)
    with pytest.raises(Refused, match="Too many large requests") as refusal:
        await reader.read(whole(b"a" * 60), AUTHORISED)
    assert refusal.value.status == 503
    reader.release(held)
    assert reader.held_bytes == 0
    assert await reader.read(whole(b"a" * 60), AUTHORISED)


async def test_a_client_that_leaves_is_forgotten() -> None:
    async def gone() -> Message:
        return {"type": "http.disconnect"}

    reader = BodyReader(max_bytes=100, max_held_bytes=150)
    with pytest.raises(Disconnected):
        await reader.read(gone, AUTHORISED)
    assert reader.held_bytes == 0


async def test_a_query_that_is_not_ascii_is_malformed() -> None:
    answers = Answers()
    await gate()(scope(query_string=b"a=\xff"), whole(), answers)
    assert (answers.status, answers.body["reason"]) == (400, "Malformed")


async def test_the_probes_answer_while_all_threads_are_busy() -> None:
    busy = asyncio.Event()

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        await busy.wait()

    tried = gate(stuck)
    waiting = [asyncio.create_task(tried(scope(), whole(), Answers())) for _ in range(20)]
    await asyncio.sleep(0)
    for path in ("/healthz", "/readyz"):
        answers = Answers()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await tried(scope(path), whole(), answers)
        assert (answers.status, answers.body["status"]) == (200, "ok")
    busy.set()
    await asyncio.gather(*waiting)


async def test_a_readiness_that_hangs_is_unavailable_and_asked_once() -> None:
    release, asked = threading.Event(), []

    def hanging() -> dict[str, str]:
        asked.append(1)
        release.wait(PATIENCE_SECONDS)
        return ready()

    tried = Gate(echo, hanging, BodyReader(100, 150), ready_seconds=0.05)
    for _ in range(3):
        answers = Answers()
        await tried(scope("/readyz"), whole(), answers)
        assert answers.status == 503
    release.set()
    assert len(asked) == 1


async def test_one_caller_does_not_get_all_threads() -> None:
    busy, inside = asyncio.Event(), []

    async def stuck(scope: Scope, receive: Receive, send: Send) -> None:
        inside.append(scope["headers"][0][1])
        await busy.wait()

    tried = gate(stuck)
    senders = [b"Token greedy"] * 10 + [b"Token other"]
    tasks = [
        asyncio.create_task(
            tried(scope(headers=[(b"authorization", who)], client=(f"10.0.0.{len(who)}", 1)), whole(), Answers())
        )
        for who in senders
    ]
    for _ in range(50):
        await asyncio.sleep(0)
    assert sorted(inside) == [b"Token greedy"] * 3 + [b"Token other"]
    busy.set()
    await asyncio.gather(*tasks)
    assert len(inside) == len(senders)


async def test_turns_leave_nothing_behind() -> None:
    turns = Turns(1)
    async with turns.turn("a"):
        pass
    assert (turns._gates, turns._users) == ({}, {})


def test_nobody_is_several_callers_by_what_is_made_up_beside_the_token_or_the_session() -> None:
    token, session = (b"authorization", b"Token mine"), (b"cookie", b"csrftoken=1; sessionid=mine")
    [by_token], [by_session] = callers(scope(headers=[token])), callers(scope(headers=[session]))
    assert by_token != by_session
    for junk in (b"x=1", b"x=2", b"sessionid=junk", b"csrftoken=2; sessionid=other"):
        assert by_token in callers(scope(headers=[token, (b"cookie", junk)]))
    for junk in (b"Basic abc", b"Token junk", b"Bearer other"):
        assert by_session in callers(scope(headers=[session, (b"authorization", junk)]))
    assert callers(scope(headers=[(b"authorization", b"bearer  mine")])) == [by_token]
    many = [[(b"cookie", b"; ".join(b"sessionid=%d" % (n + start) for n in range(9)))] for start in (0, 100)]
    assert callers(scope(headers=many[0])) == callers(scope(headers=many[1]))
    assert callers(scope(headers=[(b"authorization", b"Basic abc")])) == ["10.0.0.1"]
