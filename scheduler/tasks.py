"""Celery tasks. Each may be started twice, late or not at all, because its work follows from rows."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Collection
from random import shuffle
from typing import Any, Final

from celery import shared_task
from celery.concurrency.solo import TaskPool as SoloPool
from celery.signals import celeryd_after_setup, worker_ready, worker_shutdown
from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from django.utils import timezone

from accounts.cluster_versions import cluster_versions
from accounts.models import MIRRORED_MODES, Cluster
from accounts.services.audit import MAX_LINES_AT_ONCE, forget_audit, join_left_behind, write_unsent
from accounts.services.kept_answers import forget_answers
from foundation.advisory_locks import LockedWork, try_lock, try_one_of
from foundation.chores import runs_while
from foundation.garbage_collection import calm_the_collector
from foundation.heartbeat import HEARTBEAT_SECONDS, Role, note_progress, touch_file, touch_heartbeat
from foundation.outages import patiently
from foundation.wake_ups import SCHEDULE_TASK, scheduled_cluster, wake_scheduler, wake_taken
from gpus.services import telemetry
from queues.services.admission_checks import WEBHOOK_CONTROLLER
from queues.services.flows.flow_deletion import COMPLETED, delete_completed_flows
from queues.services.flows.start_gates import met_query, open_start_gates
from scheduler.checks.webhook import ask_pending
from scheduler.housekeeping.managed_fields import forget_lost_managers
from scheduler.housekeeping.metric_counts import join_counts
from scheduler.housekeeping.node_quotas import follow_nodes
from scheduler.housekeeping.partitions import maintain_partitions
from scheduler.housekeeping.retention import delete_expired_workloads, drop_old_history
from scheduler.housekeeping.telemetry import sample_clusters
from scheduler.leader.cycle_thread import CycleThread
from scheduler.leader.engine import Engine
from scheduler.leader.recovery import SchedulingFailed
from scheduler.leader.schedulings import Schedulings
from scheduler.store.lease import Leadership, LeaseLost

_log = logging.getLogger(__name__)

TICK_SECONDS: Final = 1.0
_CHECKING_AT_ONCE: Final = 2

leadership = Leadership()
_threads: Final[list[CycleThread]] = []
"""The thread of the cycles, in a worker whose pool has threads: it also does other work, or could run two cycles."""


@celeryd_after_setup.connect
def stand_by(sender: str, instance: Any, **_: Any) -> None:
    """Wait until the previous leader has ended. A scheduler worker consumes no tasks before it leads."""
    cluster = scheduled_cluster(instance.app.amqp.queues.consume_from)
    if cluster is not None:
        if cluster and cluster not in settings.OWN_SCHEDULERS:
            raise SystemExit(
                f"OWN_SCHEDULERS: Required value {cluster!r}: this worker's queue belongs to that cluster."
            )
        leadership.cluster = cluster
        _log.info("%s stands by", sender)
        # A process that does not lead would consume wake-ups meant for the leader.
        patiently(lambda: leadership.wait(_sleep_while_standing_by))
        _log.info("%s leads", sender)
        if not issubclass(instance.pool_cls, SoloPool):
            _threads.append(CycleThread(_Turns().run))


def _sleep_while_standing_by(seconds: float) -> None:
    touch_file()
    time.sleep(seconds)


@worker_ready.connect
def tick_while_leading(sender: Any, **_: Any) -> None:
    """Run the timers in the loop in which the leader's tasks run. This takes no message, and no timers run while a task
    hangs."""
    if leadership.renew():
        sender.timer.call_repeatedly(TICK_SECONDS, tick)


def tick() -> None:
    """Run the timers of all clusters that this process leads, and find what a lost wake-up left behind."""
    close_old_connections()
    run_cycles()


class _Turns:
    """The runs of a thread. It sends its own heartbeat: the worker's loop turns even if a run hangs."""

    def __init__(self) -> None:
        self._beat_at = float("-inf")

    def run(self, cluster: str | None) -> None:
        """One run."""
        close_old_connections()
        _run(cluster)
        if time.monotonic() - self._beat_at >= HEARTBEAT_SECONDS:
            self._beat_at = time.monotonic()
            touch_heartbeat(Role.SCHEDULER, leadership.cluster)


@worker_shutdown.connect
def step_down(**_: Any) -> None:
    """Release leadership on an orderly shutdown."""
    while _threads:
        _threads.pop().stop()
    leadership.release()


@shared_task(name=SCHEDULE_TASK)
def run_cycles(cluster: str | None = None) -> None:
    """Schedule the cluster that a wake-up names, or all clusters that this process leads, until nothing more happens or
    a second has passed. A cluster that another scheduler runs is only followed and shown. In a worker with threads, the
    thread of the cycles does this, and the task does not wait for it."""
    for thread in _threads:
        thread.request(cluster)
        return
    _run(cluster)


def _run(cluster: str | None) -> None:
    """Schedule the cluster, or all.

    A worker that lost its lease exits: its state is outdated, and the new leader has loaded everything.
    """
    try:
        if not leadership.acquire():
            return
        for found in _named(cluster):
            if cluster is not None:  # the wake-up of a cluster without changes is still on its way
                wake_taken(SCHEDULE_TASK, found.name)
            if _schedulings.run(found):
                wake_scheduler(found.name)
        note_progress(_schedulings.is_well)
    except (LeaseLost, SchedulingFailed) as reason:
        _log.error("%s; this worker exits", reason)
        os.kill(os.getpid(), signal.SIGTERM)
    except DatabaseError as error:
        # The World may differ from the rows now, so load everything again under a new epoch.
        _log.error("the database failed during a run: %s", error)
        _schedulings.drop()
        close_old_connections()


def _named(name: str | None) -> list[Cluster]:
    """List the clusters that this process leads, or only the named one."""
    own = leadership.cluster
    return [
        found
        for found in _clusters.all()
        if (found.name == own if own else found.name not in settings.OWN_SCHEDULERS) and name in (None, found.name)
    ]


class _Clusters:
    """The rows of all clusters, read again when one has changed: a tick requests them each second."""

    def __init__(self) -> None:
        self._versions: dict[int, str] = {}
        self._rows: list[Cluster] = []

    def all(self) -> list[Cluster]:
        """Return the variants in the order of their keys."""
        versions = cluster_versions()
        if versions != self._versions:
            self._versions, self._rows = versions, list(Cluster.objects.order_by("pk"))
        return self._rows


_clusters = _Clusters()


def _scheduled() -> list[Cluster]:
    """Return the clusters in which kueueweb decides."""
    return list(Cluster.objects.exclude(mode__in=MIRRORED_MODES).order_by("pk"))


def _start(kind: type[Engine], cluster: Cluster, aside: Collection[str]) -> Engine:
    with leadership.loading():
        engine = kind(cluster, leadership.holder, aside=aside, progress=leadership.renew)
    calm_the_collector()
    return engine


_schedulings = Schedulings(_start)


runs_while(
    "scheduler.tasks.ask_webhook_checks",
    "SELECT FROM queues_admissioncheck WHERE controller_name = %s",
    WEBHOOK_CONTROLLER,
)


@shared_task(name="scheduler.tasks.ask_webhook_checks")
def ask_webhook_checks() -> None:
    """Ask the URLs of admission checks that wait for an answer.

    One worker asks at a time in each cluster, and two in total. URLs that do not answer therefore never block all
    threads of the push worker and, because a cluster's turn is short, never another cluster.
    """
    with try_one_of(LockedWork.WEBHOOK_CHECKS, _CHECKING_AT_ONCE) as mine:
        clusters = _scheduled() if mine else []
        shuffle(clusters)
        for found in clusters:
            with try_lock(LockedWork.WEBHOOK_CHECKS, found.pk) as its_turn:
                if its_turn:
                    ask_pending(found)


@shared_task(name="scheduler.tasks.join_metric_counts")
def join_metric_counts() -> None:
    """Merge rows of metric counts."""
    join_counts()


runs_while(
    "scheduler.tasks.run_flows",
    f"SELECT FROM ({met_query()}) AS met UNION ALL SELECT FROM ({COMPLETED}) AS completed",  # noqa: S608 (constants)
)


@shared_task(name="scheduler.tasks.run_flows")
def run_flows() -> None:
    """Let workloads start whose earlier jobs have succeeded, and delete the jobs of flows that have."""
    for found in _scheduled():
        open_start_gates(found, timezone.now(), later=True)
        delete_completed_flows(found, timezone.now())


runs_while(
    "scheduler.tasks.apply_retention",
    "SELECT FROM accounts_cluster WHERE configuration -> 'objectRetentionPolicies' IS NOT NULL",
)


@shared_task(name="scheduler.tasks.apply_retention")
def apply_retention() -> None:
    """Delete workloads whose retention has ended."""
    for found in _scheduled():
        open_start_gates(found, timezone.now())  # an earlier job counts although it is deleted now
        delete_expired_workloads(found, timezone.now())


runs_while(
    "scheduler.tasks.follow_nodes",
    "SELECT FROM queues_clusterqueue WHERE node_quotas <> '[]' UNION ALL"
    " SELECT FROM queues_cohort WHERE node_quotas <> '[]'",
    seconds=5.0,
)


@shared_task(name="scheduler.tasks.follow_nodes")
def follow_all_nodes() -> None:
    """Compute the quotas that follow nodes."""
    for found in _scheduled():
        follow_nodes(found)


runs_while(
    "scheduler.tasks.sample_telemetry", "SELECT FROM accounts_cluster WHERE telemetry_urls <> '[]'", seconds=15.0
)


@shared_task(name="scheduler.tasks.sample_telemetry")
def sample_telemetry() -> None:
    """Sample the use of devices and containers; one worker at a time."""
    with try_lock(LockedWork.TELEMETRY) as mine:
        if mine:
            sample_clusters(list(Cluster.objects.exclude(telemetry_urls=[])), timezone.now())


@shared_task(name="scheduler.tasks.roll_up_telemetry")
def roll_up_telemetry() -> None:
    """Aggregate samples to means and peaks, and delete old ones."""
    telemetry.roll_up_telemetry(timezone.now())


@shared_task(name="scheduler.tasks.maintain")
def maintain() -> None:
    """Create the decision log's partitions for coming months, and drop those beyond the retention period."""
    with connection.cursor() as cursor:
        maintain_partitions(cursor)
    drop_old_history(timezone.now())
    forget_answers(timezone.now())
    forget_lost_managers(timezone.now())
    forget_audit(settings.AUDIT_RETENTION_DAYS)


runs_while("scheduler.tasks.stream_audit", "SELECT FROM accounts_auditunsent UNION ALL SELECT FROM accounts_auditpart")


@shared_task(name="scheduler.tasks.stream_audit")
def stream_audit() -> None:
    """Write new audit entries to the audit log."""
    join_left_behind()
    while write_unsent() == MAX_LINES_AT_ONCE:
        continue
