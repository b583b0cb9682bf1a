"""A real HTTP server that answers POST requests as a test says, and keeps what it was asked; and one that speaks
no proper HTTP."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from tests.patience import PATIENCE_SECONDS


@dataclass
class Receiver:
    """`status` and `answer` (bytes as they are, else JSON) of every answer; `asked` are headers and bodies. Nothing is
    answered while `hang` is cleared."""

    status: int = 200
    answer: Any = field(default_factory=lambda: {"state": "Ready", "message": "paid"})
    asked: list[tuple[dict[str, str], bytes]] = field(default_factory=list)
    url: str = ""
    hang: threading.Event = field(default_factory=threading.Event)


@contextmanager
def receiving() -> Iterator[Receiver]:
    """Such a server on a port of its own."""
    found = Receiver()
    found.hang.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.asked.append((dict(self.headers), body))
            found.hang.wait(timeout=PATIENCE_SECONDS)
            self.send_response(found.status)
            if found.status == 302:
                self.send_header("Location", found.url)
            self.end_headers()
            content = found.answer if isinstance(found.answer, bytes) else json.dumps(found.answer).encode()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_port}/decide"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield found
    finally:
        found.hang.set()
        server.shutdown()
        server.server_close()


_DRIP_SECONDS: Final = 0.05


@contextmanager
def speaking(words: bytes, drip: bytes = b"") -> Iterator[str]:
    """The URL of a server that says these words to whoever has asked, and then the drip, over and over, for as long as
    they listen."""
    over = threading.Event()

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                self.request.recv(65536)
                self.request.sendall(words)
                while drip and not over.wait(_DRIP_SECONDS):
                    self.request.sendall(drip)
            except OSError:
                """They have left."""

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            over.set()
            server.shutdown()
