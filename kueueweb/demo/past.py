"""Writes the history of the days before the demo began: decisions, records of use and series."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, Final

from django.db import connection, models, transaction

from accounts.models import Cluster
from foundation.postgresql.joined_statements import JoinedStatements
from foundation.time_series import Resolution, start_of
from history.models import Count, CountSample, DeviceSample, QuotaSample, UsageRecord, WorkloadSample
from history.services.retention import roll_up_history
from history.services.sampling.decision_events import count_event, event_kinds
from history.services.sampling.gathered import Gathered, Places
from history.services.sampling.sample import subject_ids, take_turn
from kueueweb.demo.past_jobs import DAYS, past_jobs
from kueueweb.demo.past_run import EndedUse, PastRun
from kueueweb.demo.past_samples import Devices, PastSampler, devices_of, held_devices, places_of
from queues.models import WorkloadPriorityClass
from queues.services.bulk import copy_rows, json_text
from scheduler.models import Decision
from scheduler.store.batch import Batch
from scheduler.store.rows import write_log
from scheduler.store.world_reading import read_world

_STEP: Final = Resolution.MINUTES
_EPOCH: Final = 0
"""The epoch of the past's decisions, before every leader."""
_RECENT_SECONDS: Final = 14 * 3_600
_OLDER_SECONDS: Final = 3 * _STEP


def make_past(
    cluster: Cluster, fleet: str, time_scale: float, seed: int | None, now: datetime, days: int = DAYS
) -> int:
    """Write the history of the days that end now; return the number of workloads, 0 if it was written before.

    The cluster's queues and nodes must be known. All rows are written in one transaction.
    """
    if Decision.objects.filter(cluster_name=cluster.name, epoch=_EPOCH).exists():
        return 0
    until = start_of(_begin(cluster, now), _STEP)
    chance = random.Random(seed)  # noqa: S311 (the demo's jobs are no secret)
    run = PastRun(read_world(cluster, until.timestamp() - days * 86_400, holders=False), _priorities(cluster), chance)
    end = int(until.timestamp())
    looks = _looks(end, days)
    jobs = past_jobs(fleet, float(end), days, time_scale, chance)
    places, devices = places_of(run.world), devices_of(run.world)
    sampler = PastSampler(run, devices)
    steps = [
        (datetime.fromtimestamp(step, UTC), found)
        for at in run.run(jobs, looks, end)
        for found in [sampler.gather()]
        for step in looks[at]
    ]
    with transaction.atomic():
        take_turn()
        _write_decisions(cluster, run)
        _write_uses(cluster, run, devices, now)
        _write_series(cluster, steps, _events(run, places), now)
        _roll_up_anew(cluster, now)
    return len({use.workload.uid for use in run.uses})


def _roll_up_anew(cluster: Cluster, now: datetime) -> None:
    """Roll all samples up into hours. A roll-up begins at the newest hour, which may be one of live samples."""
    for model in (WorkloadSample, QuotaSample, DeviceSample, CountSample):
        model.objects.filter(subject__cluster=cluster, resolution=Resolution.HOUR).delete()
    roll_up_history(now)


def _looks(end: int, days: int) -> dict[int, range]:
    """Return the moments of the samples, each with the steps that it stands for: further apart in the older past, whose
    charts have longer steps."""
    begin, recent = end - days * 86_400, end - _RECENT_SECONDS
    older = {at: range(at, at + _OLDER_SECONDS, _STEP) for at in range(begin, recent, _OLDER_SECONDS)}
    return older | {at: range(at, at + 1) for at in range(recent, end, _STEP)}


def _begin(cluster: Cluster, now: datetime) -> datetime:
    """Return when the demo itself began to be sampled."""
    samples = WorkloadSample.objects.filter(subject__cluster=cluster).exclude(resolution=Resolution.HOUR)
    return samples.aggregate(first=models.Min("at"))["first"] or now


def _priorities(cluster: Cluster) -> Mapping[str, int]:
    return dict(WorkloadPriorityClass.objects.filter(cluster=cluster).values_list("name", "value"))


def _write_decisions(cluster: Cluster, run: PastRun) -> None:
    batch = Batch(cluster.pk, cluster.name, _EPOCH, cluster.configuration_generation, decisions=run.decisions)
    with connection.cursor() as cursor:
        statements = JoinedStatements(cursor)
        write_log(statements, batch)
        statements.send()


_USE_COLUMNS: Final = (
    "cluster_id", "workload_uid", "namespace", "workload_name", "local_queue", "cluster_queue", "submitted_by",
    "priority", "priority_class", "pods", "queued_at", "reserved_at", "started_at", "ended_at", "outcome", "reason",
    "held",
)  # fmt: skip


def _write_uses(cluster: Cluster, run: PastRun, devices: Devices, now: datetime) -> None:
    copy_rows(UsageRecord, _USE_COLUMNS, (_use_row(cluster, devices, use) for use in run.uses), now)


def _use_row(cluster: Cluster, devices: Devices, use: EndedUse) -> tuple[Any, ...]:
    workload, reserved = use.workload, _at(use.reserved_at)
    assert workload.admission is not None
    return (
        cluster.pk, workload.uid, workload.namespace, workload.name, workload.queue_name,
        workload.admission.cluster_queue, workload.submitted_by, workload.priority, use.priority_class,
        sum(each.count for each in workload.admission.pod_set_assignments), _at(use.queued_at), reserved, reserved,
        _at(use.ended_at), use.outcome, use.reason, json_text(held_amounts(devices, use)),
    )  # fmt: skip


def held_amounts(devices: Devices, use: EndedUse) -> dict[str, dict[str, float]]:
    """Return {flavor: {resource: amount}} that a workload held, with `device` for whole devices, as in records
    of use."""
    held: dict[str, dict[str, float]] = {}
    assert use.workload.admission is not None
    for pod_set in use.workload.admission.pod_set_assignments:
        for resource, amount in pod_set.resource_usage.items():
            if resource in pod_set.flavors:
                amounts = held.setdefault(pod_set.flavors[resource], {})
                amounts[resource] = amounts.get(resource, 0) + amount
    for each in held_devices(devices, use.workload):
        amounts = held.setdefault(each.flavor, {})
        amounts["device"] = round(amounts.get("device", 0) + each.share, 6)
    return held


def _events(run: PastRun, places: Places) -> Gathered:
    found = Gathered()
    for decision in run.decisions:
        workload, at = decision.workload, start_of(_at(decision.at), _STEP)
        where = (workload.namespace, workload.queue_name, decision.cluster_queue)
        for kind, detail in event_kinds(decision.action, decision.reason, decision.detail.get("waited_seconds")):
            count_event(found, places, kind, detail, at, where, 1)
    for use in run.uses:
        if use.outcome == "Finished":
            where = (use.workload.namespace, use.workload.queue_name, "")
            count_event(found, places, Count.ENDED, use.reason, start_of(_at(use.ended_at), _STEP), where, 1)
    return found


def _write_series(
    cluster: Cluster, steps: Iterable[tuple[datetime, Gathered]], events: Gathered, now: datetime
) -> None:
    steps = list(steps)
    subjects = {key for _, found in steps for key in found.subjects()} | set(events.subjects())
    ids = subject_ids(cluster.pk, subjects)
    _copy(
        WorkloadSample,
        now,
        [
            (ids[key], at, {**asdict(row), "pending_peak": row.pending})
            for at, found in steps
            for key, row in found.workloads.items()
        ],
    )
    _copy(
        QuotaSample,
        now,
        [
            (ids[key], at, {**asdict(row), "used_peak": row.used})
            for at, found in steps
            for key, row in found.quota.items()
        ],
    )
    _copy(DeviceSample, now, [(ids[key], at, asdict(row)) for at, found in steps for key, row in found.devices.items()])
    counts = [(ids[key], at, {"total": total}) for at, found in steps for key, total in found.counts.items()]
    counts += [(ids[key], at, {"total": total}) for (key, at), total in events.events.items()]
    _copy(CountSample, now, counts)


def _copy(model: type[models.Model], now: datetime, rows: list[tuple[int, datetime, dict[str, Any]]]) -> None:
    names = [*rows[0][2]] if rows else []
    columns = ("subject_id", "resolution", "at", *names)
    copy_rows(model, columns, ((subject, int(_STEP), at, *values.values()) for subject, at, values in rows), now)


def _at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
