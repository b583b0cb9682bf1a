"""A feed outlives its Redis: killed and started empty, and the numbers go on with the next snapshot."""

import asyncio
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from channels.layers import get_channel_layer
from django.test import override_settings
from redis import RedisError

from kueueweb.embedded.valkey import Valkey
from queues.services.visibility import Visibility
from scheduler.live.feed import Feed, Socket
from scheduler.live.frames import Audience
from scheduler.live.hub import Hub
from scheduler.live.publisher import group

ALL = Audience(None, Visibility(None))


def frame(type_: str, sequence: int, pending: int = 0) -> dict[str, Any]:
    queue = {"cohort": "", "pending": pending, "inadmissible": 0, "reserving": 0, "admitted": 0}
    data = {"totals": {}, "cluster_queues": {"a": queue}, "cohorts": {}, "devices": {}}
    at = f"2026-01-05T09:00:{sequence % 60:02}Z"
    return {"type": type_, "cluster": "c", "epoch": 1, "sequence": sequence, "time": at, "data": data}


@pytest.fixture
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """A server of this test's own, and settings that name it."""
    server = Valkey(Path("/tmp") / f"kueueweb-feed-{os.getpid()}")
    server.start()
    layer = {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [{"address": server.url(), "socket_timeout": None}], "prefix": "kueueweb"},
    }
    with override_settings(REDIS_URL=server.url(), CHANNEL_LAYERS={"default": layer}):
        yield server
    server.stop()


async def publish(message: dict[str, Any]) -> None:
    payload = orjson.dumps(message).decode()
    await get_channel_layer().group_send(group("c"), {"type": "live.update", "payload": payload})


async def published_until_received(feed: Feed, socket: Socket, message: dict[str, Any]) -> dict[str, Any]:
    """The scheduler goes on publishing; what it publishes while nobody is subscribed is lost."""
    for _ in range(200):
        try:
            await publish(message)
            await asyncio.wait_for(socket.wake.wait(), 0.1)
        except (TimeoutError, RedisError, OSError):
            continue
        socket.wake.clear()
        if text := feed.next_frame(socket):
            return orjson.loads(text)  # type: ignore[no-any-return]  # a frame is an object
    raise AssertionError("nothing came any more")


async def test_killed_and_started_empty(valkey: Valkey) -> None:
    feed, socket = Feed("c"), Socket(ALL)
    await feed.open()
    feed.join(socket)
    assert (await published_until_received(feed, socket, frame("snapshot", 1)))["sequence"] == 1
    assert valkey.pid is not None
    os.kill(valkey.pid, signal.SIGKILL)
    valkey.stop()
    assert feed.heartbeat() is not None  # with the old time, which tells that nothing is new
    valkey.start()
    late = await published_until_received(feed, socket, frame("snapshot", 5, pending=7))
    assert (late["type"], late["sequence"]) == ("snapshot", 5)
    assert late["data"]["cluster_queues"]["a"]["pending"] == 7
    await feed.close()


async def test_no_socket_joins_without_redis(valkey: Valkey) -> None:
    valkey.stop()
    hub = Hub()
    with pytest.raises((RedisError, OSError)):
        await hub.join("c", Socket(ALL))
    valkey.start()
    feed = await hub.join("c", socket := Socket(ALL))
    await hub.leave("c", socket)
    assert feed.is_empty
