"""Serving a simulated cluster: as a process, or in a thread of a test."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn

from clusters.simulated.api.http import Application
from clusters.simulated.cluster import SimulatedCluster

_BACKLOG = 128


class _Server(uvicorn.Server):
    """Ends its watches before it waits for its connections."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._application = Application(cluster)
        super().__init__(
            uvicorn.Config(
                self._application,
                lifespan="on",
                log_level="warning",
                access_log=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=75,
            )
        )

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.end_watches()
        await super().shutdown(sockets)


def listen(host: str, port: int, uds: str | None = None) -> socket.socket:
    """A socket that takes connections from now on; port 0 takes a free one. Raises OSError.

    Connections that come before the server runs wait in the socket's queue, so that nobody has to poll for it.
    """
    if uds:
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(uds)
    else:
        listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
    listening.listen(_BACKLOG)
    return listening


def address(listening: socket.socket) -> str:
    """Where a socket listens: a URL, or the path of a unix socket."""
    name = listening.getsockname()
    return str(name) if listening.family == socket.AF_UNIX else f"http://{name[0]}:{name[1]}"


def serve(cluster: SimulatedCluster, listening: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM; the snapshot, if there is one, is saved at the end."""
    _Server(cluster).run([listening])


class ServerThread:
    """A cluster served on a free port of the loopback by a thread of this process; a context manager.

    `url` is where it listens. The cluster itself belongs to that thread: talk to it over HTTP.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._socket = listen("127.0.0.1", 0)
        self._server = _Server(cluster)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="simulated-cluster")
        self.url = address(self._socket)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
