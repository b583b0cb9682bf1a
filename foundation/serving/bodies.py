"""Reads request bodies completely on the event loop, so that a slow client delays only itself."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Headers = list[tuple[bytes, bytes]]

_FIRST_SECONDS: Final = 10.0
_BYTES_PER_SECOND: Final = 64 * 1024
_MAX_UNKNOWN_BYTES: Final = 64 * 1024
"""A client without a token or a session sends nothing but its login."""


class Disconnected(Exception):
    """The client has left."""


class Refused(Exception):
    """A body that is refused. `status` and `reason` are for the answer, the message is for the user."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


async def shows_credentials(headers: Headers) -> bool:
    """Return whether the request has a token or a session. They are checked after the body has been read."""
    return any(name == b"authorization" or (name == b"cookie" and b"sessionid=" in value) for name, value in headers)


@dataclass(slots=True)
class BodyReader:
    """Reads request bodies within a limit for each and one for all that are held.

    * max_held_by_address: how many of the held bytes may come from one address; 0: all.
    * first_seconds, bytes_per_second: how long a body may take: the first seconds, and then its size at this pace.
    * is_known: asked once a body is larger than `max_unknown_bytes`, the limit for callers without a login.
    """

    max_bytes: int
    max_held_bytes: int
    first_seconds: float = _FIRST_SECONDS
    held_bytes: int = 0
    max_held_by_address: int = 0
    bytes_per_second: int = _BYTES_PER_SECOND
    max_unknown_bytes: int = _MAX_UNKNOWN_BYTES
    is_known: Callable[[Headers], Awaitable[bool]] = shows_credentials
    _held_by: Counter[str] = field(default_factory=Counter)

    async def read(self, receive: Receive, headers: Headers, address: str = "") -> bytes:
        """Read the whole body. It counts as held until `release`. Raises Refused or Disconnected, and then holds
        nothing."""
        body = bytearray()
        try:
            await self._fill(body, receive, headers, address)
        except BaseException:
            self._release(len(body), address)
            raise
        return bytes(body)

    def release(self, body: bytes, address: str = "") -> None:
        """Stop counting the body as held."""
        self._release(len(body), address)

    def _release(self, count: int, address: str) -> None:
        self.held_bytes -= count
        self._held_by[address] -= count
        if self._held_by[address] <= 0:
            del self._held_by[address]

    async def _fill(self, body: bytearray, receive: Receive, headers: Headers, address: str) -> None:
        loop = asyncio.get_running_loop()
        started = loop.time()
        max_bytes = min(self.max_bytes, self.max_unknown_bytes)
        more = True
        while more:
            deadline = started + self.first_seconds + len(body) / self.bytes_per_second
            try:
                async with asyncio.timeout_at(deadline):
                    message = await receive()
            except TimeoutError:
                raise Refused(408, "BodyTooSlow", "The body of the request arrived too slowly.") from None
            if message["type"] == "http.disconnect":
                raise Disconnected
            chunk = message.get("body", b"")
            more = message.get("more_body", False)
            size = len(body) + len(chunk)
            if max_bytes < size <= self.max_bytes and max_bytes < self.max_bytes and await self.is_known(headers):
                max_bytes = self.max_bytes
            if size > max_bytes:
                limit = _size(self.max_bytes if size > self.max_bytes else max_bytes)
                raise Refused(413, "TooLarge", f"The body has more than {limit}; send it in several requests.")
            self._hold(len(chunk), address)
            body += chunk

    def _hold(self, count: int, address: str) -> None:
        by_address = self.max_held_by_address or self.max_held_bytes
        if self.held_bytes + count > self.max_held_bytes or self._held_by[address] + count > by_address:
            raise Refused(503, "Busy", "Too many large requests are in progress. Try again in a moment.")
        self.held_bytes += count
        self._held_by[address] += count


def _size(count: int) -> str:
    return f"{count // 2**20} MiB" if count >= 2**20 else f"{count // 2**10} KiB"
