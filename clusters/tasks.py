"""Celery tasks of the push and the auditor. Each may be started twice, late or not at all."""

from __future__ import annotations

import logging
from typing import Any

from celery import Task, shared_task

from accounts.events import PUSH_TASK, wake_taken
from accounts.models import MIRRORED_MODES, Cluster
from clusters.audit import audit_and_heal, audited_clusters
from clusters.client import ClusterError
from clusters.connection import client_for
from clusters.push.sweep import push_pending

_log = logging.getLogger(__name__)


@shared_task(name=PUSH_TASK, bind=True, ignore_result=True)
def push_cluster(self: Task[Any, Any], cluster: str | None = None) -> None:
    """Push to the named cluster, or to every cluster, the committed rows that are not pushed yet."""
    clusters = Cluster.objects.exclude(mode__in=MIRRORED_MODES).order_by("pk")
    for found in clusters if cluster is None else clusters.filter(name=cluster):
        wake_taken(PUSH_TASK, found.name)
        push_pending(found)


@shared_task(name="clusters.tasks.audit_state", ignore_result=True)
def audit_state() -> None:
    """Audit every cluster, and repair what can be repaired safely."""
    for cluster in audited_clusters():
        try:
            audit_and_heal(cluster, client_for(cluster))
        except ClusterError as error:
            _log.warning("Cluster %s is not audited: its pods can't be listed: %s", cluster.name, error)
