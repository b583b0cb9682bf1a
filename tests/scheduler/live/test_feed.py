"""A feed on a real Valkey: sockets get what they lack, once, however slow they are and whatever was lost."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from channels.layers import get_channel_layer
from django.conf import settings
from redis import RedisError
from redis.asyncio import Redis

from queues.services.visibility import Visibility
from scheduler.live.feed import Feed, Socket
from scheduler.live.frames import Audience
from scheduler.live.publisher import group, heartbeat_key, send_in_background, snapshot_key
from tests.patience import PATIENCE_SECONDS

CLUSTER = "feed-test"
ALL = Audience(None, Visibility(None))
TENANT = Audience(frozenset({"team-a"}), Visibility(frozenset({"a"})))


def queue(pending: int, cohort: str = "") -> dict[str, Any]:
    return {"cohort": cohort, "pending": pending, "inadmissible": 0, "reserving": 0, "admitted": 0}


def at(epoch: int, sequence: int) -> str:
    return f"2026-01-05T09:{epoch:02}:{sequence % 60:02}Z"


def frame(type_: str, sequence: int, data: dict[str, Any] | None = None, epoch: int = 1) -> dict[str, Any]:
    body = {"type": type_, "cluster": CLUSTER, "epoch": epoch, "sequence": sequence, "time": at(epoch, sequence)}
    return body if data is None else {**body, "data": data}


def numbers(**pending: int) -> dict[str, Any]:
    queues = {name: queue(count) for name, count in pending.items()}
    return {"totals": {"devices": 0}, "cluster_queues": queues, "cohorts": {}, "devices": {}}


async def publish(message: dict[str, Any]) -> None:
    await get_channel_layer().group_send(
        group(CLUSTER), {"type": "live.update", "payload": orjson.dumps(message).decode()}
    )


async def keep(snapshot: dict[str, Any]) -> None:
    async with Redis.from_url(settings.REDIS_URL) as redis:
        await redis.set(snapshot_key(CLUSTER), orjson.dumps(snapshot))


@pytest.fixture
async def feed(live_services: None) -> AsyncIterator[Feed]:
    await keep(frame("snapshot", 1, numbers(a=1, b=1)))
    feed = Feed(CLUSTER)
    await feed.open()
    yield feed
    await feed.close()
    async with Redis.from_url(settings.REDIS_URL) as redis:
        await redis.delete(snapshot_key(CLUSTER), heartbeat_key(CLUSTER))


class LosesACancellation(Redis):
    """Answers at once at first, then waits, and fails as a read does whose connection breaks when it is cancelled."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.waits = asyncio.Event()

    async def mget(self, *keys: Any) -> Any:
        self.reads += 1
        if self.reads != 2:
            return [None, None]
        self.waits.set()
        try:
            await asyncio.sleep(10 * PATIENCE_SECONDS)
        except asyncio.CancelledError:
            raise RedisError("the connection was closed") from None


async def test_a_lost_cancellation_does_not_keep_a_feed_open(live_services: None) -> None:
    """Otherwise the lock of the hub would be held for good, and no browser of this process would get figures again."""
    redis = LosesACancellation()
    feed = Feed(CLUSTER, redis)
    await feed.open()
    await publish(frame("delta", 9, numbers(a=1)))  # after a gap: the snapshot is read
    await asyncio.wait_for(redis.waits.wait(), PATIENCE_SECONDS)
    await asyncio.wait_for(feed.close(), PATIENCE_SECONDS)


async def received(feed: Feed, socket: Socket) -> dict[str, Any]:
    """The next frame for the socket, as its pump would send it."""
    while True:
        await asyncio.wait_for(socket.wake.wait(), PATIENCE_SECONDS)
        socket.wake.clear()
        text = feed.next_frame(socket)
        if text is not None:
            return orjson.loads(text)  # type: ignore[no-any-return]  # a frame is an object


async def until(feed: Feed, reached: Callable[[dict[str, Any]], bool]) -> None:
    """Wait until the feed has taken what was published, seen by a socket of its own."""
    probe = Socket(ALL)
    feed.join(probe)
    while not reached(await received(feed, probe)):
        pass
    feed.leave(probe)


def join(feed: Feed, audience: Audience = ALL) -> Socket:
    socket = Socket(audience)
    feed.join(socket)
    return socket


async def test_a_snapshot_then_deltas_then_heartbeats(feed: Feed) -> None:
    socket = join(feed)
    first = await received(feed, socket)
    assert (first["type"], first["sequence"], first["time"]) == ("snapshot", 1, at(1, 1))
    assert first["data"]["cluster_queues"]["a"]["pending"] == 1
    await publish(frame("delta", 2, {"cluster_queues": {"a": queue(5)}}))
    second = await received(feed, socket)
    assert (second["type"], second["since"], second["data"]) == ("delta", 1, {"cluster_queues": {"a": queue(5)}})
    await publish(frame("heartbeat", 2))
    assert (await received(feed, socket))["type"] == "heartbeat"


@pytest.mark.parametrize(("change", "is_younger"), [({}, True), ({"sequence": 2}, False), ({"epoch": 2}, False)])
async def test_the_first_snapshot_is_as_young_as_the_last_heartbeat_of_its_position(
    feed: Feed, change: dict[str, int], is_younger: bool
) -> None:
    now = datetime.now(UTC).isoformat()
    await asyncio.wrap_future(
        send_in_background(CLUSTER, orjson.dumps({**frame("heartbeat", 1), "time": now, **change}))
    )
    opened = Feed(CLUSTER)
    await opened.open()
    shown = await received(opened, join(opened))
    await opened.close()
    assert shown["time"] == (now if is_younger else at(1, 1))
    assert (shown["age_seconds"] < PATIENCE_SECONDS) is is_younger


async def test_a_slow_socket_gets_what_it_missed_as_one(feed: Feed) -> None:
    socket = join(feed)
    await received(feed, socket)
    for sequence in range(2, 8):
        await publish(frame("delta", sequence, {"cluster_queues": {"a": queue(sequence)}}))
    await until(feed, lambda frame: frame["sequence"] == 7)
    merged = await received(feed, socket)
    assert (merged["since"], merged["sequence"]) == (1, 7)
    assert merged["data"] == {"cluster_queues": {"a": queue(7)}}


async def test_far_behind_it_gets_a_snapshot(feed: Feed) -> None:
    socket = join(feed)
    await received(feed, socket)
    for sequence in range(2, 80):
        await publish(frame("delta", sequence, {"cluster_queues": {"a": queue(sequence)}}))
    await until(feed, lambda frame: frame["sequence"] == 79)
    late = await received(feed, socket)
    assert (late["type"], late["sequence"]) == ("snapshot", 79)
    assert late["data"]["cluster_queues"]["a"]["pending"] == 79


async def test_a_lost_frame_is_made_up_for(feed: Feed) -> None:
    socket = join(feed)
    await received(feed, socket)
    await keep(frame("snapshot", 3, numbers(a=3)))
    await publish(frame("delta", 3, {"cluster_queues": {"a": queue(3)}}))  # 2 never came
    made_up = await received(feed, socket)
    assert (made_up["type"], made_up["sequence"]) == ("snapshot", 3)
    assert made_up["data"]["cluster_queues"] == {"a": queue(3)}


async def test_another_leader(feed: Feed) -> None:
    socket = join(feed)
    await received(feed, socket)
    await publish(frame("snapshot", 1, numbers(a=9), epoch=2))
    other = await received(feed, socket)
    assert (other["type"], other["epoch"]) == ("snapshot", 2)
    await publish(frame("delta", 2, {"cluster_queues": {"a": queue(0)}}, epoch=1))  # the one before still talks
    await publish(frame("delta", 2, {"cluster_queues": {"a": queue(4)}}, epoch=2))
    assert (await received(feed, socket))["data"]["cluster_queues"]["a"]["pending"] == 4


async def test_asking_to_resume_brings_a_snapshot(feed: Feed) -> None:
    socket = join(feed)
    await received(feed, socket)
    socket.forget()
    assert (await received(feed, socket))["type"] == "snapshot"


async def test_a_tenant_gets_a_snapshot_where_the_tree_changed(feed: Feed) -> None:
    tenant, auditor = join(feed, TENANT), join(feed)
    assert list((await received(feed, tenant))["data"]["cluster_queues"]) == ["a"]
    await received(feed, auditor)
    await publish(frame("delta", 2, {"cluster_queues": {"b": queue(7)}}))
    nothing = await received(feed, tenant)
    assert (nothing["type"], nothing["data"]["cluster_queues"]) == ("delta", {})
    await received(feed, auditor)
    await publish(frame("delta", 3, {"removed": {"cluster_queues": ["b"], "cohorts": [], "devices": []}}))
    assert (await received(feed, auditor))["data"]["removed"]["cluster_queues"] == ["b"]
    assert (await received(feed, tenant))["type"] == "snapshot"


async def test_nothing_is_sent_while_nothing_is_known(live_services: None) -> None:
    feed = Feed("never-scheduled")
    await feed.open()
    assert feed.next_frame(join(feed)) is None
    assert feed.heartbeat() is None
    await feed.close()


@pytest.mark.parametrize(
    "broken",
    [
        {"time": "yesterday"}, {"time": "2026-01-05T09:00:00"}, {"time": None}, {"epoch": "1"}, {"sequence": True},
        {"type": "gossip"}, {"data": None}, {"data": {"cluster_queues": []}},
    ],
)  # fmt: skip
async def test_a_malformed_frame_is_skipped_and_the_stream_goes_on(feed: Feed, broken: dict[str, Any]) -> None:
    socket = join(feed)
    await received(feed, socket)
    await publish({**frame("delta", 2, {"cluster_queues": {"a": queue(8)}}), **broken})
    await keep(frame("snapshot", 3, numbers(a=3)))
    await publish(frame("delta", 3, {"cluster_queues": {"a": queue(3)}}))
    made_up = await received(feed, socket)
    assert (made_up["sequence"], made_up["data"]["cluster_queues"]["a"]["pending"]) == (3, 3)


@pytest.mark.parametrize("kept", [{**frame("snapshot", 1, numbers(a=1)), "time": "yesterday"}, ["no", "frame"]])
async def test_a_malformed_snapshot_waits_for_the_next_one(live_services: None, kept: Any) -> None:
    await keep(kept)
    feed = Feed(CLUSTER)
    await feed.open()
    socket = join(feed)
    assert feed.next_frame(socket) is None
    await publish(frame("snapshot", 2, numbers(a=2)))
    assert (await received(feed, socket))["data"]["cluster_queues"]["a"]["pending"] == 2
    await feed.close()
    async with Redis.from_url(settings.REDIS_URL) as redis:
        await redis.delete(snapshot_key(CLUSTER))
