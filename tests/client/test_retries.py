"""Failed requests are sent again only where that does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from kueueweb_client import ApiError, AsyncClient, Client, Unreachable, calls
from kueueweb_client.calls import Call

LATER = b'{"reason": "Unavailable", "message": "later", "errors": []}'
CUT = 0
"""The status of a connection that is closed without an answer."""


@contextmanager
def serving(*statuses: int) -> Iterator[tuple[str, list[Any]]]:
    """The address of a server that answers with these statuses, the last one again and again; and the requests."""
    asked: list[Any] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(self.headers)
            status = statuses[min(len(asked), len(statuses)) - 1]
            if status == CUT:
                self.close_connection = True
                return
            body = b'{"workloads": [], "changed": []}' if status < 400 else LATER
            self.send_response(status)
            self.send_header("Retry-After", "0")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the words of http.server

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()


READ = calls.read("workloads", "team", "one")
SUBMISSION = calls.submit([{"namespace": "team"}])
ACTION = calls.act("hold", [{"namespace": "team", "name": "one"}])
DELETION = calls.delete("cohorts", "all")
BOUND = Call("DELETE", "cohorts/all/", lambda found: None, headers={"If-Match": '"7"'})


@pytest.mark.parametrize(
    ("call", "statuses", "requests"),
    [
        (READ, (503, 502, CUT, 200), 4),
        (SUBMISSION, (503, CUT, 201), 3),
        (DELETION, (503, 200), 2),
        (ACTION, (429, 429, 200), 3),
        (BOUND, (429, 200), 2),
    ],
)
def test_a_request_that_comes_to_the_same_is_repeated(call: Any, statuses: tuple[int, ...], requests: int) -> None:
    with serving(*statuses) as (address, asked), Client(address) as client:
        client.send(call)
        assert len(asked) == requests
        assert len({headers.get("Idempotency-Key") for headers in asked}) == 1

    async def ask(address: str) -> None:
        async with AsyncClient(address) as other:
            await other.send(call)

    with serving(*statuses) as (address, asked):
        asyncio.run(ask(address))
        assert len(asked) == requests


@pytest.mark.parametrize("call", [ACTION, BOUND])
def test_a_write_that_may_have_been_carried_out_is_not(call: Any) -> None:
    with serving(503, 200) as (address, asked), Client(address) as client:
        with pytest.raises(ApiError):
            client.send(call)
        assert len(asked) == 1
    with serving(CUT, 200) as (address, asked), Client(address) as client:
        with pytest.raises(Unreachable):
            client.send(call)
        assert len(asked) == 1


def test_it_gives_up() -> None:
    with serving(503) as (address, asked), Client(address) as client:
        with pytest.raises(ApiError):
            client.send(READ)
        assert len(asked) == 5
