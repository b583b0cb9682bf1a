"""Publishes the figures that browsers see, taken from the World: a snapshot kept in Redis, and changes since.

Frames carry (epoch, sequence, time). A client that sees a gap asks for the snapshot, so a lost frame causes a short
delay and never shows old figures as new. Publishing never delays or fails a batch: without Redis the figures wait.
`shapes` declares the frames.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any, Final, Literal, NotRequired, TypedDict

import orjson
from channels.layers import get_channel_layer
from redis import RedisError

from foundation.redis_client import redis_client
from gpus.units import device_amounts, mig_instance, mig_places
from scheduler.live.frames import MAX_NAMED, named
from scheduler.live.shapes import (
    LiveChanges,
    LiveClusterQueue,
    LiveCohort,
    LiveData,
    LiveDevice,
    LiveDeviceUnits,
    LiveMigInstance,
    LiveRemoved,
    LiveSlice,
    LiveTotals,
    Share,
)
from scheduler.store.placements import held_slices
from scheduler.store.row_index import RowIndex
from scheduling.model.device import MIG_MODE, DeviceSlice
from scheduling.state.status import ClusterQueueStatus, CohortStatus
from scheduling.world import World

_log = logging.getLogger(__name__)

INTERVAL_SECONDS: Final = 0.15
"""The interval between frames with changes; longer if computing one takes long, so that it takes at most a tenth of
the time."""
HEARTBEAT_SECONDS: Final = 5.0

Send = Callable[[str, bytes, bytes | None], object]
"""Sends a cluster's frame, and stores the snapshot that belongs to it. A frame without one is a heartbeat."""


def snapshot_key(cluster: str) -> str:
    """Return the key of a cluster's last snapshot in Redis."""
    return f"kueueweb:live:{cluster}"


def heartbeat_key(cluster: str) -> str:
    """Return the key of a cluster's last heartbeat in Redis. The heartbeat shows how long the figures of the snapshot
    have been valid."""
    return f"kueueweb:live:{cluster}:heartbeat"


def group(cluster: str) -> str:
    """Return the channel-layer group of a cluster's frames."""
    return f"live.{cluster}"


def send_in_background(cluster: str, frame: bytes, snapshot: bytes | None = None) -> Future[None]:
    """Store the snapshot, then publish the frame, without blocking the caller. Frames are sent in order."""
    return _publisher().send(cluster, frame, snapshot)


class LiveFrames:
    """The last published figures of one cluster, and which of them changed.

    * steady: the monotonic clock that spaces frames.
    """

    def __init__(
        self,
        cluster: str,
        epoch: int,
        steady: Callable[[], float] = time.monotonic,
        send: Send = send_in_background,
    ) -> None:
        self._cluster = cluster
        self._epoch = epoch
        self._steady = steady
        self._send = send
        self._sequence = 0
        self._shown: LiveData | None = None
        self._due_at = 0.0
        self._beat_at = 0.0
        self._news = True
        self._changed: dict[str, None] = {}

    def touch(self, workloads: Iterable[str] = ()) -> None:
        """Note that a visible change was saved, and which workloads it concerns (namespace/name)."""
        self._news = True
        self._changed.update(dict.fromkeys(islice(workloads, MAX_NAMED + 1 - len(self._changed))))

    def publish(self, world: World, rows: RowIndex, now: float) -> None:
        """Publish the changes, or a heartbeat, if one of them is due."""
        started = self._steady()
        if self._news and started >= self._due_at:
            self._news = False
            self._send_changes(numbers(world, rows), now)
            ended = self._steady()
            self._due_at = ended + max(INTERVAL_SECONDS, 10 * (ended - started))
            self._beat_at = ended + HEARTBEAT_SECONDS
        elif started >= self._beat_at:
            self._beat_at = started + HEARTBEAT_SECONDS
            self._send(self._cluster, self._frame("heartbeat", now), None)

    def _send_changes(self, data: LiveData, now: float) -> None:
        delta = None if self._shown is None else difference(self._shown, data)
        if delta is not None and self._changed:
            delta["workloads"] = named(self._changed)
        self._changed = {}
        if delta == {}:
            return
        self._sequence += 1
        self._shown = data
        snapshot = self._frame("snapshot", now, data)
        frame = snapshot if delta is None else self._frame("delta", now, delta)
        self._send(self._cluster, frame, snapshot)

    def _frame(self, type_: str, now: float, data: LiveData | LiveChanges | None = None) -> bytes:
        frame: dict[str, Any] = {
            "type": type_,
            "cluster": self._cluster,
            "epoch": self._epoch,
            "sequence": self._sequence,
            "time": datetime.fromtimestamp(now, UTC),
        }
        if data is not None:
            frame["data"] = data
        return orjson.dumps(frame)


_PARTS: Final[tuple[Literal["cluster_queues", "cohorts", "devices"], ...]] = ("cluster_queues", "cohorts", "devices")


def difference(before: LiveData, after: LiveData) -> LiveChanges:
    """Return the entries of `after` that differ from `before`, whole, and the names of removed ones."""
    delta: LiveChanges = {}
    removed: LiveRemoved = {}
    if before["totals"] != after["totals"]:
        delta["totals"] = after["totals"]
    for part in _PARTS:
        old: Mapping[str, Any] = before[part]
        new: Mapping[str, Any] = after[part]
        changed = {name: entry for name, entry in new.items() if old.get(name) != entry}
        gone = [name for name in old if name not in new]
        if changed:
            delta[part] = changed
        if gone:
            removed[part] = gone
    if removed:
        delta["removed"] = removed
    return delta


def numbers(world: World, rows: RowIndex) -> LiveData:
    """Return all figures of a cluster."""
    cluster_queues = {
        name: cluster_queue_numbers(world.cluster_queue_status(name)) for name in world.cluster_queue_names()
    }
    devices = _devices(world, rows)
    return {
        "totals": _totals(cluster_queues, devices, len(rows.nodes)),
        "cluster_queues": cluster_queues,
        "cohorts": {name: cohort_numbers(world.cohort_status(name)) for name in world.cohort_names()},
        "devices": devices,
    }


def _share(share: float) -> Share:
    return "Infinity" if math.isinf(share) else share


def cluster_queue_numbers(view: ClusterQueueStatus) -> LiveClusterQueue:
    return {
        "cohort": view.cohort,
        "active": view.active,
        "reason": view.reason,
        "message": view.message,
        "pending": view.pending,
        "inadmissible": view.inadmissible,
        "reserving": view.reserving,
        "admitted": view.admitted,
        "weighted_share": _share(view.weighted_share),
        "usage": [
            {
                "flavor": cell.flavor,
                "resource": cell.resource,
                "nominal": cell.nominal,
                "deserved": cell.deserved,
                "borrowing_limit": cell.borrowing_limit,
                "lending_limit": cell.lending_limit,
                "used": cell.used,
                "borrowed": cell.borrowed,
            }
            for cell in view.usage
        ],
    }


def cohort_numbers(view: CohortStatus) -> LiveCohort:
    return {
        "parent": view.parent,
        "weighted_share": _share(view.weighted_share),
        "usage": [
            {
                "flavor": cell.flavor,
                "resource": cell.resource,
                "deserved": cell.deserved,
                "subtree_quota": cell.subtree_quota,
                "used": cell.used,
            }
            for cell in view.usage
        ],
    }


def _devices(world: World, rows: RowIndex) -> dict[str, LiveDevice]:
    slices: dict[tuple[str, str], list[LiveSlice]] = {}
    for key in world.device_holders():
        workload = world.workload(key)
        for part in held_slices(workload) if workload else ():
            slices.setdefault((part.slice.node, part.slice.uuid), []).append(
                {
                    "workload": key,
                    "namespace": key.partition("/")[0],
                    "pod_set": part.pod_set,
                    "replica": part.replica,
                    "container": part.container,
                    "memory_mib": part.slice.memory_mib,
                    "cores_percent": part.slice.cores_percent,
                    **_mig(part.slice),
                }
            )
    shown: dict[str, LiveDevice] = {}
    for node in rows.nodes.values():
        for found in node.found:
            slices.setdefault((node.name, found.uuid), []).append(
                {"workload": None, "namespace": "", "pod_set": "", "replica": 0, "container": "",
                 "memory_mib": found.memory_mib, "cores_percent": found.cores_percent, **_mig(found)}
            )  # fmt: skip
        for device in node.devices:
            used = world.device_usage(node.name, device.uuid)
            mine = [found for found in node.found if found.uuid == device.uuid]
            held = slices.get((node.name, device.uuid), [])
            used_cores = used[2] + sum(found.cores_percent for found in mine)
            amounts = device_amounts(
                device.vendor,
                device.mode,
                device.attributes,
                device.cores_percent,
                used_cores,
                [each["memory_mib"] for each in held],
            )
            shown[device.uuid] = {
                "node": node.name,
                "index": device.index,
                "type": device.type,
                "vendor": device.vendor,
                "health": device.health,
                "cordoned": device.cordoned,
                "node_unschedulable": node.unschedulable,
                "draining": {(node.name, ""), (node.name, device.uuid)} & rows.draining != set(),
                "slots": device.slots,
                "used_slots": used[0] + sum(found.slots for found in mine),
                "memory_mib": device.memory_mib,
                "used_memory_mib": used[1] + sum(found.memory_mib for found in mine),
                "cores_percent": device.cores_percent,
                "used_cores_percent": min(used_cores, device.cores_percent) if device.mode == MIG_MODE else used_cores,
                "units": LiveDeviceUnits(**amounts),
                "slices": held,
            }
            if places := mig_places(device):
                shown[device.uuid]["mig_places"] = places
    return shown


class _Mig(TypedDict):
    mig: NotRequired[list[LiveMigInstance]]


def _mig(held: DeviceSlice) -> _Mig:
    """Return the MIG instances of a slice, with their positions; empty for a slice without any."""
    instances = [LiveMigInstance(**mig_instance(found)) for found in held.mig_instances]
    return {"mig": instances} if instances else {}


def _totals(
    cluster_queues: Mapping[str, LiveClusterQueue], devices: Mapping[str, LiveDevice], nodes: int
) -> LiveTotals:
    queues, held = cluster_queues.values(), devices.values()
    return {
        "pending": sum(queue["pending"] for queue in queues),
        "inadmissible": sum(queue["inadmissible"] for queue in queues),
        "reserving": sum(queue["reserving"] for queue in queues),
        "admitted": sum(queue["admitted"] for queue in queues),
        "nodes": nodes,
        "devices": len(devices),
        "devices_in_use": sum(1 for device in held if device["used_slots"]),
        "slots": sum(device["slots"] for device in held),
        "used_slots": sum(device["used_slots"] for device in held),
        "memory_mib": sum(device["memory_mib"] for device in held),
        "used_memory_mib": sum(device["used_memory_mib"] for device in held),
        "cores_percent": sum(device["cores_percent"] for device in held),
        "used_cores_percent": sum(device["used_cores_percent"] for device in held),
    }


class _Publisher:
    """An event loop in a thread of its own, because the channel layer is asynchronous and the worker is not."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="live-publisher", daemon=True).start()

    def send(self, cluster: str, frame: bytes, snapshot: bytes | None) -> Future[None]:
        return asyncio.run_coroutine_threadsafe(self._send(cluster, frame, snapshot), self._loop)

    async def _send(self, cluster: str, frame: bytes, snapshot: bytes | None) -> None:
        layer = get_channel_layer()
        try:
            # Without the heartbeat, the first reader of a quiet cluster would take its figures for stale ones.
            key, kept = (heartbeat_key(cluster), frame) if snapshot is None else (snapshot_key(cluster), snapshot)
            redis_client().set(key, kept)
            if layer is not None:
                await layer.group_send(group(cluster), {"type": "live.update", "payload": frame.decode()})
        except (RedisError, OSError) as error:
            _log.warning("cluster %s: a live frame was lost; the next snapshot replaces it: %s", cluster, error)


@cache
def _publisher() -> _Publisher:
    return _Publisher()
