"""Requests with large bodies, answered by processes of their own.

Python runs one thread of a process at a time. While ten thousand workloads are read from a body, every other answer of
the same process would wait for its turn again and again.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import AsyncExitStack
from functools import cache
from io import BytesIO
from multiprocessing import get_context
from typing import Any, Final, NamedTuple

from a2wsgi.wsgi import build_environ
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application

from foundation.parent_death import die_with_parent
from foundation.serving.bodies import Receive, Refused
from kueueweb.web.gate import Application, Scope, Send, callers, refuse, replay
from kueueweb.web.turns import Turns

LARGE_BYTES: Final = 64 * 1024
_PROCESSES: Final = 2
_PER_CALLER: Final = 1
_NICENESS: Final = 10
"""Niceness of the process: ordinary requests have precedence."""
_NOT_SENT: Final = ("asgi.scope", "wsgi.input", "wsgi.errors")


class Response(NamedTuple):
    """Status, headers and the whole body."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: bytes


Answer = Callable[[dict[str, Any], bytes], Response]


class LargeRequests:
    """In front of `application`: a request whose body has LARGE_BYTES or more gets its answer from another process.

    `answer` is called there with the WSGI environment and the body. Processes are started when they are needed first.
    """

    def __init__(self, application: Application, answer: Answer) -> None:
        self._application = application
        self._answer = answer
        self._callers = Turns(_PER_CALLER)
        self._pool: ProcessPoolExecutor | None = None  # creating one already starts a process

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        message = await receive()
        body: bytes = message.get("body", b"")
        if len(body) < LARGE_BYTES:
            await self._application(scope, replay(body, receive), send)
            return
        environment = {name: value for name, value in build_environ(scope, None).items() if name not in _NOT_SENT}  # type: ignore[arg-type]  # the body goes beside it
        async with AsyncExitStack() as turns:
            for caller in callers(scope):
                await turns.enter_async_context(self._callers.turn(caller))
            pool = self._pool = self._pool or _make_pool()
            try:
                found = await asyncio.wrap_future(pool.submit(self._answer, environment, body))
            except BrokenProcessPool:
                if self._pool is pool:
                    self._pool = None
                what = (
                    "The process that read this request has ended. Check whether the request was carried out before "
                    "you send it again."
                )
                await refuse(send, Refused(503, "Interrupted", what))
                return
        await send({"type": "http.response.start", "status": found.status, "headers": found.headers})
        await send({"type": "http.response.body", "body": found.body})


def answer_with_django(environment: dict[str, Any], body: bytes) -> Response:
    """Return the product's answer."""
    status, headers, written = 500, list[tuple[bytes, bytes]](), list[bytes]()

    def start(line: str, found: list[tuple[str, str]], _: object = None, /) -> Callable[[bytes], object]:
        nonlocal status
        status = int(line.split(" ", 1)[0])
        headers.extend((name.lower().encode("latin1"), value.encode("latin1")) for name, value in found)
        return written.append

    response = _django()({**environment, "wsgi.input": BytesIO(body), "wsgi.multithread": False}, start)
    try:
        return Response(status, headers, b"".join([*written, *response]))
    finally:
        response.close()


@cache
def _django() -> WSGIHandler:
    return get_wsgi_application()


def _make_pool() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(_PROCESSES, get_context("spawn"), _begin, (os.getpid(),))


def _begin(parent: int) -> None:
    """End with the parent process, and only with it."""
    die_with_parent(parent, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the parent handles the terminal's Ctrl-C
    os.nice(_NICENESS)
