"""Servers in threads of the tests' process end at once: seven hundred tests have one.

Uvicorn looks ten times a second whether it should end and then waits a tenth of a second, the servers of the standard
library look twice a second.
"""

import asyncio
import socketserver
from typing import Any, Final

import pytest
import uvicorn.server

_LOOK_SECONDS: Final = 0.01


class _QuickAsyncio:
    """The module `asyncio` with naps instead of sleep."""

    def __getattr__(self, name: str) -> Any:
        return getattr(asyncio, name)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(min(seconds, _LOOK_SECONDS))


def look_often(patch: pytest.MonkeyPatch) -> None:
    """Let all these servers look a hundred times a second."""
    patch.setattr(uvicorn.server, "asyncio", _QuickAsyncio())
    patch.setattr(socketserver.BaseServer.serve_forever, "__defaults__", (_LOOK_SECONDS,))
