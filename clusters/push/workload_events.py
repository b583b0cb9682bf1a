"""Recorded events of workloads -> Kubernetes' events on Workload, job and pods, in Kueue's form."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from django.core.cache import cache
from django.db.models import Max, Q

from accounts.models import Cluster
from clusters.api_objects import Kind
from clusters.client import ClusterClient
from clusters.jobs.registry import JOB_KINDS
from clusters.push.event_recorder import EventRecorder, Notice, Regarding
from clusters.served.workload_specs import KIND
from queues.manifests.pod_group import POD_GROUP
from queues.models import Job, ServedObject, Workload, WorkloadEvent
from queues.services.pod_groups.life import excess_message

_log = logging.getLogger(__name__)

_BATCH: Final = 200
_MAX_BACKLOG: Final = 1000
"""The backlog of client-go's broadcaster: events beyond it are dropped."""
_LATE_SECONDS: Final = 60.0
"""How long after a row is written one with a lower key may still be committed."""
_EXCESS: Final = "ExcessPodDeleted"
_OF_THE_JOB: Final = frozenset({"UpdatedWorkload", "Deleted", "Finished", "ErrWorkloadCompose", _EXCESS})
"""Events that Kueue writes on the job, or a pod of it, only."""
_OF_STOPS: Final = Q(reason__startswith="EvictedDueTo") | Q(reason__in=_OF_THE_JOB)
"""Events that name jobs and pods which a sweep may delete, with their rows."""
_OURS: Final = frozenset({"Created"})
"""Events that Kueue does not write: it says on the job that it created the Workload."""
_READ: Final = (
    "uid", "cluster_queue_name", *(f"job__{name}" for name in ("kind", "namespace", "name", "uid", "found_in_cluster")),
)  # fmt: skip
"""The columns of a workload and its job that an event names."""
_of_created: Final[dict[tuple[str, int], list[Notice]]] = {}


def events_of_created(cluster: Cluster, client: ClusterClient) -> list[Notice]:
    """Return the events of created Workloads, which have no rows: they are appended to this list, and removed when they
    are written."""
    return _of_created.setdefault((client.server, cluster.pk), [])


class WorkloadEvents:
    """One sweep over the events recorded since the last one.

    The cache records which were written; if it is lost, earlier ones are not written again.
    """

    def __init__(self, cluster: Cluster, client: ClusterClient, resource: Kind) -> None:
        self._cluster = cluster
        self._client = client
        self._resource = resource
        self._recorder = EventRecorder(client)
        self._key = f"cluster-events:{cluster.pk}"
        self._since = 0
        self._told: dict[int, float] = {}
        self._rows: list[WorkloadEvent] = []

    def read(self) -> None:
        """Read the recorded events to write, before the objects of their workloads are written: an event can only be
        written on an object that exists."""
        state = cache.get(self._key)
        if state is None:
            newest = WorkloadEvent.objects.filter(cluster=self._cluster).aggregate(newest=Max("pk"))["newest"]
            state = {"since": newest or 0, "told": []}
            self._remember(state["since"], {}, ())
        self._told = dict(state["told"])
        self._since, self._rows = self._untold(state["since"])

    def tell_of_stops(self) -> None:
        """Write the events that name jobs and pods which the sweep stops, before it does: a deleted pod has no row from
        which its event follows. Raises ClusterUnreachable."""
        state = cache.get(self._key)
        if state is None:
            return
        told = [pk for pk, _ in state["told"]]
        of_stops = WorkloadEvent.objects.filter(_OF_STOPS, cluster=self._cluster, pk__gt=state["since"])
        due = frozenset(of_stops.exclude(pk__in=told).values_list("pk", flat=True)[:_BATCH])
        if due:
            self.read()
            self._write([row for row in self._rows if row.pk in due])

    def tell(self, waiting: Collection[tuple[str, str]] = ()) -> bool:
        """Write the events of created objects and the events that were read. Returns whether some are left.

        * waiting: (namespace, name) of workloads whose objects do not exist or are outdated: their events wait, too.

        Raises ClusterUnreachable; the remaining events are written later.
        """
        rows = [row for row in self._rows if (row.namespace, row.workload_name) not in waiting][:_BATCH]
        self._write(rows)
        return len(rows) < len(self._rows)

    def _write(self, rows: Sequence[WorkloadEvent]) -> None:
        """Write the events of created objects and of these rows, and remember them. Raises ClusterUnreachable."""
        created = events_of_created(self._cluster, self._client)
        left, unreachable = self._recorder.record_all([*created, *self._notices(rows)])
        created[:] = [notice for notice in left if not notice.row][-_MAX_BACKLOG:]
        if rows:
            unwritten = {notice.row for notice in left}
            self._told |= {row.pk: row.at.timestamp() for row in rows if row.pk not in unwritten}
            self._remember(self._since, self._told, [row.pk for row in self._rows if row.pk not in self._told])
        if unreachable is not None:
            raise unreachable

    def _notices(self, rows: Sequence[WorkloadEvent]) -> Iterator[Notice]:
        if rows:
            objects = _Objects(self._cluster, self._client, self._resource, rows)
            for row in rows:
                yield from objects.notices(row)

    def _untold(self, since: int) -> tuple[int, list[WorkloadEvent]]:
        """From which key on, and the rows since, in order. A low key may be committed after a higher one."""
        rows = WorkloadEvent.objects.filter(cluster=self._cluster, pk__gt=since).exclude(pk__in=self._told)
        newest = list(rows.order_by("-pk")[: _MAX_BACKLOG + 1])
        if len(newest) > _MAX_BACKLOG:
            since = newest.pop().pk
            _log.warning("Cluster %s: too many events; those before %d are left out", self._cluster, since)
        return since, newest[::-1]

    def _remember(self, since: int, told: Mapping[int, float], untold: Collection[int]) -> None:
        """Rows of a minute ago are all committed, so of these the last key before an untold row is enough."""
        settled = max(told.values(), default=0.0) - _LATE_SECONDS
        first = min(untold, default=None)
        since = max([since, *(pk for pk, at in told.items() if at < settled and (first is None or pk < first))])
        recent = [(pk, at) for pk, at in told.items() if pk > since]
        cache.set(self._key, {"since": since, "told": recent}, timeout=None)


class _Objects:
    """The objects that a batch of events is about."""

    def __init__(self, cluster: Cluster, client: ClusterClient, resource: Kind, rows: Sequence[WorkloadEvent]) -> None:
        self._client = client
        self._resource = resource
        entries = ServedObject.objects.filter(
            cluster=cluster, kind=KIND, namespace__in={row.namespace for row in rows},
            name__in={row.workload_name for row in rows},
        ).values_list("namespace", "name", "uid")  # fmt: skip
        self._uids = {(namespace, name): uid for namespace, name, uid in entries}
        workloads = Workload.objects.filter(cluster=cluster, uid__in={row.workload_uid for row in rows})
        self._workloads = {workload.uid: workload for workload in workloads.select_related("job").only(*_READ)}
        groups = [each.job_id for each in self._workloads.values() if each.job and each.job.kind == POD_GROUP]
        self._members: dict[int, list[Job]] = {}
        for member in Job.objects.filter(group__in=groups).order_by("pk") if groups else ():
            self._members.setdefault(member.group_id or 0, []).append(member)
        self._jobs: dict[int, list[Regarding]] = {}

    def notices(self, row: WorkloadEvent) -> Iterator[Notice]:
        """Yield the notices of a recorded event, of each object that it is about."""
        for regarding, reason, message in self._told(row):
            warning = row.type == "Warning" and reason == row.reason
            yield Notice(regarding, reason, message, row.at, warning, row.pk)

    def _told(self, row: WorkloadEvent) -> Iterator[tuple[Regarding, str, str]]:
        uid = self._uids.get((row.namespace, row.workload_name))
        if uid and row.reason not in _OF_THE_JOB | _OURS:
            regarding = Regarding(self._resource.api_version, KIND, row.namespace, row.workload_name, uid)
            yield regarding, row.reason, row.message
        workload = self._workloads.get(row.workload_uid)
        told = _told_to_job(row, workload) if workload is not None and workload.job is not None else None
        if told is not None and workload is not None and workload.job is not None:
            for job in self._of_job(workload.job):
                yield job, *told
        if workload is not None and row.reason == _EXCESS:
            for excess in self._excess_pods(row, workload):
                yield excess, _EXCESS, "Excess pod deleted"

    def _excess_pods(self, row: WorkloadEvent, workload: Workload) -> Iterator[Regarding]:
        """Yield the pod that the event names, which its group has no place for."""
        for member in self._members.get(workload.job_id or 0, ()):
            if member.deletion_requested_at is not None and row.message == excess_message(member.name):
                known = self._known(member)
                if known is not None:
                    yield known

    def _of_job(self, job: Job) -> list[Regarding]:
        """Return the job, or the pods of a group, as the cluster knows them."""
        if job.pk not in self._jobs:
            parts = self._members.get(job.pk, []) if job.kind == POD_GROUP else [job]
            self._jobs[job.pk] = [found for part in parts if (found := self._known(part)) is not None]
        return self._jobs[job.pk]

    def _known(self, job: Job) -> Regarding | None:
        kind = JOB_KINDS.get(job.kind)
        if kind is None:
            return None
        uid = str(job.uid)
        if not job.found_in_cluster:
            there = self._client.get(kind.resource, job.namespace, job.name)
            if there is None:
                return None
            uid = str(there["metadata"]["uid"])
        return Regarding(kind.api_version, job.kind, job.namespace, job.name, uid)


def _told_to_job(row: WorkloadEvent, workload: Workload) -> tuple[str, str] | None:
    """Return the reason and the message that Kueue writes on a job; None if it writes none."""
    key = f"{row.namespace}/{row.workload_name}"
    if row.reason == "Admitted":
        return "Started", f"Admitted by clusterQueue {workload.cluster_queue_name}"
    if row.reason.startswith("EvictedDueTo"):
        return "Stopped", row.message
    if row.reason == "UpdatedWorkload":
        return row.reason, f"Updated not matching Workload for suspended job: {key}"
    if row.reason == "Deleted":
        return "DeletedWorkload", f"Deleted not matching Workload: {key}"
    if row.reason == "Finished":
        return "FinishedWorkload", f"Workload '{key}' is declared finished"
    of_the_job = row.reason in _OF_THE_JOB and row.reason != _EXCESS
    return (row.reason, row.message) if of_the_job else None
