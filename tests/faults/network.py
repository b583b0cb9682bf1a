"""The network between processes and servers: a relay for each pair, which can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, Self

from kueueweb.embedded.sockets import free_port

_CHUNK: Final = 1 << 16
Address = Path | int
"""A unix socket, or a port of this machine."""


class Relay:
    """Passes bytes on to a server. While it is cut, it answers nothing; then its connections are reset."""

    def __init__(self, server: Callable[[], Address]) -> None:
        self._server = server
        self._mended = asyncio.Event()
        self._mended.set()
        self._writers: set[asyncio.StreamWriter] = set()

    async def serve(self, address: Address) -> asyncio.Server:
        if isinstance(address, int):
            return await asyncio.start_server(self._accept, "127.0.0.1", address)
        return await asyncio.start_unix_server(self._accept, address)

    def cut(self) -> None:
        self._mended.clear()

    def mend(self) -> None:
        for writer in [*self._writers]:
            writer.transport.abort()
        self._mended.set()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            await self._mended.wait()
            there, back = await _connect(self._server())
            self._writers.add(back)
            try:
                await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
            finally:
                self._writers.discard(back)
                back.close()
        except OSError:
            pass  # the process sees that its server is not there
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(_CHUNK):
                await self._mended.wait()
                writer.write(data)
                await writer.drain()
        finally:
            writer.close()


async def _connect(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    if isinstance(address, int):
        return await asyncio.open_connection("127.0.0.1", address)
    return await asyncio.open_unix_connection(address)


class Network:
    """Relays by process and server, in a thread of their own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="network")
        self._relays: dict[tuple[str, str], Relay] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def relay_socket(self, process: str, server: str, path: Path, target: Callable[[], Address]) -> Path:
        """A unix socket by which the process reaches the server."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._start(process, server, path, target)
        return path

    def relay_port(self, process: str, server: str, target: Callable[[], Address]) -> int:
        """A port by which the process reaches the server."""
        port = free_port()
        self._start(process, server, port, target)
        return port

    def _start(self, process: str, server: str, address: Address, target: Callable[[], Address]) -> None:
        relay = self._relays[process, server] = Relay(target)
        asyncio.run_coroutine_threadsafe(relay.serve(address), self._loop).result()

    @contextlib.contextmanager
    def cut(self, processes: tuple[str, ...], server: str) -> Iterator[None]:
        """Cut some processes off a server until the block ends."""
        relays = [self._relays[process, server] for process in processes]
        self._call(*(relay.cut for relay in relays))
        try:
            yield
        finally:
            self._call(*(relay.mend for relay in relays))

    def reset(self, server: str) -> None:
        """End all connections to a server."""
        self._call(*(relay.mend for (_, name), relay in self._relays.items() if name == server))

    def _call(self, *calls: Callable[[], Any]) -> None:
        for call in calls:
            self._loop.call_soon_threadsafe(call)
