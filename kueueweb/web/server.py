"""How uvicorn is set up: the same for the command and for tests."""

import socket
from typing import Any, Final

import uvicorn
from django.conf import settings

from foundation.serving.connections import ConnectionLimits, limited_protocol, networks
from kueueweb.asgi import watchers, wire_watchers

_MAX_SOCKET_MESSAGE_BYTES: Final = 16 * 1024


class Server(uvicorn.Server):
    """Ends watches before it waits for its connections, which they would hold for as long as it has patience."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        watchers.end()
        wire_watchers.end()
        await super().shutdown(sockets)


def server_configuration(**more: Any) -> uvicorn.Config:
    """Return Uvicorn's configuration with our limits, which its own command line cannot set."""
    limits = ConnectionLimits(settings.MAX_CONNECTIONS_PER_ADDRESS, networks(settings.TRUSTED_PROXIES))
    return uvicorn.Config(
        "kueueweb.asgi:application",
        http=limited_protocol(limits),
        ws="websockets-sansio",
        ws_max_size=_MAX_SOCKET_MESSAGE_BYTES,
        server_header=False,
        # Longer than proxies keep theirs (nginx 60 s), so that no request meets a connection that is just being closed.
        timeout_keep_alive=75,
        # Otherwise a header that any client can send would set the request's origin.
        proxy_headers=bool(settings.TRUSTED_PROXIES),
        forwarded_allow_ips=settings.TRUSTED_PROXIES,
        **more,
    )
