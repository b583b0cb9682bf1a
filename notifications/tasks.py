"""The Celery doors. Each may be started twice, late or not at all: what was told is in the rows."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from accounts.models import Cluster
from notifications.services.delivery import deliver
from notifications.services.gathering import forget_notifications, gather

_RETENTION = timedelta(days=90)


@shared_task(name="notifications.tasks.notify")
def notify() -> None:
    """Find occurrences for the rules of users, and send notifications."""
    for cluster in Cluster.objects.order_by("pk"):
        gather(cluster, timezone.now())
    deliver(timezone.now())


@shared_task(name="notifications.tasks.prune_notifications")
def prune() -> None:
    """An end to old notifications."""
    forget_notifications(timezone.now() - _RETENTION)
