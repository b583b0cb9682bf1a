"""Requests with large bodies are answered by a process of its own."""

import asyncio
import ctypes
import os
import signal
from typing import Any, Final

import orjson

from foundation.serving.bodies import Message, Receive
from kueueweb.web.gate import Scope, Send
from kueueweb.web.large import LARGE_BYTES, LargeRequests, Response

_PR_GET_PDEATHSIG: Final = 2
SCOPE: Final[dict[str, Any]] = {
    "type": "http",
    "http_version": "1.1",
    "method": "POST",
    "path": "/api/v1/workloads/",
    "query_string": b"dry_run=true",
    "headers": [(b"authorization", b"Token x"), (b"content-type", b"application/json")],
    "client": ("10.0.0.1", 1),
    "state": object(),
}


def answer(environment: dict[str, Any], body: bytes) -> Response:
    """Says who answers, and what it was given; b"die" ends the process."""
    if body.startswith(b"die"):
        os.kill(os.getpid(), signal.SIGKILL)
    ends_with = ctypes.c_int()
    ctypes.CDLL(None).prctl(_PR_GET_PDEATHSIG, ctypes.byref(ends_with), 0, 0, 0)
    said = {
        "process": os.getpid(),
        "niceness": os.getpriority(os.PRIO_PROCESS, 0),
        "ends_with": ends_with.value,
        "bytes": len(body),
        **{
            name: environment[name]
            for name in ("REQUEST_METHOD", "PATH_INFO", "QUERY_STRING", "CONTENT_TYPE", "REMOTE_ADDR")
        },
    }
    return Response(201, [(b"location", b"/here/")], orjson.dumps(said))


async def in_this_process(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": message["body"]})


async def ask(application: LargeRequests, body: bytes) -> list[Message]:
    """What is sent."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    await application(SCOPE, receive, send)
    return sent


async def test_only_a_large_body_goes_to_another_process() -> None:
    application = LargeRequests(in_this_process, answer)
    body = b" " * LARGE_BYTES
    assert await ask(application, body[1:]) == [
        {"type": "http.response.start", "status": 200, "headers": []},
        {"type": "http.response.body", "body": body[1:]},
    ]
    start, content = await ask(application, body)
    assert (start["status"], start["headers"]) == (201, [(b"location", b"/here/")])
    said = orjson.loads(content["body"])
    assert said.pop("process") != os.getpid()
    assert said.pop("niceness") > os.getpriority(os.PRIO_PROCESS, 0)
    assert said == {
        "ends_with": signal.SIGKILL,
        "bytes": LARGE_BYTES,
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/api/v1/workloads/",
        "QUERY_STRING": "dry_run=true",
        "CONTENT_TYPE": "application/json",
        "REMOTE_ADDR": "10.0.0.1",
    }


async def test_a_process_that_ends_is_reported_and_replaced() -> None:
    application = LargeRequests(in_this_process, answer)
    start, content = await ask(application, b"die".ljust(LARGE_BYTES))
    assert (start["status"], orjson.loads(content["body"])["reason"]) == (503, "Interrupted")
    start, _ = await ask(application, b" " * LARGE_BYTES)
    assert start["status"] == 201


async def test_one_caller_has_one_process() -> None:
    application = LargeRequests(in_this_process, answer)
    answers = await asyncio.gather(*(ask(application, b" " * LARGE_BYTES) for _ in range(4)))
    assert len({orjson.loads(content["body"])["process"] for _, content in answers}) == 1
