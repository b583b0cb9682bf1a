"""Occurrences that rules name: events, and states that last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db.models import Count, F, Min, Q, QuerySet
from django.db.models.functions import Coalesce

from accounts.models import Cluster
from accounts.services.access import Access
from gpus.models import Device
from notifications.models import Event, NotificationRule
from queues.models import Workload
from queues.services.visibility import Reader, visibility_of
from scheduler.models import Lease
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

DEFAULT_MINUTES: Final[Mapping[Event, int]] = {
    Event.WORKLOAD_WAITS: 30,
    Event.QUEUE_STARVED: 30,
    Event.SCHEDULER_SILENT: 1,
    Event.DEVICES_IDLE: 30,
    Event.QUOTA_USED: 10,
    Event.SHARE_BELOW: 30,
}
MAX_AT_ONCE: Final = 100
"""The occurrences of one rule in a pass; the others follow in the next."""
_FAILURES: Final = (FinishedReason.FAILED, FinishedReason.FAILED_TO_START)


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One occurrence to report. `key` identifies it among those of the rule."""

    key: str
    title: str
    message: str
    path: str


@dataclass(frozen=True, slots=True)
class Look:
    """One look at a cluster for one rule: the events after `since`, and the states at `now`."""

    cluster: Cluster
    rule: NotificationRule
    access: Access
    since: datetime
    now: datetime

    @property
    def minutes(self) -> int:
        return self.rule.minutes or DEFAULT_MINUTES[Event(self.rule.event)]

    @property
    def threshold(self) -> int:
        """Return the percentage of a rule about a figure."""
        return self.rule.threshold or 0

    @property
    def cutoff(self) -> datetime:
        """Return the latest time at which a state may have begun to have lasted for the minutes of the rule."""
        return self.now - timedelta(minutes=self.minutes)

    def own_workloads(self) -> QuerySet[Workload]:
        """Return the user's workloads, in namespaces that the user may still see, and of the rule's ClusterQueue if it
        names one."""
        found = Workload.objects.filter(
            cluster=self.cluster, submitted_by=self.rule.user.get_username(), parent_name=""
        )
        namespaces = self.access.visible_namespaces()
        found = found if namespaces is None else found.filter(namespace__in=namespaces)
        return found.filter(cluster_queue_name=self.rule.cluster_queue) if self.rule.cluster_queue else found


def _started(look: Look) -> Iterator[Occurrence]:
    for found in look.own_workloads().filter(admitted_at__gt=look.since).order_by("admitted_at")[:MAX_AT_ONCE]:
        where = f"in {found.cluster_queue_name}" if found.cluster_queue_name else ""
        yield _of_workload(found, found.admitted_at, "has started", f"It was admitted {where}".strip() + ".")


def _preempted(look: Look) -> Iterator[Occurrence]:
    reader = Reader(look.access, look.cluster)
    found = look.own_workloads().filter(last_preempted_at__gt=look.since).order_by("last_preempted_at")
    for workload in found[:MAX_AT_ONCE]:
        why = next((each["message"] for each in workload.conditions if each["type"] == "Preempted"), "")
        yield _of_workload(workload, workload.last_preempted_at, "was preempted", reader.message(why))


def _failed(look: Look) -> Iterator[Occurrence]:
    found = look.own_workloads().filter(finished_at__gt=look.since, reason__in=_FAILURES).order_by("finished_at")
    for workload in found[:MAX_AT_ONCE]:
        yield _of_workload(workload, workload.finished_at, "has failed", workload.message)


def _waits(look: Look) -> Iterator[Occurrence]:
    waiting = look.own_workloads().filter(status=WorkloadStatus.PENDING, active=True)
    found = waiting.annotate(since=Coalesce("evicted_at", "created_at")).filter(since__lte=look.cutoff)
    reader = Reader(look.access, look.cluster)
    for workload in found.order_by("since")[:MAX_AT_ONCE]:
        verb = f"has waited for more than {look.minutes} min"
        yield _of_workload(workload, workload.since, verb, reader.message(workload.message))


def _of_workload(workload: Workload, at: datetime | None, verb: str, message: str) -> Occurrence:
    when = "" if at is None else at.isoformat()
    path = f"/workloads/{workload.namespace}/{workload.name}"
    return Occurrence(f"{workload.uid} {when}", f"{workload.key} {verb}", message, path)


def _starved(look: Look) -> Iterator[Occurrence]:
    visibility = visibility_of(look.access, look.cluster)
    named = Q(cluster_queue_name=look.rule.cluster_queue) if look.rule.cluster_queue else ~Q(cluster_queue_name="")
    here = Workload.objects.filter(named, cluster=look.cluster, parent_name="")
    waiting = (
        here.filter(status=WorkloadStatus.PENDING, active=True)
        .values(queue=F("cluster_queue_name"))
        .annotate(oldest=Min(Coalesce("evicted_at", "created_at")), number=Count("id"))
        .filter(oldest__lte=look.cutoff)
    )
    served = set(here.filter(admitted_at__gt=look.cutoff).values_list("cluster_queue_name", flat=True).distinct())
    for row in waiting.order_by("queue"):
        queue = row["queue"]
        if queue not in served and visibility.sees_queue(queue):
            title = f"The queue {queue} has admitted no workload for {look.minutes} min"
            yield Occurrence(queue, title, f"{row['number']} workloads wait in the queue.", f"/queues/{queue}")


def _failed_devices(look: Look) -> Iterator[Occurrence]:
    gone = Q(healthy=False) | Q(missing_since__isnull=False)
    found = (
        Device.objects.filter(gone, node__cluster=look.cluster).select_related("node").order_by("node__name", "index")
    )
    for device in found[:MAX_AT_ONCE]:
        fault = "is unhealthy" if device.missing_since is None else "is no longer listed by its node"
        title = f"GPU {device.index} of {device.node.name} {fault}"
        yield Occurrence(f"{device.node.name}/{device.uuid}", title, device.uuid, f"/nodes/{device.node.name}")


def _silent(look: Look) -> Iterator[Occurrence]:
    lease = Lease.objects.filter(cluster=look.cluster).first()
    renewed = None if lease is None else lease.renewed_at
    if renewed is not None and renewed > look.cutoff:
        return
    since = "never" if renewed is None else f"{renewed:%Y-%m-%d %H:%M:%S} UTC"
    title = f"The scheduler of cluster {look.cluster.name} is silent"
    yield Occurrence("lease", title, f"Its last heartbeat: {since}. No workload is admitted meanwhile.", "/")


HAPPENS: Final[Mapping[Event, Callable[[Look], Iterable[Occurrence]]]] = {
    Event.WORKLOAD_STARTED: _started,
    Event.WORKLOAD_PREEMPTED: _preempted,
    Event.WORKLOAD_FAILED: _failed,
    Event.WORKLOAD_WAITS: _waits,
}
"""Events that are reported once: their key has their time."""
HOLDS: Final[Mapping[Event, Callable[[Look], Iterable[Occurrence]]]] = {
    Event.QUEUE_STARVED: _starved,
    Event.DEVICE_FAILED: _failed_devices,
    Event.SCHEDULER_SILENT: _silent,
}
"""States that are reported when they begin, and again only after they have ended."""
