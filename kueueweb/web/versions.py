"""The versions of all watched workloads: one query a second, for any number of watches."""

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Final, NamedTuple

from django.db import Error as DatabaseFailure

ReadVersions = Callable[[list[int]], Mapping[int, str]]
"""{primary key: version} of the existing workloads. An empty list says that no watch is left."""

_PAUSE_SECONDS: Final = 1.0
_log = logging.getLogger(__name__)


class _Expected(NamedTuple):
    """A watch that waits for another version of a workload than this one."""

    workload: int
    version: str
    change: asyncio.Future[None]


class Versions:
    """Wakes the watches of a workload when its version changes. It reads in one thread, while there are watches."""

    def __init__(self, read: ReadVersions, pause_seconds: float = _PAUSE_SECONDS) -> None:
        self._read = read
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
    def expected(self, workload: int, version: str) -> Iterator[asyncio.Future[None]]:
        """Yield a future that is done once the workload has another version or is deleted."""
        one = _Expected(workload, version, asyncio.get_running_loop().create_future())
        self._expected.add(one)
        try:
            yield one.change
        finally:
            self._expected.discard(one)

    async def is_gone(self, workload: int) -> bool:
        """Whether there is no such workload any more. Raises Django's Error."""
        return workload not in await self._versions({workload})

    async def _look(self) -> None:
        try:
            while self._watchers:
                await self._tell()
                await asyncio.sleep(self._pause_seconds)
        finally:
            self._thread.submit(self._read, [])

    async def _tell(self) -> None:
        expected = list(self._expected)
        if not expected:
            return
        try:
            found = await self._versions({one.workload for one in expected})
        except DatabaseFailure as error:
            _log.warning("the watched workloads cannot be looked at now: %s", error)
            return
        for one in expected:
            if found.get(one.workload) != one.version and not one.change.done():
                one.change.set_result(None)

    async def _versions(self, workloads: set[int]) -> Mapping[int, str]:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._read, sorted(workloads))
