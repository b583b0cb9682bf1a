"""Serving a simulated cluster."""

from __future__ import annotations

import socket

import uvicorn

from simulation.api.http import Application
from simulation.cluster import SimulatedCluster

_BACKLOG = 128


class Server(uvicorn.Server):
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
    """Open a listening socket; port 0 chooses a free one. Raises OSError. Connections made before the server runs wait
    in the socket's backlog, so no client has to poll for it."""
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
    """Return the address of a socket: a URL, or the path of a unix socket."""
    name = listening.getsockname()
    return str(name) if listening.family == socket.AF_UNIX else f"http://{name[0]}:{name[1]}"


def serve(cluster: SimulatedCluster, listening: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; the snapshot, if there is one, is saved at the end."""
    Server(cluster).run([listening])
