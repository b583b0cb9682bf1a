"""The path below which everything is served, where a proxy shares its host name with others."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

_PROBES: Final = ("/healthz", "/readyz")
"""They are asked inside of the cluster, past the proxy, and have no path before them."""
_NOT_FOUND: Final = b'{"reason": "NotFound", "message": "There is nothing at this path.", "errors": []}'


class BelowPath:
    """Tells the application its path (ASGI's root_path); other paths are not found."""

    def __init__(self, application: Application, base_path: str) -> None:
        self._application = application
        self._base_path = base_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in {"http", "websocket"} or scope["path"] in _PROBES:
            await self._application(scope, receive, send)
        elif scope["path"].startswith(f"{self._base_path}/"):
            await self._application({**scope, "root_path": self._base_path}, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 4404})
        elif scope["path"] in {self._base_path, "/"}:
            await _answer(send, 302, [(b"location", f"{self._base_path}/".encode())], b"")
        else:
            await _answer(send, 404, [(b"content-type", b"application/json")], _NOT_FOUND)


async def _answer(send: Send, status: int, headers: list[tuple[bytes, bytes]], body: bytes) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})
