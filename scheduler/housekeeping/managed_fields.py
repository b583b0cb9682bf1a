"""Deletes the field managers of deleted objects."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Any, Final

from accounts.models import ManagedFields
from queues.kinds import KINDS
from queues.models import Job, Workload

_AGE: Final = timedelta(hours=1)
"""Younger rows may be of an object whose transaction is under way."""
_AT_ONCE: Final = 1_000


def forget_lost_managers(now: datetime) -> None:
    """Delete the rows of objects that were not deleted through Kubernetes' wire format."""
    last = 0
    while rows := list(ManagedFields.objects.filter(pk__gt=last, applied_at__lt=now - _AGE).order_by("pk")[:_AT_ONCE]):
        last = rows[-1].pk
        by_kind: dict[str, list[ManagedFields]] = defaultdict(list)
        for row in rows:
            by_kind[row.kind].append(row)
        lost = [row.pk for kind, found in by_kind.items() for row in _lost(kind, found)]
        ManagedFields.objects.filter(pk__in=lost).delete()


def _lost(kind: str, rows: list[ManagedFields]) -> list[ManagedFields]:
    """Return the rows of a kind whose object no longer exists. Objects are found by their names, which have an
    index."""
    declared = KINDS.get(kind)
    model: Any = declared.model if declared is not None else Workload if kind == "Workload" else Job
    there = model.objects.filter(name__in={row.name for row in rows}, cluster__in={row.cluster_id for row in rows})
    uids = set(there.values_list("uid", flat=True))
    return [row for row in rows if row.uid not in uids]
