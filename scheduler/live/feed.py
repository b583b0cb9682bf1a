"""One subscription per process and cluster, with the present figures. Sockets are woken when there is news.

No socket is written to from here. A woken socket requests the frame that leads from its position to the present one. So
a slow socket gets one merged delta, or a snapshot, and delays no other.
"""

import asyncio
import logging
from collections import deque
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from channels.layers import get_channel_layer
from redis import RedisError
from redis.asyncio import Redis

from foundation.redis_client import asynchronous_redis_client
from scheduler.live.frames import Audience, apply, empty, merge, moment, moves, read, redact
from scheduler.live.publisher import group, heartbeat_key, snapshot_key

_REMEMBERED_DELTAS: Final = 64
"""A socket that is more deltas behind gets a snapshot, which is smaller then."""

_CANCEL_SECONDS: Final = 1.0
"""Unsubscribing takes milliseconds."""

_log = logging.getLogger(__name__)


class Socket:
    """The position of one socket: that of the last frame it received. `wake` is set when there is a new frame."""

    def __init__(self, audience: Audience) -> None:
        self.audience = audience
        self.wake = asyncio.Event()
        self.epoch = -1
        self.sequence = -1
        self.beat = -1

    def forget(self) -> None:
        """Restart with a snapshot."""
        self.epoch = -1
        self.wake.set()


class Feed:
    """The figures of one cluster. Call `open` and `close` within one event loop."""

    def __init__(self, cluster: str, redis: Redis | None = None) -> None:
        self._cluster = cluster
        self._sockets: set[Socket] = set()
        self._epoch = -1
        self._sequence = -1
        self._moved_at = -1
        self._time = ""
        self._data = empty()
        self._deltas: deque[tuple[int, dict[str, Any]]] = deque(maxlen=_REMEMBERED_DELTAS)
        self._beat = 0
        self._cache: dict[tuple[str, int, Audience], bytes] = {}
        self._redis = redis or asynchronous_redis_client()
        self._reader: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Subscribe, then read the snapshot. Frames that are published in between are in at least one of the two."""
        layer = get_channel_layer()
        channel = await layer.new_channel()
        await layer.group_add(group(self._cluster), channel)
        self._reader = asyncio.create_task(self._read(layer, channel), name=f"live-feed-{self._cluster}")
        await self._load()

    async def close(self) -> None:
        """End the subscription. A read of Redis can lose a cancellation, so it is repeated until the reader ends."""
        reader, self._reader = self._reader, None
        while reader is not None and not reader.done():
            reader.cancel()
            await asyncio.wait({reader}, timeout=_CANCEL_SECONDS)
        await self._redis.aclose()

    @property
    def is_empty(self) -> bool:
        return not self._sockets

    def join(self, socket: Socket) -> None:
        """Wake the socket from now on."""
        self._sockets.add(socket)
        socket.wake.set()

    def leave(self, socket: Socket) -> None:
        self._sockets.discard(socket)

    def next_frame(self, socket: Socket) -> str | None:
        """Return the frame that brings the socket up to date, or a heartbeat that it has not received; None if there is
        neither."""
        if self._epoch < 0:
            return None
        if socket.epoch != self._epoch or socket.sequence + 1 < self._reachable_from(socket.audience):
            frame = self._frame("snapshot", -1, socket.audience)
        elif socket.sequence < self._sequence:
            frame = self._frame("delta", socket.sequence, socket.audience)
        elif socket.beat != self._beat:
            frame = orjson.dumps(self._head("heartbeat")).decode()
        else:
            return None
        socket.epoch, socket.sequence, socket.beat = self._epoch, self._sequence, self._beat
        return frame

    def heartbeat(self) -> str | None:
        """Return the position and the scheduler's last time. While the scheduler is silent, that time does not advance,
        so the client sees that the figures are stale."""
        return None if self._epoch < 0 else orjson.dumps(self._head("heartbeat")).decode()

    def _reachable_from(self, audience: Audience) -> int:
        """Return the first sequence from which a delta for this audience can start."""
        oldest = self._deltas[0][0] if self._deltas else self._sequence + 1
        return oldest if audience.sees_everything else max(oldest, self._moved_at + 1)

    def _frame(self, type_: str, since: int, audience: Audience) -> str:
        """Built once per audience and distance, however many sockets need it."""
        key = (type_, since, audience)
        if key not in self._cache:
            if type_ == "snapshot":
                shown = redact(self._data, self._data, audience)
            else:
                missed = [delta for sequence, delta in self._deltas if sequence > since]
                shown = redact(merge(missed), self._data, audience)
            self._cache[key] = orjson.dumps(shown)
        # The snapshot may be the last one of a scheduler that has ended. A new client cannot tell, so the frame carries
        # its age.
        more = {"age_seconds": self._age_seconds()} if type_ == "snapshot" else {"since": since}
        return orjson.dumps({**self._head(type_), **more, "data": orjson.Fragment(self._cache[key])}).decode()

    def _age_seconds(self) -> float:
        """Return the age of the figures, by the clocks of scheduler and server."""
        return round(max(0.0, (datetime.now(UTC) - moment(self._time)).total_seconds()), 3)

    def _head(self, type_: str) -> dict[str, Any]:
        return {
            "type": type_,
            "cluster": self._cluster,
            "epoch": self._epoch,
            "sequence": self._sequence,
            "time": self._time,
        }

    async def _read(self, layer: Any, channel: str) -> None:
        try:
            while True:
                message = await layer.receive(channel)
                frame = self._readable(message["payload"])
                if frame is not None:
                    await self._take(frame)
        finally:
            await layer.group_discard(group(self._cluster), channel)

    def _readable(self, payload: str | bytes) -> dict[str, Any] | None:
        """Return the frame, or None if it is unreadable. An unreadable frame must not end the stream; the next one
        fills the gap."""
        try:
            return read(payload)
        except ValueError as error:
            _log.warning("cluster %s: a live frame is skipped: %s", self._cluster, error)
            return None

    async def _take(self, frame: dict[str, Any]) -> None:
        epoch, sequence = frame["epoch"], frame["sequence"]
        if frame["type"] == "snapshot":
            self._start(frame)
        elif epoch < self._epoch or (epoch == self._epoch and sequence < self._sequence):
            return  # sent by an earlier leader, or already part of the snapshot
        elif epoch == self._epoch and frame["type"] == "delta" and sequence == self._sequence + 1:
            self._sequence, self._time = sequence, frame["time"]
            if moves(self._data, frame["data"]):
                self._moved_at = sequence
            apply(self._data, frame["data"])
            self._deltas.append((sequence, frame["data"]))
            self._news()
        elif epoch == self._epoch and sequence == self._sequence:
            self._time = frame["time"]
            self._beat += 1
            self._wake()
        else:
            await self._load()  # a frame was lost

    async def _load(self) -> None:
        try:
            kept, beat = await self._redis.mget(snapshot_key(self._cluster), heartbeat_key(self._cluster))
        except (RedisError, OSError) as error:
            _log.warning("cluster %s: no snapshot, the next frame tries again: %s", self._cluster, error)
            return
        snapshot = self._readable(kept) if kept else None
        if snapshot is not None:
            self._start(snapshot)
        heartbeat = self._readable(beat) if beat else None
        if heartbeat is not None and (heartbeat["epoch"], heartbeat["sequence"]) == (self._epoch, self._sequence):
            self._time = max(self._time, heartbeat["time"], key=moment)

    def _start(self, snapshot: dict[str, Any]) -> None:
        """Replace the figures by a snapshot. Sockets that are at its position already are not woken."""
        position = (snapshot["epoch"], snapshot["sequence"])
        if position <= (self._epoch, self._sequence):
            return
        self._epoch, self._sequence = position
        self._time = snapshot["time"]
        self._data = empty() | snapshot["data"]
        self._moved_at = -1
        self._deltas.clear()
        self._news()

    def _news(self) -> None:
        self._cache.clear()
        self._wake()

    def _wake(self) -> None:
        for socket in self._sockets:
            socket.wake.set()
