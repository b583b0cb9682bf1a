"""Takes checkpoints: at each new leader, and at each whole interval of CHECKPOINT_MINUTES.

Rows hold whole batches only, so a snapshot of them is exact without the leader, which neither waits nor computes.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import InterfaceError, OperationalError, connection, transaction

from accounts.models import Cluster
from foundation.advisory_locks import LockedWork, try_lock
from history.models import Checkpoint
from history.services.checkpoints.change_recording import (
    TooManyChanges,
    delete_recorded_changes,
    read_changes,
    recorded_since,
)
from history.services.checkpoints.checkpoint_tables import FORMAT, TooMuchContent, read_tables
from queues.models import Workload
from scheduler.api.queue_status import NO_FIGURES
from scheduler.live.published import read_published
from scheduler.live.publisher import numbers
from scheduler.live.shapes import LiveData
from scheduler.models import Decision, Lease
from scheduler.store.world_reading import read_whole_world

DUE: Final = """
SELECT cluster.id FROM accounts_cluster AS cluster
    LEFT JOIN scheduler_lease AS lease ON lease.cluster_id = cluster.id
    LEFT JOIN LATERAL (
        SELECT taken_at, epoch FROM history_checkpoint
        WHERE cluster_id = cluster.id AND taken_at <= clock_timestamp() ORDER BY taken_at DESC LIMIT 1
    ) AS newest ON true
WHERE newest.taken_at IS NULL OR newest.taken_at < now() - interval '1 minute' AND (
    newest.epoch < lease.epoch OR newest.taken_at < date_bin(make_interval(mins => %s::int), now(), 'epoch'))
ORDER BY newest.taken_at NULLS FIRST, cluster.id
"""
"""The clusters whose next checkpoint is due, by the interval in minutes, the one that waits longest first. A leader
that fails again and again causes one a minute, and one from the future, before the clock was set back, does not count.
"""
_IS_DUE: Final = "SELECT EXISTS (SELECT FROM (FOUND) AS due WHERE due.id = %s)".replace("FOUND", DUE)
_SETTINGS: Final = ("configuration", "device_plugin_configuration", "placement", "mode")
_COMPARED: Final = ("reserving", "admitted")
_WAITING: Final = ("pending", "inadmissible")
_PAUSE_SECONDS: Final = 300.0
"""After a failure, this process skips a cluster for this time."""

_log = logging.getLogger(__name__)
_failed_at: Final[dict[int, float]] = {}
"""By cluster, the time of its last failure by the monotonic clock."""


def take_due_checkpoints(minutes: int) -> int:
    """Take the checkpoints that are due; return their number. One worker at a time takes the checkpoints of a cluster.
    If one fails, the other clusters still get theirs."""
    with connection.cursor() as cursor:
        cursor.execute(DUE, [str(minutes)])
        due = [id_ for (id_,) in cursor.fetchall()]
    return sum(_taken(id_, minutes) for id_ in due if not _failed_lately(id_))


def _failed_lately(cluster_id: int) -> bool:
    return time.monotonic() - _failed_at.get(cluster_id, -_PAUSE_SECONDS) < _PAUSE_SECONDS


def _taken(cluster_id: int, minutes: int) -> bool:
    with try_lock(LockedWork.CHECKPOINTS, cluster_id) as mine:
        cluster = Cluster.objects.filter(pk=cluster_id).first() if mine and _is_due(cluster_id, minutes) else None
        if cluster is None:
            return False
        try:
            take_checkpoint(cluster)
        except (OperationalError, InterfaceError):
            raise
        except TooMuchContent as error:
            _log.error("cluster %s: no checkpoint: %s", cluster.name, error)
            _failed_at[cluster_id] = time.monotonic()
            return False
        except Exception:  # noqa: BLE001 (whatever it is, the other clusters have theirs)
            _log.exception("cluster %s: no checkpoint; the next attempt is in %d s", cluster.name, _PAUSE_SECONDS)
            _failed_at[cluster_id] = time.monotonic()
            return False
        return True


def _is_due(cluster_id: int, minutes: int) -> bool:
    """Return whether no other worker took it between the search and the lock."""
    with connection.cursor() as cursor:
        cursor.execute(_IS_DUE, [str(minutes), cluster_id])
        return bool(cursor.fetchone()[0])


def take_checkpoint(cluster: Cluster) -> Checkpoint:
    """Store the rows of a cluster as they are now. Raises TooMuchContent."""
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
    delete_recorded_changes()
    _log.info(
        "cluster %s: checkpoint of %d workloads, %d KiB, in %.2f s",
        cluster.name, found.workloads, found.size_bytes // 1024, time.perf_counter() - started,
    )  # fmt: skip
    return found


def _snapshot(cluster: Cluster, now: datetime) -> Checkpoint:
    lease = Lease.objects.filter(cluster=cluster).first()
    decisions = Decision.objects.filter(cluster_name=cluster.name).order_by("-decided_at", "-id")
    content = read_tables(cluster.pk, now)
    changes_since, changes = _changes(cluster, now)
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
        changes=changes,
        changes_since=changes_since,
        size_bytes=len(content),
    )


def _changes(cluster: Cluster, now: datetime) -> tuple[datetime | None, bytes | None]:
    """Return the recorded changes since the last checkpoint, and the moment since which they have no gap."""
    since = recorded_since()
    if since is None:
        return None, None
    earlier = Checkpoint.objects.filter(cluster=cluster, taken_at__lte=now).order_by("-taken_at")
    last = earlier.values_list("taken_at", flat=True).first()
    since = max(since, last) if last else since
    try:
        with transaction.atomic():  # stopping COPY in its midst aborts the transaction, in which the rest is read
            return since, read_changes(since)
    except TooManyChanges:
        _log.warning("cluster %s: too many changes since %s to keep them with the checkpoint", cluster.name, since)
        return None, None


def _figures(cluster: Cluster, now: datetime) -> tuple[str, Mapping[str, Any]]:
    """Return the figures of a World of the rows. Those of rows that no World takes, such as damaged ones, are empty."""
    try:
        with transaction.atomic():
            data = numbers(*read_whole_world(cluster, now.timestamp()))
    except OperationalError:
        raise
    except Exception:  # noqa: BLE001 (whatever it is, the rows can be kept)
        _log.exception("cluster %s: a checkpoint without figures", cluster.name)
        return NO_FIGURES, {"totals": {}, "cluster_queues": {}, "cohorts": {}, "devices": {}}
    published = read_published(cluster)
    if published is None or not agree(published.data["cluster_queues"], data["cluster_queues"]):
        return "rows", data
    return "live", _with_inadmissible(data, published.data["cluster_queues"])


def _with_inadmissible(data: LiveData, live: Mapping[str, Any]) -> Mapping[str, Any]:
    """Take from the leader which of the workloads that wait are inadmissible: only it knows."""
    queues = {
        name: {**entry, **{part: live[name][part] for part in _WAITING}}
        for name, entry in data["cluster_queues"].items()
    }
    waiting = {part: sum(entry[part] for entry in queues.values()) for part in _WAITING}
    return {**data, "cluster_queues": queues, "totals": {**data["totals"], **waiting}}


def agree(live: Mapping[str, Any], queues: Mapping[str, Any]) -> bool:
    """Return whether live figures count the same workloads and charge the same quota in each of these ClusterQueues.
    The leader's figures may be from another moment: a batch may have been saved in between."""
    return {name: _counts(entry) for name, entry in live.items()} == {
        name: _counts(entry) for name, entry in queues.items()
    }


def _counts(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    usage = {(cell["flavor"], cell["resource"]): (cell["nominal"], cell["used"]) for cell in entry["usage"]}
    return (*(entry[name] for name in _COMPARED), sum(entry[name] for name in _WAITING), entry["cohort"], usage)
