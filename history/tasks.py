"""The Celery tasks of history. Each may be started twice, late or not at all: then there is a gap, or the next run
compensates for it.
"""

import logging

from celery import shared_task
from django.conf import settings
from django.db import DatabaseError
from django.utils import timezone

from accounts.models import Cluster
from foundation.advisory_locks import LockedWork, try_lock
from foundation.chores import runs_while
from history.services.checkpoints.change_recording import delete_recorded_changes, record_changes
from history.services.checkpoints.checkpoint_taking import DUE, take_due_checkpoints
from history.services.checkpoints.checkpoint_thinning import thin_checkpoints
from history.services.past_use import PERIOD_SECONDS, RANKED, note_past_use
from history.services.retention import prune_history, roll_up_history
from history.services.sampling.sample import sample

_log = logging.getLogger(__name__)


@shared_task(name="history.tasks.sample_history")
def sample_history() -> None:
    """Store samples of queues, workloads and devices."""
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
    thin_checkpoints(timezone.now())
    if not settings.CHECKPOINT_MINUTES:  # no checkpoint takes the changes over, and no other task turns it off
        _turn_recording(False)
    delete_recorded_changes()


runs_while("history.tasks.note_past_use", RANKED, seconds=PERIOD_SECONDS)


@shared_task(name="history.tasks.note_past_use")
def note_use() -> None:
    """Store the past use of each LocalQueue, for the order of queues by fair share; one worker at a time."""
    with try_lock(LockedWork.PAST_USE) as mine:
        for cluster in Cluster.objects.order_by("pk") if mine else ():
            note_past_use(cluster, timezone.now())


if settings.CHECKPOINT_MINUTES:
    runs_while("history.tasks.take_checkpoints", DUE, str(settings.CHECKPOINT_MINUTES), seconds=15)


@shared_task(name="history.tasks.take_checkpoints")
def take_checkpoints() -> None:
    """Keep the rows of the clusters whose next checkpoint is due."""
    if settings.CHECKPOINT_MINUTES:
        _turn_recording(settings.CHECKPOINT_CHANGES)
        take_due_checkpoints(settings.CHECKPOINT_MINUTES)


def _turn_recording(on: bool) -> None:
    try:
        record_changes(on)
    except DatabaseError as error:  # a table is locked, or belongs to another account: the rest is done anyway
        _log.warning("cannot turn the recording of changes on or off: %s", error)
