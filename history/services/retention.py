"""Keeps history for a limited time, and rolls it up."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, OuterRef

from foundation.time_series import Resolution, Series, roll_up
from history.models import CountSample, DeviceSample, QuotaSample, Subject, UsageRecord, WorkloadSample
from history.services.sampling.sample import take_turn

RETENTION: Final[Mapping[Resolution, timedelta]] = {
    Resolution.RAW: timedelta(hours=6),
    Resolution.MINUTES: timedelta(days=14),
    Resolution.HOUR: timedelta(days=400),
}
_MODELS: Final = (WorkloadSample, QuotaSample, CountSample, DeviceSample)
_PEAKS: Final = frozenset({"pending_peak", "used_peak"})
_KEYS: Final = frozenset({"id", "subject", "resolution", "at"})
_AT_ONCE: Final = 10_000


def _series() -> list[Series]:
    return [
        Series(
            model._meta.db_table,
            ("subject_id",),
            {
                column.name: "max" if column.name in _PEAKS else "sum"
                for column in model._meta.concrete_fields
                if column.name not in _KEYS
            },
        )
        for model in _MODELS
    ]


def roll_up_history(now: datetime) -> None:
    """Roll whole steps up into the next resolution, then delete samples beyond their retention."""
    roll_up(_series(), RETENTION, now)


def prune_history(now: datetime) -> None:
    """Drop records of use beyond the retention, and subjects without any remaining data."""
    oldest = now - timedelta(days=settings.USAGE_RETENTION_DAYS)
    records = UsageRecord.objects.filter(ended_at__lt=oldest)
    while records.filter(pk__in=list(records.values_list("pk", flat=True)[:_AT_ONCE])).delete()[0]:
        continue
    with transaction.atomic():
        take_turn()
        unused = Subject.objects.all()
        for model in _MODELS:
            unused = unused.filter(~Exists(model.objects.filter(subject=OuterRef("pk"))))
        unused.delete()
