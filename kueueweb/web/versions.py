"""The versions of all that is watched: one reading a second, for any number of watches."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final, Generic, NamedTuple, TypeVar

from django.db import Error as DatabaseFailure

Key = TypeVar("Key", int, tuple[int, str])
ReadVersions = Callable[[list[Key]], Mapping[Key, str]]
"""{key: version} of what exists: of workloads by primary key, of kinds by cluster and name. An empty list means that no
watch is left.
"""

_PAUSE_SECONDS: Final = 1.0
RESTS: Final = 9.0
"""How many times longer than a look the pause after it is at least: looks take a tenth of the time at most, however
many rows there are."""
_log = logging.getLogger(__name__)


class _Expected(NamedTuple):
    """A watch that waits for another version than this one."""

    key: Any
    version: str
    change: asyncio.Future[str | None]
    """Done with the other version; None: there is nothing of the key any more."""


class Versions(Generic[Key]):
    """Wakes the watches of a key when its version changes. It reads in one thread, while there are watches."""

    def __init__(self, read: ReadVersions[Key], pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._read: ReadVersions[Key] = read
        self._pause_seconds = pause_seconds
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="versions")
        self._expected: set[_Expected] = set()
        self._watchers = 0
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Query versions while the context is open."""
        self._watchers += 1
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._look(), name="versions")
        try:
            yield
        finally:
            self._watchers -= 1

    @contextmanager
    def expected(self, key: Key, version: str) -> Iterator[asyncio.Future[str | None]]:
        """Yield a future that completes once the key has another version or was deleted."""
        one = _Expected(key, version, asyncio.get_running_loop().create_future())
        self._expected.add(one)
        try:
            yield one.change
        finally:
            self._expected.discard(one)

    async def is_gone(self, key: Key) -> bool:
        """Return whether no object of this key exists any more. Raises Django's Error."""
        return key not in await self._versions({key})

    async def _look(self) -> None:
        try:
            loop = asyncio.get_running_loop()
            while self._watchers:
                began = loop.time()
                await self._tell()
                await asyncio.sleep(max(self._pause_seconds, RESTS * (loop.time() - began)))
        finally:
            self._thread.submit(self._read, [])

    async def _tell(self) -> None:
        expected = list(self._expected)
        if not expected:
            return
        try:
            found = await self._versions({one.key for one in expected})
        except DatabaseFailure as error:
            _log.warning("watched objects cannot be read at the moment: %s", error)
            return
        for one in expected:
            if found.get(one.key) != one.version and not one.change.done():
                one.change.set_result(found.get(one.key))

    async def _versions(self, keys: set[Key]) -> Mapping[Key, str]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, sorted(keys))
