"""Engines of tests, and what the rows say after they ran."""

from __future__ import annotations

import threading
from collections.abc import Callable

from django.db import connection

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from scheduler.live.publisher import send_in_background
from scheduler.store.batch import Batch
from scheduler.store.saving import save
from tests.factories import START

NOW = START.timestamp() + 1000


def start(cluster: Cluster, *, meanwhile: Callable[[], object] | None = None) -> Engine:
    """An engine whose first batch finds that something happened between deciding and COMMIT."""
    pending = [meanwhile] if meanwhile else []

    def save_after_that(batch: Batch) -> None:
        if batch and pending:
            in_another_session(pending.pop())
        save(batch)

    return Engine(cluster, "test", clock=lambda: NOW, save=save_after_that)


def send_and_wait(cluster: str, frame: bytes, snapshot: bytes | None) -> None:
    """Publish a frame and wait for it: the next reader of the snapshot finds this one, however slow the machine is."""
    send_in_background(cluster, frame, snapshot).result()


def in_another_session(function: Callable[[], object]) -> None:
    """Run with a connection of its own, as another process would."""

    def run() -> None:
        try:
            function()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=30)
    assert not thread.is_alive()


def statuses() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "status"))


def reasons() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "reason"))
