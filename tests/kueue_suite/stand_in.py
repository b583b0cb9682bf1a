"""Answers the requests of the changed specs to the programs that decide, which run beside the clusters."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Protocol

from tests.kueue_suite import machines
from tests.kueue_suite.machines import Machines


class Decider(Protocol):
    """kueueweb or Kueue."""

    def configure(self) -> None:
        """Decide by the Configuration that Kueue's ConfigMap in the cluster holds now."""

    def metrics(self) -> bytes:
        """As Prometheus reads them."""


@contextlib.contextmanager
def served(deciders: Mapping[str, Decider], hosts: Machines) -> Iterator[str]:
    """The address at which GET gives the metrics of the first, POST /NAME configures that of the cluster NAME, and a
    command of Docker is run.
    """
    first = next(iter(deciders.values()))

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(first.metrics())

        def do_POST(self) -> None:
            name = self.path.removeprefix("/")
            if name == machines.PATH:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hosts.run(body.decode().split("\0"))
            else:
                deciders[name].configure()
            self._answer(b"")

        def _answer(self, body: bytes) -> None:
            self.send_response(HTTPStatus.OK)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing: each spec asks once a second."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
