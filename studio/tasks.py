"""The Celery tasks of the studio: housekeeping only. Questions are tried by `manage.py studio`."""

from datetime import timedelta
from typing import Final

from celery import shared_task
from django.utils import timezone

from studio.services.kept_estimates import forget_estimates
from studio.services.leases import forget_questions

RETENTION: Final = timedelta(days=1)
ESTIMATE_RETENTION: Final = timedelta(days=30)


@shared_task(name="studio.tasks.prune_questions")
def prune_questions() -> None:
    """Delete old questions."""
    forget_questions(timezone.now() - RETENTION)


@shared_task(name="studio.tasks.prune_estimates")
def prune_estimates() -> None:
    """Delete old estimates of starts."""
    forget_estimates(timezone.now() - ESTIMATE_RETENTION)
