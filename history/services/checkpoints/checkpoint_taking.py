"""Takes checkpoints: at each new leader, and at each whole interval of CHECKPOINT_MINUTES.

Rows hold whole batches only, so a snapshot of them is exact without the leader, which neither waits nor computes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.advisory_locks import LockedWork, try_lock
from history.models import Checkpoint
from history.services.checkpoints.checkpoint_tables import FORMAT, read_tables
from queues.models import Workload
from scheduler.api.queue_status import Numbers, numbers_of, numbers_of_rows
from scheduler.models import Decision, Lease

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
            now: datetime = cursor.fetchone()[0]
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
    return Checkpoint(
        cluster=cluster,
        taken_at=now,
        epoch=lease.epoch if lease else 0,
        decision=decisions.values_list("id", flat=True).first() or 0,
        format=FORMAT,
        settings={name: getattr(cluster, name) for name in _SETTINGS},
        figures=_figures(cluster, now),
        workloads=Workload.objects.filter(cluster=cluster).exclude(status="Finished").count(),
        content=content,
        size_bytes=len(content),
    )


def _figures(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """The leader's own figures if they agree with the rows of this snapshot, else those of the rows.

    Only the leader knows which workloads are inadmissible and the deserved quotas, but its figures are of another
    moment: a batch may lie between.
    """
    rows = numbers_of_rows([cluster])[cluster.pk]
    live = numbers_of([cluster])[cluster.pk]
    chosen = live if live.source == "live" and agree(live, rows) else rows
    return {
        "source": chosen.source,
        "time": now.isoformat(),
        "cluster_queues": dict(chosen.cluster_queues),
        "cohorts": dict(chosen.cohorts),
    }


def agree(live: Numbers, rows: Numbers) -> bool:
    """Whether both count the same workloads and charge the same quota in each ClusterQueue."""
    return {name: _counts(entry) for name, entry in live.cluster_queues.items()} == {
        name: _counts(entry) for name, entry in rows.cluster_queues.items()
    }


def _counts(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    usage = {(cell["flavor"], cell["resource"]): (cell["nominal"], cell["used"]) for cell in entry["usage"]}
    return (*(entry[name] for name in _COMPARED), entry["pending"] + entry["inadmissible"], entry["cohort"], usage)
