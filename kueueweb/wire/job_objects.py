"""Rows of batch/v1 Jobs as objects, with the status that follows from their workloads and pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from django.db.models import Count, Q

from accounts.models import Cluster
from accounts.services.object_status import server_metadata, timestamp
from clusters.jobs.kinds.job import JOB_UID_LABEL
from queues.models import Job, Pod, Workload
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_ALIVE: Final = Q(phase__in=("Pending", "Running"))
_COUNTED: Final[Mapping[str, Q]] = {
    "active": _ALIVE & Q(terminating=False),
    "ready": _ALIVE & Q(terminating=False, ready=True),
    "terminating": _ALIVE & Q(terminating=True),
    "succeeded": Q(phase="Succeeded"),
    "failed": Q(phase="Failed"),
}
"""The numbers of pods in a Job's status."""


def job_objects(cluster: Cluster, rows: Sequence[Job]) -> list[dict[str, Any]]:
    """Return the Jobs of rows whose workloads are prefetched. One query reads the pods of all of them."""
    counts = {f"{name}_pods": Count("pk", filter=condition) for name, condition in _COUNTED.items()}
    counted = Pod.objects.filter(workload__job__in=rows).values_list("workload__job_id").annotate(**counts)
    pods = {job: dict(zip(_COUNTED, numbers, strict=True)) for job, *numbers in counted}
    return [_job_object(row, pods.get(row.pk, {})) for row in rows]


def without_generated_selector(manifest: Mapping[str, Any], uid: str) -> dict[str, Any]:
    """Return a Job as a client sends it back, without the selector that the server created for the Job's uid. The
    selector is not part of the desired state, because each cluster creates its own."""
    spec = manifest.get("spec")
    if isinstance(spec, Mapping) and uid and spec.get("selector") == _selector(uid):
        return {**manifest, "spec": {key: value for key, value in spec.items() if key != "selector"}}
    return dict(manifest)


def _selector(uid: UUID | str) -> dict[str, Any]:
    """Return the selector of a Job's pods as Kubernetes makes it; `kubectl logs job/NAME` finds the pods by it."""
    return {"matchLabels": {JOB_UID_LABEL: str(uid)}}


def _job_object(row: Job, pods: Mapping[str, int]) -> dict[str, Any]:
    kept = ("labels", "annotations")
    metadata = {key: value for key, value in (row.manifest.get("metadata") or {}).items() if key in kept and value}
    metadata = {"name": row.name, "namespace": row.namespace, **metadata, **server_metadata(row)}
    return {
        "apiVersion": row.manifest["apiVersion"],
        "kind": row.kind,
        "metadata": metadata,
        "spec": {"selector": _selector(row.uid), **(row.manifest.get("spec") or {})},
        "status": _job_status(sorted(row.workloads.all(), key=lambda found: found.pk), pods),
    }


def _job_status(workloads: Sequence[Workload], pods: Mapping[str, int]) -> dict[str, Any]:
    """Return the part of the status that our rows have; the last workload is that of the job as it is now."""
    status: dict[str, Any] = {name: number for name, number in pods.items() if number}
    if not workloads:
        return status
    last = workloads[-1]
    if last.admitted_at is not None:
        status["startTime"] = timestamp(last.admitted_at)
    finished = last.status == WorkloadStatus.FINISHED
    if finished and last.finished_at is not None:
        at = timestamp(last.finished_at)
        complete = last.reason == FinishedReason.SUCCEEDED
        if complete:
            status["completionTime"] = at
        status["conditions"] = [_condition("Complete" if complete else "Failed", at, last.reason, last.message)]
    elif last.admitted_at is None:
        at = timestamp(last.evicted_at or last.created_at)
        status["conditions"] = [_condition("Suspended", at, last.reason or "JobSuspended", last.message)]
    return status


def _condition(type_: str, at: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "type": type_,
        "status": "True",
        "reason": reason,
        "message": message,
        "lastProbeTime": at,
        "lastTransitionTime": at,
    }
