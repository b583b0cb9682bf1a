"""The Celery tasks of history. Each may be started twice, late or not at all: then there is a gap, or the next run
makes up for it."""

from celery import shared_task
from django.utils import timezone

from accounts.models import Cluster
from history.services.retention import prune_history, roll_up_history
from history.services.sampling.sample import sample


@shared_task(name="history.tasks.sample_history")
def sample_history() -> None:
    """Note how queues, workloads and devices are."""
    for cluster in Cluster.objects.order_by("pk"):
        sample(cluster, timezone.now())


@shared_task(name="history.tasks.roll_up_history")
def roll_up() -> None:
    """Roll samples up to coarser steps, and delete old ones."""
    roll_up_history(timezone.now())


@shared_task(name="history.tasks.prune_history")
def prune() -> None:
    """Delete records beyond their retention."""
    prune_history(timezone.now())
