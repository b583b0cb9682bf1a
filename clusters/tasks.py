"""The Celery door of the push: it may be started twice, late or not at all, and tells the cluster what rows say."""

from __future__ import annotations

from typing import Any

from celery import Task, shared_task

from accounts.events import PUSH_TASK, wake_taken
from accounts.models import Cluster, ClusterMode
from clusters.push.sweep import push_pending


@shared_task(name=PUSH_TASK, bind=True, ignore_result=True)
def push_cluster(self: Task[Any, Any], cluster: str | None = None) -> None:
    """Tell the named cluster, or every cluster, what it has not heard yet: committed rows that are not pushed."""
    clusters = Cluster.objects.exclude(mode=ClusterMode.OBSERVE).order_by("pk")
    for found in clusters if cluster is None else clusters.filter(name=cluster):
        wake_taken(PUSH_TASK, found.name)
        push_pending(found)
