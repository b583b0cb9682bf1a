"""Engines of tests, and what the rows say after they ran."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import wait
from dataclasses import fields
from typing import Any

import pytest
from django.db import connection

from accounts.models import Cluster
from queues.models import Workload
from scheduler.leader.engine import Engine
from scheduler.live.publisher import send_in_background
from scheduler.store.batch import Batch
from scheduler.store.row_index import RowIndex, placement_of
from scheduler.store.saving import save
from scheduling.model.placement import Placement
from scheduling.world import World
from tests.factories import START
from tests.patience import PATIENCE_SECONDS

NOW = START.timestamp() + 1000
_STOPPED_SECONDS = 10.0


def take_their_time(patch: pytest.MonkeyPatch) -> None:
    """Let the run of an engine and its batches end when nothing is left to decide, however slow the machine is.

    Tests about runs and batches that end sooner say so: `run(0.0)`, `batch_seconds=0.0`. After a run, figures are those
    of that run, not of an earlier test, because it waits until they are published.
    """
    patch.setattr(Engine.run, "__defaults__", (PATIENCE_SECONDS,))
    defaults = Engine.__init__.__kwdefaults__ or {}
    ours = {"batch_seconds": PATIENCE_SECONDS, "send": send_and_wait}
    patch.setattr(Engine.__init__, "__kwdefaults__", defaults | ours)


def start(cluster: Cluster, *, meanwhile: Callable[[], object] | None = None) -> Engine:
    """An engine whose first batch finds that something happened between deciding and COMMIT."""
    pending = [meanwhile] if meanwhile else []

    def save_after_that(batch: Batch) -> None:
        if batch and pending:
            in_another_session(pending.pop())
        save(batch)

    return Engine(cluster, "test", clock=lambda: NOW, save=save_after_that)


def send_and_wait(cluster: str, frame: bytes, snapshot: bytes | None) -> None:
    """Publish a frame and wait for it: the next reader of the snapshot finds this one, however slow the machine is.

    While Redis is stopped, a run goes on after some seconds.
    """
    wait([send_in_background(cluster, frame, snapshot)], timeout=_STOPPED_SECONDS)


def in_another_session(function: Callable[[], object]) -> None:
    """Run with a connection of its own, as another process would."""

    def run() -> None:
        try:
            function()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(timeout=PATIENCE_SECONDS)
    assert not thread.is_alive()


def statuses() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "status"))


def reasons() -> dict[str, str]:
    return dict(Workload.objects.values_list("name", "reason"))


def read_anew(engine: Engine, now: float) -> tuple[World, RowIndex]:
    """What a new leader knows."""
    world = World(engine.world.configuration, engine.rows.vendors)
    rows = RowIndex(engine.cluster_id, world)
    rows.vendors = engine.rows.vendors
    rows.load(now)
    return world, rows


def facts(world: World, rows: RowIndex) -> dict[str, Any]:
    """What decisions follow from. Which workloads are inadmissible is not kept: a new leader considers each again."""
    found: dict[str, Any] = {"draining": rows.draining, "nodes": rows.nodes, "ended": rows.ended}
    found["second pass"] = set(world._state.second_pass)
    found |= {"local queues": rows.local_queues, "cluster queues": rows.cluster_queues}
    for key, entry in rows.workloads.items():
        workload = world.workload(key)
        assert workload is not None, key
        stated = {field.name: getattr(workload, field.name) for field in fields(workload)}
        row = {field.name: getattr(entry, field.name) for field in fields(entry)}
        stated["placement"], row["placement"] = _pods(placement_of(workload)), _pods(entry.placement)
        found |= {f"{key} {name}": value for name, value in stated.items()}
        found |= {f"{key}'s row, {name}": value for name, value in row.items()}
        found[f"{key}, next slice"] = rows.waiting_slice_of(key)
    for name in world.cluster_queue_names():
        view = world.cluster_queue_status(name)
        waiting = {entry.workload for entry in world.pending(name)}
        found[f"ClusterQueue {name}"] = (view.active, view.reserving, view.admitted, view.usage, waiting)
    for place in rows.devices:
        found["/".join(place)] = world.device_usage(*place)
    return found


def _pods(placement: Placement | None) -> set[tuple[object, ...]]:
    return {(pod.pod_set, pod.replica, pod.node, pod.slices) for pod in placement.pods} if placement else set()
