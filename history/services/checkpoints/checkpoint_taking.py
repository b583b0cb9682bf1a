"""Takes checkpoints: at each new leader, and at each whole interval of CHECKPOINT_MINUTES.

Rows hold whole batches only, so a snapshot of them is exact without the leader, which neither waits nor computes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, cast

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.advisory_locks import LockedWork, try_lock
from gpus.models import Device
from history.models import Checkpoint
from history.services.checkpoints.checkpoint_tables import FORMAT, read_tables
from queues.models import Workload
from scheduler.api.queue_status import numbers_of_rows
from scheduler.live.published import read_published
from scheduler.live.publisher import numbers
from scheduler.live.shapes import LiveData
from scheduler.models import Decision, Lease
from scheduler.store.world_reading import read_whole_world

DUE: Final = """
SELECT cluster.id FROM accounts_cluster AS cluster
    LEFT JOIN scheduler_lease AS lease ON lease.cluster_id = cluster.id
    LEFT JOIN LATERAL (
        SELECT taken_at, epoch FROM history_checkpoint WHERE cluster_id = cluster.id ORDER BY taken_at DESC LIMIT 1
    ) AS newest ON true
WHERE newest.taken_at IS NULL OR newest.epoch < lease.epoch
    OR newest.taken_at < date_bin(make_interval(mins => %s::int), now(), 'epoch')
"""
"""The clusters whose next checkpoint is due, by the interval in minutes."""
_IS_DUE: Final = "SELECT EXISTS (SELECT FROM (FOUND) AS due WHERE due.id = %s)".replace("FOUND", DUE)
_SETTINGS: Final = ("configuration", "device_plugin_configuration", "placement", "mode")
_COMPARED: Final = ("reserving", "admitted")

_log = logging.getLogger(__name__)


def take_due_checkpoints(minutes: int) -> int:
    """Take the checkpoints that are due; return their number. One worker at a time takes those of a cluster."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [str(minutes)])
        due = [id_ for (id_,) in cursor.fetchall()]
    taken = 0
    for id_ in due:
        with try_lock(LockedWork.CHECKPOINTS, id_) as mine:
            cluster = Cluster.objects.filter(pk=id_).first() if mine and _is_due(id_, minutes) else None
            if cluster is not None:
                take_checkpoint(cluster)
                taken += 1
    return taken


def _is_due(cluster_id: int, minutes: int) -> bool:
    """Whether no other worker took it between the search and the lock."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_DUE, [str(minutes), cluster_id])
        return bool(cursor.fetchone()[0])


def take_checkpoint(cluster: Cluster) -> Checkpoint:
    """Store the rows of a cluster as they are now."""
    started = time.perf_counter()
    alone = not connection.in_atomic_block
    with transaction.atomic():
        with connection.cursor() as cursor:
            if alone:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            cursor.execute("SELECT clock_timestamp()")
            found_at: datetime = cursor.fetchone()[0]
        # Browsers and many clients have no microseconds: a moment that they name must not be before its checkpoint.
        now = found_at.replace(microsecond=found_at.microsecond // 1000 * 1000)
        cluster.refresh_from_db()
        found = _snapshot(cluster, now)
    found.save()
    _log.info(
        "cluster %s: checkpoint of %d workloads, %d KiB, in %.2f s",
        cluster.name, found.workloads, found.size_bytes // 1024, time.perf_counter() - started,
    )  # fmt: skip
    return found


def _snapshot(cluster: Cluster, now: datetime) -> Checkpoint:
    lease = Lease.objects.filter(cluster=cluster).first()
    decisions = Decision.objects.filter(cluster_name=cluster.name).order_by("-decided_at", "-id")
    content = read_tables(cluster.pk, now)
    source, data = _figures(cluster, now)
    return Checkpoint(
        cluster=cluster,
        taken_at=now,
        epoch=lease.epoch if lease else 0,
        decision=decisions.values_list("id", flat=True).first() or 0,
        format=FORMAT,
        settings={name: getattr(cluster, name) for name in _SETTINGS},
        figures={
            "source": source,
            "time": now.isoformat(),
            "totals": data["totals"],
            "cluster_queues": data["cluster_queues"],
            "cohorts": data["cohorts"],
        },
        devices=data["devices"],
        workloads=Workload.objects.filter(cluster=cluster).exclude(status="Finished").count(),
        content=content,
        size_bytes=len(content),
    )


def _figures(cluster: Cluster, now: datetime) -> tuple[str, LiveData]:
    """The leader's own figures if they agree with the rows of this snapshot, else those of a World of the rows.

    Only the leader knows which workloads are inadmissible, but its figures are of another moment: a batch may lie
    between.
    """
    published = read_published(cluster)
    if published is not None and _is_of_these_rows(published.data, cluster):
        return "live", cast("LiveData", published.data)
    return "rows", numbers(*read_whole_world(cluster, now.timestamp()))


def _is_of_these_rows(live: Mapping[str, Any], cluster: Cluster) -> bool:
    if not agree(live, numbers_of_rows([cluster])[cluster.pk].cluster_queues):
        return False
    return _used_slots(cluster) == {uuid: device["used_slots"] for uuid, device in live["devices"].items()}


def _used_slots(cluster: Cluster) -> dict[str, int]:
    rows = Device.objects.filter(node__cluster=cluster).values_list("uuid", "used_slots", "external_slots")
    return {uuid: used + external for uuid, used, external in rows}


def agree(live: Mapping[str, Any], queues: Mapping[str, Any]) -> bool:
    """Whether live figures count the same workloads and charge the same quota in each of these ClusterQueues."""
    return {name: _counts(entry) for name, entry in live["cluster_queues"].items()} == {
        name: _counts(entry) for name, entry in queues.items()
    }


def _counts(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    usage = {(cell["flavor"], cell["resource"]): (cell["nominal"], cell["used"]) for cell in entry["usage"]}
    return (*(entry[name] for name in _COMPARED), entry["pending"] + entry["inadmissible"], entry["cohort"], usage)
