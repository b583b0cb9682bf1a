"""The changes of a cluster on their way from the threads that follow its kinds to the thread that applies them."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Generic, TypeVar

_Item = TypeVar("_Item")


class Inbox(Generic[_Item]):
    """A bounded queue for any number of writers and one reader, which wakes up once for a batch: to wake up for each
    item costs more than to take it.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: deque[_Item] = deque()
        self._lock = threading.Lock()
        self._enough = threading.Condition(self._lock)
        self._room = threading.Condition(self._lock)
        self._wanted = 1

    def put(self, item: _Item) -> None:
        """Add an item at the end. Waits while the inbox is full."""
        with self._lock:
            while len(self._items) >= self._most:
                self._room.wait()
            self._items.append(item)
            if len(self._items) >= self._wanted:
                self._enough.notify()

    def wait(self, count: int, seconds: float) -> bool:
        """Wait until this many items have arrived, for at most this many seconds; return whether they have."""
        end = time.monotonic() + seconds
        with self._lock:
            self._wanted = count
            while len(self._items) < count:
                left = end - time.monotonic()
                if left <= 0:
                    return False
                self._enough.wait(left)
            return True

    def take(self, most: int) -> list[_Item]:
        """Take the first items, at most this many."""
        with self._lock:
            taken = [self._items.popleft() for _ in range(min(most, len(self._items)))]
            self._room.notify_all()
            return taken
