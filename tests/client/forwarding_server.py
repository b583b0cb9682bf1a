"""A server between the command and the web process: it notes each request, and can hold one back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx


class Forwarding(ThreadingHTTPServer):
    """Forwards requests to `address`. `held` keeps back the answers to all but the first `free` requests of a list."""

    daemon_threads = True

    def __init__(self, address: str) -> None:
        super().__init__(("127.0.0.1", 0), _Forwarder)
        self.address = address
        self.asked: list[str] = []
        self.held = threading.Event()
        self.held.set()
        self.free = 1

    @property
    def url(self) -> str:
        """Its own address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def hold_all_but(self, free: int) -> None:
        """Answer so many requests from now on, and hold back the others until `held` is set."""
        self.asked.clear()
        self.free = free
        self.held.clear()


class _Forwarder(BaseHTTPRequestHandler):
    server: Forwarding

    def do_GET(self) -> None:
        """Note the request and forward it."""
        self._forward()

    do_POST = do_PATCH = do_PUT = do_DELETE = do_GET  # noqa: N815  # the words of http.server

    def _forward(self) -> None:
        self.server.asked.append(f"{self.command} {self.path}")
        if len(self.server.asked) > self.server.free:
            self.server.held.wait(60)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        kept = ("authorization", "content-type", "accept", "if-match", "idempotency-key")
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        answer = httpx.request(self.command, self.server.address + self.path, content=body, headers=headers, timeout=60)
        self.send_response(answer.status_code)
        for name in ("content-type", "etag"):
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(answer.content)))
        self.end_headers()
        self.wfile.write(answer.content)

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@contextmanager
def forwarding(address: str) -> Iterator[Forwarding]:
    """A running server in front of `address`."""
    with Forwarding(address) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.held.set()
        server.shutdown()
