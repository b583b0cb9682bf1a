"""Limits on connections: their number per address, and the time for a request's head and for reading our answer.

Uvicorn itself waits for both without a limit.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from typing import ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from foundation.client_addresses import counted_address

_HEAD_SECONDS: Final = 10.0
_READER_SECONDS: Final = 30.0
"""The seconds after which a connection is cut if its client does not read the answer."""
_MAX_HEAD_BYTES: Final = 64 * 1024
_REFUSAL: Final = (
    b"HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\nconnection: close\r\nretry-after: 5\r\n"
    b"content-length: %d\r\n\r\n%s"
)
_REFUSAL_BODY: Final = (
    b'{"reason":"TooManyConnections","message":"Your address has too many connections to this server. Close some, or '
    b'use one for several requests.","errors":[]}'
)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The number of connections that an address may hold. Trusted proxies have no limit."""

    per_address: int
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    head_seconds: float = _HEAD_SECONDS
    reader_seconds: float = _READER_SECONDS


def networks(texts: list[str]) -> tuple[IPv4Network | IPv6Network, ...]:
    """Addresses and networks. Raises ValueError."""
    return tuple(ip_network(text) for text in texts)


class _LimitedProtocol(HttpToolsProtocol):
    """One connection. Connections of one class made by `limited_protocol` are counted together."""

    limits: ClassVar[ConnectionLimits]
    held: ClassVar[Counter[str]]

    _counted = ""
    _head_bytes = 0
    _head_timer: asyncio.TimerHandle | None = None
    _reader_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        self._expect_head()
        address = limited_address(self.client[0], self.limits) if self.client else ""
        if not address:
            return
        self._counted = address
        self.held[address] += 1
        if self.held[address] > self.limits.per_address:
            transport.write(_REFUSAL % (len(_REFUSAL_BODY), _REFUSAL_BODY))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._release()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._release()  # sockets are counted by user, in the consumer
        super().handle_websocket_upgrade()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._expect_head()

    def on_url(self, url: bytes) -> None:
        self._measure_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._measure_head(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._cancel_timers()
        super().on_headers_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._reader_timer = self.loop.call_later(self.limits.reader_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._reader_timer is not None:
            self._reader_timer.cancel()

    def _expect_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
        self._head_timer = self.loop.call_later(self.limits.head_seconds, self.transport.close)

    def _measure_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > _MAX_HEAD_BYTES:
            raise ValueError("the request's header is too large")  # the parser makes it a 400

    def _cancel_timers(self) -> None:
        for timer in (self._head_timer, self._reader_timer):
            if timer is not None:
                timer.cancel()

    def _release(self) -> None:
        self._cancel_timers()
        if self._counted:
            self.held[self._counted] -= 1
            if not self.held[self._counted]:
                del self.held[self._counted]
            self._counted = ""


def limited_protocol(limits: ConnectionLimits) -> type[HttpToolsProtocol]:
    """Uvicorn's HTTP protocol with these limits."""
    return type("LimitedProtocol", (_LimitedProtocol,), {"limits": limits, "held": Counter()})


def limited_address(text: str, limits: ConnectionLimits) -> str:
    """Return the address under which a peer's connections are counted; empty for a trusted proxy."""
    address = ip_address(text)
    return "" if any(address in network for network in limits.proxies) else counted_address(text)
