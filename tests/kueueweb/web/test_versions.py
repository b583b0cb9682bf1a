"""Looks for what is watched take a small part of the time, however long one takes."""

from __future__ import annotations

import asyncio
import time

from kueueweb.web.versions import Versions

_LOOK_SECONDS = 0.05


def test_a_long_look_is_followed_by_a_longer_rest() -> None:
    looks = []

    def read(keys: list[int]) -> dict[int, str]:
        if keys:
            looks.append(keys)
            time.sleep(_LOOK_SECONDS)
        return dict.fromkeys(keys, "1")

    async def watch() -> None:
        versions: Versions[int] = Versions(read, pause_seconds=0.0)
        with versions.watched(), versions.expected(7, "1") as change:
            await asyncio.wait({change}, timeout=20 * _LOOK_SECONDS)

    asyncio.run(watch())
    assert 1 <= len(looks) <= 2 + 20 // 10
