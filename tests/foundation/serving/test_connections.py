"""Connections within limits, on a real uvicorn."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_network
from typing import Any

import pytest
import uvicorn

from foundation.serving.connections import ConnectionLimits, limited_address, limited_protocol
from tests.patience import PATIENCE_SECONDS

LARGE = b"x" * 2**25
HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\n"


async def answer(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": LARGE if scope["path"] == "/large" else b"ok"})


class Connections:
    """Connections to a running server; call for one more."""

    def __init__(self, listener: socket.socket, running: uvicorn.Server, stack: ExitStack) -> None:
        self._address, self._running, self._stack = listener.getsockname(), running, stack

    def __call__(self) -> socket.socket:
        return self._stack.enter_context(socket.create_connection(self._address, timeout=PATIENCE_SECONDS))

    def wait_for_the_end_of_all(self) -> None:
        """Return once the server has had a request and has no connection any more."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not self._running.server_state.total_requests or self._running.server_state.connections:
            assert time.monotonic() < deadline
            time.sleep(0.01)


@contextmanager
def server(limits: ConnectionLimits) -> Iterator[Connections]:
    """A running server."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(answer, log_level="critical", lifespan="off", http=limited_protocol(limits))
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([listener],))
    thread.start()
    with ExitStack() as stack:
        try:
            yield Connections(listener, running, stack)
        finally:
            stack.close()
            running.should_exit = True
            thread.join(PATIENCE_SECONDS)
            listener.close()


def until_closed(connection: socket.socket) -> bytes:
    received = b""
    while part := connection.recv(65_536):
        received += part
    return received


def test_an_address_may_hold_so_many_connections_and_no_more() -> None:
    with server(ConnectionLimits(2)) as connect:
        first, _second, third = connect(), connect(), connect()
        assert b"429" in until_closed(third).partition(b"\r\n")[0]
        first.close()
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:  # the server hears of the end in its own time
            again = connect()
            again.sendall(HEAD + b"Connection: close\r\n\r\n")
            if b"200 OK" in until_closed(again):
                break
            assert time.monotonic() < deadline


def test_a_head_that_does_not_end_is_cut_off() -> None:
    with server(ConnectionLimits(10, head_seconds=0.2)) as connect:
        silent, slow = connect(), connect()
        slow.sendall(HEAD)
        assert (until_closed(silent), until_closed(slow)) == (b"", b"")


def test_a_head_without_end_is_too_large() -> None:
    with server(ConnectionLimits(10)) as connect:
        endless = connect()
        endless.sendall(HEAD + b"".join(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(70)))
        assert b"400 Bad Request" in until_closed(endless)


def test_a_client_that_does_not_read_the_response_is_disconnected() -> None:
    with server(ConnectionLimits(10, reader_seconds=0.2)) as connect:
        reader = connect()
        reader.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        connect.wait_for_the_end_of_all()
        assert len(until_closed(reader)) < len(LARGE)


@pytest.mark.parametrize(
    ("address", "counted"),
    [("10.0.0.1", ""), ("10.1.0.1", "10.1.0.1"), ("2001:db8:0:1:2::3", "2001:db8:0:1::/64")],
)
def test_what_counts_together(address: str, counted: str) -> None:
    assert limited_address(address, ConnectionLimits(1, (ip_network("10.0.0.0/24"),))) == counted
