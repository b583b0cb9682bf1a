"""The live stream over a websocket: one per tab, authorised, resumable, with merged frames for slow clients."""

import asyncio
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs

import orjson
from channels.generic.websocket import AsyncWebsocketConsumer
from django.conf import settings
from redis import RedisError

from scheduler.live.authentication import TOO_MANY, TRY_AGAIN_LATER, Refusal, audience_of
from scheduler.live.feed import Feed, Socket
from scheduler.live.hub import hub
from scheduler.live.rights import user_group

HEARTBEAT_SECONDS: Final = 5.0
RECHECK_SECONDS: Final = 15.0
_MAX_MESSAGE: Final = 1000


class LiveConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # the library is not typed
    """Sends the numbers of the cluster that `?cluster=` names; see `scheduler.live.publisher` for the frames.

    The client may send `{"type": "resume"}` for a snapshot. Closes with 4401 without a login or after its end, 4403
    without any role, 4404 for an unknown cluster, 4429 beyond MAX_SOCKETS_PER_USER, 1013 while the database or Redis
    does not answer.
    """

    def __init__(self, heartbeat_seconds: float = HEARTBEAT_SECONDS, recheck_seconds: float = RECHECK_SECONDS) -> None:
        super().__init__()
        self._heartbeat_seconds = heartbeat_seconds
        self._recheck_seconds = recheck_seconds
        self._cluster = "default"
        self._socket: Socket | None = None
        self._user: int | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def connect(self) -> None:
        """Accept the socket first, because a browser sees a close code only of an open socket."""
        query = parse_qs(self.scope["query_string"].decode("ascii", "replace"))
        self._cluster = query.get("cluster", ["default"])[-1]
        await self.accept()
        audience = await audience_of(self.scope, self._cluster)
        if isinstance(audience, Refusal):
            await self.close(audience.code, audience.reason)
            return
        user = self.scope["user_id"]
        if not hub().admit(user, settings.MAX_SOCKETS_PER_USER):
            await self.close(TOO_MANY, "This account has too many live streams open.")
            return
        self._user = user
        socket = Socket(audience)
        try:
            await self.channel_layer.group_add(user_group(user), self.channel_name)
            feed = await hub().join(self._cluster, socket)
        except (RedisError, OSError):
            await self.close(TRY_AGAIN_LATER, "Redis does not answer.")
            return
        self._socket = socket
        self._tasks = [
            asyncio.create_task(self._pump(feed, socket)),
            asyncio.create_task(self._recheck(socket)),
        ]

    async def disconnect(self, code: int) -> None:
        """Stop the sender of the socket, and leave the feed."""
        for task in self._tasks:
            if task is not asyncio.current_task():
                task.cancel()
        if self._socket is not None:
            await hub().leave(self._cluster, self._socket)
        if self._user is not None:
            hub().dismiss(self._user)
            with suppress(RedisError, OSError):
                await self.channel_layer.group_discard(user_group(self._user), self.channel_name)
            self._user = None

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        """Handle a request to resume; ignore everything else, so that no message of a client can break the stream."""
        if self._socket is None or text_data is None or len(text_data) > _MAX_MESSAGE:
            return
        with suppress(orjson.JSONDecodeError):
            message: Any = orjson.loads(text_data)
            if isinstance(message, dict) and message.get("type") == "resume":
                self._socket.forget()

    async def _pump(self, feed: Feed, socket: Socket) -> None:
        """Send each frame as it arrives, and a heartbeat after a while without frames."""
        while True:
            try:
                await asyncio.wait_for(socket.wake.wait(), self._heartbeat_seconds)
            except TimeoutError:
                frame = feed.heartbeat()
            else:
                socket.wake.clear()
                frame = feed.next_frame(socket)
            if frame is not None:
                await self.send(text_data=frame)

    async def rights_changed(self, message: dict[str, Any]) -> None:
        """Check immediately whether the stream may continue: a user has logged out, was deactivated or lost a token."""
        if self._socket is not None:
            await self._may_go_on(self._socket)

    async def question_ended(self, message: dict[str, Any]) -> None:
        """Forward the end of this user's question to the studio, on the streams of its cluster."""
        if self._socket is not None and message["frame"]["cluster"] == self._cluster:
            await self.send(text_data=orjson.dumps(message["frame"]).decode())

    async def _recheck(self, socket: Socket) -> None:
        """Tokens run out, roles are taken away, and a message may be lost."""
        while True:
            await asyncio.sleep(self._recheck_seconds)
            if not await self._may_go_on(socket):
                return

    async def _may_go_on(self, socket: Socket) -> bool:
        """Close when the right has ended; show another picture when it has changed."""
        audience = await audience_of(self.scope, self._cluster)
        if isinstance(audience, Refusal):
            await self.close(audience.code, audience.reason)
            return False
        if audience != socket.audience:
            socket.audience = audience
            socket.forget()
        return True
