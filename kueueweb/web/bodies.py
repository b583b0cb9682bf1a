"""Reads request bodies completely on the event loop, so that a slow client delays only itself."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = list[tuple[bytes, bytes]]

_FIRST_SECONDS: Final = 10.0
_MIN_BYTES_PER_SECOND: Final = 64 * 1024
"""A body may take the first seconds, and then as long as its size takes at this pace."""
_MAX_ANONYMOUS_BYTES: Final = 64 * 1024
"""A client without a token or a session sends nothing but its login."""


class Disconnected(Exception):
    """The client has left."""


class Refused(Exception):
    """A body that is not read to its end. `status` and `reason` for the answer, the message for people."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


@dataclass(slots=True)
class BodyReader:
    """Reads bodies within a limit for each and one for all that are being held."""

    max_bytes: int
    max_held_bytes: int
    first_seconds: float = _FIRST_SECONDS
    held_bytes: int = 0

    async def read(self, receive: Receive, headers: Headers) -> bytes:
        """The whole body, which counts as held until `release`. Raises Refused or Disconnected, and then holds none."""
        max_bytes = self.max_bytes if _has_credentials(headers) else min(self.max_bytes, _MAX_ANONYMOUS_BYTES)
        body = bytearray()
        try:
            await self._fill(body, receive, max_bytes)
        except BaseException:
            self.held_bytes -= len(body)
            raise
        return bytes(body)

    def release(self, body: bytes) -> None:
        """The body is not needed any more."""
        self.held_bytes -= len(body)

    async def _fill(self, body: bytearray, receive: Receive, max_bytes: int) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        more = True
        while more:
            deadline = started + self.first_seconds + len(body) / _MIN_BYTES_PER_SECOND
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise Refused(408, "BodyTooSlow", "The body of the request came too slowly.") from None
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) + len(chunk) > max_bytes:
                raise Refused(
                    413, "TooLarge", f"The body has more than {_size(max_bytes)}; send it in several requests."
                )
            if self.held_bytes + len(chunk) > self.max_held_bytes:
                raise Refused(503, "Busy", "Too many large requests are under way. Try again in a moment.")
            body += chunk
            self.held_bytes += len(chunk)


def _has_credentials(headers: Headers) -> bool:
    """Whether the request shows any; whether they are right is found out once it has been read."""
    return any(name == b"authorization" or (name == b"cookie" and b"sessionid=" in value) for name, value in headers)


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count // 2**10} KiB"
