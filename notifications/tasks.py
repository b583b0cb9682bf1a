"""The Celery tasks of notifications. Each may be started twice, late or not at all: the rows hold what has been
reported."""

from datetime import timedelta

from celery import shared_task
from django.utils import timezone

from accounts.models import Cluster
from foundation.chores import runs_while
from notifications.models import DeliveryState
from notifications.services.delivery import deliver
from notifications.services.gathering import forget_notifications, gather

_RETENTION = timedelta(days=90)


runs_while(
    "notifications.tasks.notify",
    "SELECT FROM notifications_notificationrule UNION ALL SELECT FROM notifications_delivery WHERE state = %s",
    DeliveryState.PENDING.value,
    seconds=10.0,
)


@shared_task(name="notifications.tasks.notify")
def notify() -> None:
    """Find occurrences for the rules of users, and send notifications."""
    for cluster in Cluster.objects.order_by("pk"):
        gather(cluster, timezone.now())
    deliver(timezone.now())


@shared_task(name="notifications.tasks.prune_notifications")
def prune() -> None:
    """Delete old notifications."""
    forget_notifications(timezone.now() - _RETENTION)
