"""Serving a simulated cluster: as a process, or in a thread of a test."""

from __future__ import annotations

import socket
import threading
from types import TracebackType
from typing import Self

import uvicorn

from scheduler.cluster.simulated.cluster import SimulatedCluster
from scheduler.cluster.simulated.http import Application


class _Server(uvicorn.Server):
    """Ends its watches before it waits for its connections."""

    def __init__(self, application: Application, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._application = application

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._application.end_watches()
        await super().shutdown(sockets)


def _server(cluster: SimulatedCluster, host: str, port: int, uds: str | None) -> _Server:
    application = Application(cluster)
    config = uvicorn.Config(
        application,
        host=host,
        port=port,
        uds=uds,
        lifespan="on",
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=1,
        timeout_keep_alive=75,
    )
    return _Server(application, config)


def serve(cluster: SimulatedCluster, host: str, port: int, uds: str | None = None) -> None:
    """Serves until SIGINT or SIGTERM; the snapshot, if there is one, is saved at the end."""
    _server(cluster, host, port, uds).run()


class ServerThread:
    """A cluster served on a free port of the loopback by a thread of this process; a context manager.

    `url` is where it listens. The cluster itself belongs to that thread: talk to it over HTTP.
    """

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self._socket.bind(("127.0.0.1", 0))
        self._server = _server(cluster, "127.0.0.1", 0, None)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), name="simulated-cluster")
        # Connections that come before the server runs wait in the socket's queue, so that nobody has to poll for it.
        self._socket.listen(128)

    @property
    def url(self) -> str:
        host, port = self._socket.getsockname()
        return f"http://{host}:{port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
