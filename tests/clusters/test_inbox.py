"""The watcher's inbox: batches in order, and writers that wait for room."""

from __future__ import annotations

import threading
import time

from clusters.inbox import Inbox

PATIENCE = 30.0


def test_items_come_in_order_and_in_pieces() -> None:
    inbox = Inbox[int](10)
    for number in range(5):
        inbox.put(number)
    assert (inbox.take(3), inbox.take(3), inbox.take(3)) == ([0, 1, 2], [3, 4], [])


def test_a_wait_ends_with_the_last_item_that_it_is_for() -> None:
    inbox = Inbox[int](10)
    assert not inbox.wait(1, 0.0)
    inbox.put(1)
    assert inbox.wait(1, 0.0)
    assert not inbox.wait(2, 0.01)
    threading.Timer(0.01, inbox.put, [2]).start()
    assert inbox.wait(2, PATIENCE)


def test_a_writer_waits_for_room() -> None:
    inbox = Inbox[int](2)

    def write() -> None:
        for number in range(5):
            inbox.put(number)

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    found: list[int] = []
    end = time.monotonic() + PATIENCE
    while len(found) < 5 and time.monotonic() < end:
        assert inbox.wait(1, PATIENCE)
        taken = inbox.take(5)
        assert len(taken) <= 2
        found += taken
    writer.join(PATIENCE)
    assert found == [0, 1, 2, 3, 4]
