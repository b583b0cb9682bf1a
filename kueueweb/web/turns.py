"""Limits how many threads one client may use, so that some are left for others."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Counted turns by key. Waiters for the same key are served in order and do not delay other keys."""

    def __init__(self, at_once: int) -> None:
        self._at_once = at_once
        self._gates: dict[str, asyncio.Semaphore] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncIterator[None]:
        """Wait for one of the key's turns, and hold it."""
        gate = self._gates.setdefault(key, asyncio.Semaphore(self._at_once))
        self._users[key] = self._users.get(key, 0) + 1
        try:
            async with gate:
                yield
        finally:
            self._users[key] -= 1
            if not self._users[key]:
                del self._users[key], self._gates[key]
