"""The feeds of this process: one per cluster with a socket."""

import asyncio
from collections import Counter
from weakref import WeakKeyDictionary

from scheduler.live.feed import Feed, Socket


class Hub:
    """Opens a cluster's feed for its first socket and closes it after its last one."""

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}
        self._lock = asyncio.Lock()
        self._users: Counter[int] = Counter()

    def admit(self, user: int, limit: int) -> bool:
        """Count a socket of the user, unless the limit is reached (0: no limit)."""
        if limit and self._users[user] >= limit:
            return False
        self._users[user] += 1
        return True

    def dismiss(self, user: int) -> None:
        """Count one socket of the user less."""
        self._users[user] -= 1
        if not self._users[user]:
            del self._users[user]

    async def join(self, cluster: str, socket: Socket) -> Feed:
        """Return the cluster's feed, which wakes the socket from now on."""
        async with self._lock:
            feed = self._feeds.get(cluster)
            if feed is None:
                feed = Feed(cluster)
                await feed.open()
                self._feeds[cluster] = feed
            feed.join(socket)
            return feed

    async def leave(self, cluster: str, socket: Socket) -> None:
        async with self._lock:
            feed = self._feeds.get(cluster)
            if feed is None:
                return
            feed.leave(socket)
            if not feed.is_empty:
                return
            del self._feeds[cluster]
        await feed.close()  # without the lock: no other socket waits for it


_hubs: "WeakKeyDictionary[asyncio.AbstractEventLoop, Hub]" = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running event loop. A server has one; tests have many."""
    loop = asyncio.get_running_loop()
    if loop not in _hubs:
        _hubs[loop] = Hub()
    return _hubs[loop]
