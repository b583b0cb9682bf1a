"""One sampling: gathers, then stores. A second sampling within the same step replaces the first."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final

from django.db import connection, models, transaction

from accounts.models import Cluster
from foundation.time_series import Resolution, start_of
from history.models import CountSample, DeviceSample, QuotaSample, Scope, Subject, WorkloadSample
from history.services.sampling.decision_events import gather_events
from history.services.sampling.devices import gather_devices
from history.services.sampling.gathered import Gathered, Places, SubjectKey
from history.services.sampling.quota import gather_quota
from history.services.sampling.workload_samples import gather_workloads
from queues.models import LocalQueue
from scheduler.live.published import read_published

_LATE: Final = timedelta(minutes=1)
"""A transaction may become visible this much later than the times of its decisions."""
_LOOK_BACK: Final = timedelta(minutes=10)
_LOCK: Final = 0x6B756575
"""The key of PostgreSQL's advisory lock that makes sampling and pruning take turns."""


def sample(cluster: Cluster, now: datetime) -> bool:
    """Store samples of the present state; return False, and leave a gap, if no scheduler publishes numbers."""
    published = read_published(cluster)
    if published is None:
        return False
    local_queues = LocalQueue.objects.filter(cluster=cluster).values_list("namespace", "name", "cluster_queue_name")
    places = Places(
        published.data["cluster_queues"],
        published.data["cohorts"],
        {(namespace, name): queue for namespace, name, queue in local_queues},
    )
    found = Gathered()
    with transaction.atomic():
        take_turn()
        gather_workloads(cluster.pk, places, found)
        gather_quota(cluster.pk, places, found)
        gather_devices(cluster, now, places, found)
        gather_events(cluster, _since(cluster.pk, now), places, found)
        _store(cluster.pk, found, start_of(now, Resolution.RAW))
    return True


def take_turn() -> None:
    """Wait for other writers of subjects, and lock them out until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def _since(cluster_id: int, now: datetime) -> datetime:
    """Return the time from which events are counted: the last minute again, or longer, back to the last sampling."""
    whole = Subject.objects.filter(cluster_id=cluster_id, scope=Scope.CLUSTER, kind="").values("pk")
    samples = WorkloadSample.objects.filter(subject__in=whole, resolution=Resolution.RAW, at__gte=now - _LOOK_BACK)
    last = samples.aggregate(last=models.Max("at"))["last"] or now
    return start_of(min(last, now - _LATE), Resolution.RAW)


def _store(cluster_id: int, found: Gathered, at: datetime) -> None:
    ids = subject_ids(cluster_id, set(found.subjects()))
    _write(
        WorkloadSample,
        (
            WorkloadSample(subject_id=ids[key], at=at, **asdict(row), pending_peak=row.pending)
            for key, row in found.workloads.items()
        ),
    )
    _write(
        QuotaSample,
        (
            QuotaSample(subject_id=ids[key], at=at, **asdict(row), used_peak=row.used)
            for key, row in found.quota.items()
        ),
    )
    _write(
        DeviceSample, (DeviceSample(subject_id=ids[key], at=at, **asdict(row)) for key, row in found.devices.items())
    )
    counts = ((key, at, total) for key, total in found.counts.items())
    events = ((key, when, total) for (key, when), total in found.events.items())
    _write(
        CountSample,
        (CountSample(subject_id=ids[key], at=when, total=total) for key, when, total in chain(counts, events)),
    )


def _write(model: Any, rows: Iterable[models.Model]) -> None:
    keys = {"id", "subject", "resolution", "at"}
    values = [column.name for column in model._meta.concrete_fields if column.name not in keys]
    model.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["subject", "resolution", "at"], update_fields=values
    )


def subject_ids(cluster_id: int, wanted: Collection[SubjectKey]) -> Mapping[SubjectKey, int]:
    """Return the row ids of all subjects of the cluster; those of `wanted` that have no row get one."""
    known = _known(cluster_id)
    new = [key for key in wanted if key not in known]
    if not new:
        return known
    Subject.objects.bulk_create((Subject(cluster_id=cluster_id, **key._asdict()) for key in new), ignore_conflicts=True)
    return _known(cluster_id)


def _known(cluster_id: int) -> dict[SubjectKey, int]:
    rows = Subject.objects.filter(cluster_id=cluster_id).values_list("pk", *SubjectKey._fields)
    return {SubjectKey(Scope(scope), *key): pk for pk, scope, *key in rows}
