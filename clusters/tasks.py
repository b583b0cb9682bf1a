"""Celery tasks of the push and the auditor. Each may be started twice, late or not at all."""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from functools import partial
from typing import Any, Final

from celery import Task, shared_task

from accounts.models import MIRRORED_MODES, Cluster
from clusters.api_errors import ClusterError
from clusters.audit.auditor import audit_and_heal, audited_clusters
from clusters.connection import client_for, writing_client_for
from clusters.multikueue.controller import follow_multikueue, managers
from clusters.pace import Pace
from clusters.push.installation import identity
from clusters.push.jobs.deleted_pods import release_deleted_pods
from clusters.push.kueues_lease import release
from clusters.push.lost_pods import delete_lost_pods
from clusters.push.sweep import push_pending
from clusters.push.sweep_lock import sweep_lock
from clusters.request_threads import processor_seconds
from foundation.chores import runs_while
from foundation.heartbeat import Role, note_recovery
from foundation.wake_ups import FORCED_DELETION_TASK, PUSH_TASK, RELEASE_TASK, request_push, wake_taken
from scheduling.state.second_pass import MULTIKUEUE

_log = logging.getLogger(__name__)

_SWEEP_SECONDS: Final = 0.25
_MAX_SWEEP_SECONDS: Final = 0.75
"""The time from sweep to sweep of one process: the least, and the most, after sweeps that take much processor time."""
_paces: Final = defaultdict[int, Pace](partial(Pace, _SWEEP_SECONDS, longest=_MAX_SWEEP_SECONDS))


@shared_task(name=PUSH_TASK, bind=True, ignore_result=True)
def push_cluster(self: Task[Any, Any], cluster: str | None = None) -> None:
    """Push to the named cluster the committed rows that are not pushed yet; without a name, to every cluster.

    Without a name, each cluster gets a task of its own, so that an unresponsive one does not delay the others. If
    another scheduler decides again in the named cluster, the lease that kept Kueue waiting is released.
    """
    clusters = Cluster.objects.order_by("pk")
    named = list(clusters if cluster is None else clusters.filter(name=cluster))
    due = [found for found in named if found.mode not in MIRRORED_MODES]
    if cluster is not None and not due:
        for found in named:
            _give_way(found)
    if len(due) > 1:
        for found in due:
            request_push(found.name)
        return
    for found in due:
        _keep_sweeps_apart(found)
        wake_taken(PUSH_TASK, found.name)
        before = processor_seconds()
        push_pending(found)
        _paces[found.pk].spent(processor_seconds() - before)


def _keep_sweeps_apart(cluster: Cluster) -> None:
    """Wait until some time after this process began the cluster's sweep before. Requests made meanwhile collapse."""
    now = time.monotonic()
    time.sleep(_paces[cluster.pk].next(now) - now)


def _give_way(cluster: Cluster) -> None:
    try:
        with sweep_lock(cluster) as mine:
            if mine:
                note_recovery(Role.CLUSTER_PUSH, cluster.name)
                release(cluster, writing_client_for(cluster), identity())
    except ClusterError as error:
        _log.warning("Cluster %s: returning Kueue's lease is delayed: %s", cluster.name, error)


@shared_task(name=RELEASE_TASK, ignore_result=True)
def release_pods(cluster: str, pods: list[tuple[str, str]]) -> None:
    """Remove Kueue's finalizer from these deleted pods, which have no row."""
    found = Cluster.objects.filter(name=cluster).first()
    if found is None:
        return
    try:
        release_deleted_pods(found, writing_client_for(found), pods)
    except ClusterError as error:
        _log.warning("Deleted pods of cluster %s keep Kueue's finalizer for now: %s", cluster, error)


@shared_task(name=FORCED_DELETION_TASK, ignore_result=True)
def force_deletion(cluster: str, pods: list[tuple[str, str]]) -> None:
    """Delete these pods, which no kubelet ends, where Kueue's gate FailureRecoveryPolicy is on."""
    found = Cluster.objects.filter(name=cluster).first()
    if found is None:
        return
    try:
        delete_lost_pods(found, writing_client_for(found), pods, time.time)
    except ClusterError as error:
        _log.warning("Pods of lost nodes of cluster %s stay for now: %s", cluster, error)


runs_while(
    "clusters.tasks.follow_managers",
    "SELECT FROM queues_admissioncheck WHERE controller_name = %s UNION ALL SELECT FROM queues_multikueuecluster",
    MULTIKUEUE,
)


@shared_task(name="clusters.tasks.follow_managers", ignore_result=True)
def follow_managers() -> None:
    """Start one task for each manager of MultiKueue, which updates its workloads that run in other clusters."""
    for name in managers():
        follow_manager.delay(name)


@shared_task(name="clusters.tasks.follow_manager", ignore_result=True)
def follow_manager(name: str) -> None:
    """Update the workloads of one manager, so that one with an unresponsive API server does not delay the others."""
    cluster = Cluster.objects.filter(name=name).first()
    if cluster is None:
        return
    try:
        follow_multikueue(cluster)
    except ClusterError as error:
        _log.warning("MultiKueue of cluster %s continues later: %s", name, error)


@shared_task(name="clusters.tasks.audit_state", ignore_result=True)
def audit_state() -> None:
    """Audit every cluster, and make the safe repairs."""
    for cluster in audited_clusters():
        try:
            audit_and_heal(cluster, client_for(cluster))
        except ClusterError as error:
            _log.warning("Cluster %s is not audited: its pods can't be listed: %s", cluster.name, error)
