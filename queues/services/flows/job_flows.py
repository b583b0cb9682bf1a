"""Volcano's JobFlows: the jobs that were translated from one flow, and the state that they form.

A flow has no row: its jobs name it in Volcano's label. The phases are those of Volcano's controller, where a job that
still waits for its targets does not exist yet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from django.db.models import F, QuerySet, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Concat, Length, Substr

from accounts.models import Cluster
from queues.manifests import kueue_keys as keys
from queues.manifests.start_order import jobs_before
from queues.models import Job, Workload
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_DELETE: Final = "delete"


class FlowJobPhase(StrEnum):
    """The phase of a job of a flow."""

    WAITING = "Waiting"
    """A target has not succeeded: Volcano would not have created the job yet."""
    PENDING = "Pending"
    """It waits for quota, or for its pods to start."""
    RUNNING = "Running"
    """It is admitted."""
    COMPLETED = "Completed"
    """It has succeeded."""
    TERMINATED = "Terminated"
    """It was cancelled."""
    FAILED = "Failed"
    """It has failed."""


class FlowPhase(StrEnum):
    """The phase of a flow, as Volcano names it."""

    SUCCEED = "Succeed"
    """All jobs have completed."""
    TERMINATING = "Terminating"
    """Its jobs are being deleted."""
    FAILED = "Failed"
    """A job has failed or was cancelled: no further job of the flow starts."""
    RUNNING = "Running"
    """A job runs or has completed."""
    PENDING = "Pending"
    """No job has started."""


@dataclass(frozen=True, slots=True)
class FlowJob:
    """A job of a flow.

    * after: the jobs that must have succeeded before; waits_for: those of them that have not yet.
    * workload, local_queue, reason: of its newest workload; empty without one.
    """

    kind: str
    name: str
    phase: FlowJobPhase
    after: tuple[str, ...]
    waits_for: tuple[str, ...]
    workload: str
    local_queue: str
    reason: str
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


@dataclass(frozen=True, slots=True)
class JobFlow:
    """A flow, with its jobs in the order of their creation."""

    namespace: str
    name: str
    jobs: tuple[FlowJob, ...]
    rows: tuple[Job, ...]

    @property
    def phase(self) -> FlowPhase:
        """Return the phase, by the first of Volcano's conditions that holds."""
        if any(row.deletion_requested_at is not None for row in self.rows):
            return FlowPhase.TERMINATING
        phases = {job.phase for job in self.jobs}
        if phases == {FlowJobPhase.COMPLETED}:
            return FlowPhase.SUCCEED
        if phases & {FlowJobPhase.FAILED, FlowJobPhase.TERMINATED}:
            return FlowPhase.FAILED
        if phases & {FlowJobPhase.RUNNING, FlowJobPhase.COMPLETED}:
            return FlowPhase.RUNNING
        return FlowPhase.PENDING

    @property
    def is_deleted_when_done(self) -> bool:
        """Whether its jobs are deleted once all have succeeded."""
        return all(row.annotations.get(keys.RETAIN_POLICY) == _DELETE for row in self.rows)

    def names(self, phase: FlowJobPhase) -> list[str]:
        """Return the names of the jobs in a phase."""
        return [job.name for job in self.jobs if job.phase is phase]


def flow_of(namespace: str, labels: Mapping[str, str]) -> str:
    """Return the name of the flow that the labels of a job name; "" without one, or for one of another namespace."""
    text = str(labels.get(keys.BY_JOB_FLOW, ""))
    return text.removeprefix(f"{namespace}.") if text.startswith(f"{namespace}.") else ""


def flow_names(
    cluster: Cluster, namespaces: Collection[str] | None = None, names: Collection[str] = (), search: str = ""
) -> QuerySet[Any, Any]:
    """Return a query of the `namespace` and the name (`flow`) of each flow of these namespaces (None: all), of these
    names (empty: any), and with this text in its name."""
    jobs = Job.objects.filter(cluster=cluster, labels__has_key=keys.BY_JOB_FLOW)
    if namespaces is not None:
        jobs = jobs.filter(namespace__in=namespaces)
    jobs = jobs.annotate(of_flow=KeyTextTransform(keys.BY_JOB_FLOW, "labels"))
    jobs = jobs.filter(of_flow__startswith=Concat(F("namespace"), Value(".")))
    jobs = jobs.annotate(flow=Substr("of_flow", Length("namespace") + 2)).exclude(flow="")
    if names:
        jobs = jobs.filter(flow__in=names)
    if search:
        jobs = jobs.filter(flow__icontains=search)
    return jobs.values("namespace", "flow").distinct()


def job_flows(cluster: Cluster, only: Collection[tuple[str, str]] | None = None) -> list[JobFlow]:
    """Return all flows, or `only` these (namespace, name); by namespace and name."""
    jobs = Job.objects.filter(cluster=cluster, labels__has_key=keys.BY_JOB_FLOW).prefetch_related("workloads")
    if only is not None:
        texts = [".".join(key) for key in only]
        jobs = jobs.filter(**{"namespace__in": {key[0] for key in only}, f"labels__{keys.BY_JOB_FLOW}__in": texts})
    found: dict[tuple[str, str], list[Job]] = defaultdict(list)
    for row in jobs.defer("manifest").order_by("pk"):
        flow = flow_of(row.namespace, row.labels)
        if flow:
            found[row.namespace, flow].append(row)
    return [JobFlow(*key, tuple(map(_flow_job, rows)), tuple(rows)) for key, rows in sorted(found.items())]


def jobs_of_open_flows(cluster: Cluster) -> QuerySet[Job]:
    """Return the jobs of flows of which some workload has not finished; the phase of the flow needs all of them."""
    jobs = Job.objects.filter(cluster=cluster, labels__has_key=keys.BY_JOB_FLOW)
    unfinished = Workload.objects.filter(cluster=cluster, job__isnull=False).exclude(status=WorkloadStatus.FINISHED)
    label = f"labels__{keys.BY_JOB_FLOW}"
    texts = list(jobs.filter(pk__in=unfinished.values("job")).values_list(label, flat=True).order_by().distinct())
    return jobs.filter(**{f"{label}__in": texts}) if texts else jobs.none()


def _flow_job(row: Job) -> FlowJob:
    workloads = sorted(row.workloads.all(), key=lambda workload: workload.pk)
    newest = workloads[-1] if workloads else None
    ends = [workload.finished_at for workload in workloads if workload.finished_at is not None]
    starts = [workload.admitted_at for workload in workloads if workload.admitted_at is not None]
    return FlowJob(
        kind=row.kind,
        name=row.name,
        phase=_phase(workloads),
        after=jobs_before(row.annotations),
        waits_for=tuple(dict.fromkeys(name for workload in workloads for name in workload.waits_for)),
        workload=newest.name if newest else "",
        local_queue=newest.queue_name if newest else "",
        reason=newest.reason if newest else "",
        created_at=row.created_at,
        started_at=min(starts, default=None),
        finished_at=max(ends) if ends and len(ends) == len(workloads) else None,
    )


def _phase(workloads: Sequence[Workload]) -> FlowJobPhase:
    """Return the phase that the workloads of a job form: the worst of their ends, else the furthest of them."""
    if workloads and all(workload.status == WorkloadStatus.FINISHED for workload in workloads):
        reasons = {_finished_reason(workload.conditions) for workload in workloads}
        reasons.discard(FinishedReason.WORKLOAD_SLICE_REPLACED)
        if reasons == {FinishedReason.SUCCEEDED}:
            return FlowJobPhase.COMPLETED
        return FlowJobPhase.TERMINATED if FinishedReason.CANCELLED in reasons else FlowJobPhase.FAILED
    if any(workload.status == WorkloadStatus.ADMITTED for workload in workloads):
        return FlowJobPhase.RUNNING
    return FlowJobPhase.WAITING if any(workload.waits_for for workload in workloads) else FlowJobPhase.PENDING


def _finished_reason(conditions: Sequence[Mapping[str, Any]]) -> str:
    return next((str(each.get("reason")) for each in conditions if each.get("type") == "Finished"), "")
