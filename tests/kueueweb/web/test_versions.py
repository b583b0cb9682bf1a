"""Looks for what is watched take a small part of the time, however long one takes."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

from kueueweb.web.versions import Versions
from tests.patience import PATIENCE_SECONDS

_LOOK_SECONDS = 0.02


def test_a_long_look_is_followed_by_a_longer_rest() -> None:
    looks: list[tuple[float, float]] = []

    def read(keys: list[int]) -> dict[int, str]:
        began = time.monotonic()
        time.sleep(_LOOK_SECONDS)
        looks.append((began, time.monotonic()))
        return dict.fromkeys(keys, "1" if len(looks) < 3 else "2")

    async def watch() -> None:
        versions: Versions[int] = Versions(read, pause_seconds=0.0)
        with versions.watched(), versions.expected(7, "1") as change:
            await asyncio.wait_for(change, PATIENCE_SECONDS)

    asyncio.run(watch())
    for (began, ended), (next_began, _) in pairwise(looks[:3]):
        assert next_began - ended >= 0.999 * 9 * (ended - began)
