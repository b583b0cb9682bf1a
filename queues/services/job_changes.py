"""Changes of existing workloads: the permitted changes, and their execution. The caller has locked the workload's
row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from django.db.models import F, Value
from django.db.models.functions import Least

from accounts.models import Cluster
from accounts.services.access import groups_of
from queues.manifests import kueue_keys as keys
from queues.manifests.bounds import check_totals
from queues.manifests.job import JobManifest
from queues.manifests.start_order import jobs_before
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.manifests.workload_object import PRIORITY_CLASS_GROUPS
from queues.models import LocalQueue, PodSet, Workload
from queues.services.flows.start_waits import fewer_waits
from queues.services.workload_events import log_event
from queues.services.workloads import cancel
from scheduling.model.vocabulary import WorkloadStatus

_PRIORITY: Final = ("priority", "priority_class_kind", "priority_class_name")
_COLUMNS: Final = (
    "queue_name", "active", "never_preempt", "maximum_execution_seconds", "labels", "annotations", *_PRIORITY,
)  # fmt: skip
_SAME: Final = "field is immutable while the workload holds quota"
_ENDED: Final = "field is immutable: the workload has finished"
_FEWER_JOBS: Final = "field is immutable: jobs can only be removed after creation"
_FEWER: Final = "field is immutable: gates can only be removed after creation"
_START_AFTER_PATH: Final = f"metadata.annotations[{keys.START_AFTER}]"
_GATES_PATH: Final = f"metadata.annotations[{keys.ADMISSION_GATED_BY}]"

WORKLOAD_PATHS: Final = {
    "pod_sets": "spec.podSets",
    "counts": "spec.podSets",
    "queue_name": "spec.queueName",
    "maximum_execution_seconds": "spec.maximumExecutionTimeSeconds",
    "priority_class": "spec.priorityClassRef",
}
"""The manifest paths of immutable fields in a Workload."""
_JOB_PATHS: Final = {
    "queue_name": f"metadata.labels[{keys.QUEUE_NAME}]",
    "maximum_execution_seconds": f"metadata.labels[{keys.MAXIMUM_EXECUTION_SECONDS}]",
    "priority_class": f"metadata.labels[{keys.PRIORITY_CLASS}]",
}


def pod_set_specs(workload: Workload) -> tuple[PodSetSpec, ...]:
    """Return the pod sets of a row as specs, in order."""
    return tuple(
        PodSetSpec(row.name, row.count, row.template, row.requests, row.min_count, row.topology_request)
        for row in workload.pod_sets.all()
    )


def job_paths(job: JobManifest) -> dict[str, str]:
    """Return the manifest paths of immutable fields in a job."""
    pods = "spec" if job.template_path is None else job.template_path or "spec"
    return {**_JOB_PATHS, "pod_sets": pods, "counts": job.size_path}


def frozen_paths(paths: Mapping[str, str], workload: Workload, spec: WorkloadSpec) -> dict[str, str]:
    """Return the manifest fields that may not change to the spec's values, with the reason.

    While a workload is pending, everything may change. While it holds quota, its pods, its queue and the source of its
    priority are immutable (another WorkloadPriorityClass is allowed). Once it has finished, everything that affects
    decisions is immutable. An elastic workload with quota may request fewer pods. Admission gates, and the jobs that
    must succeed first, can only be removed.
    """
    finished = workload.status == WorkloadStatus.FINISHED
    gates = {_GATES_PATH: _FEWER} if _gates(spec) - _gates(workload) else {}
    if set(jobs_before(spec.annotations)).difference(jobs_before(workload.annotations)):
        gates[_START_AFTER_PATH] = _FEWER_JOBS
    if workload.quota_reserved_at is None and not finished:
        return gates
    there = pod_set_specs(workload)
    same_pods = _without_counts(there) == _without_counts(spec.pod_sets)
    changed = {
        "pod_sets": not same_pods,
        "counts": same_pods and there != spec.pod_sets and (finished or not _may_shrink_to(workload, spec)),
        "queue_name": workload.queue_name != spec.queue_name,
        "maximum_execution_seconds": workload.admitted_at is not None
        and workload.maximum_execution_seconds != spec.maximum_execution_seconds,
        "priority_class": _class_source(workload) != _class_source(spec),
    }
    return gates | {paths[field]: _ENDED if finished else _SAME for field, differs in changed.items() if differs}


def _gates(holder: Workload | WorkloadSpec) -> set[str]:
    """Return the admission gates that its annotation names."""
    return {word.strip() for word in holder.annotations.get(keys.ADMISSION_GATED_BY, "").split(",") if word.strip()}


def _without_counts(pod_sets: Sequence[PodSetSpec]) -> list[PodSetSpec]:
    return [replace(pod_set, count=0, min_count=None) for pod_set in pod_sets]


def _may_shrink_to(workload: Workload, spec: WorkloadSpec) -> bool:
    if any(found.annotations.get(keys.ELASTIC_JOB) != "true" for found in (workload, spec)):
        return False
    pairs = list(zip(pod_set_specs(workload), spec.pod_sets, strict=True))
    return all(new == replace(old, count=new.count) and new.count <= old.count for old, new in pairs)


def _class_source(holder: Workload | WorkloadSpec) -> tuple[str, str]:
    kind = holder.priority_class_kind
    return kind, holder.priority_class_name if kind == "PriorityClass" else ""


def change_workload(
    workload: Workload, spec: WorkloadSpec, *, actor: str, now: datetime, submitted_by: str = ""
) -> bool:
    """Change the row to the spec, and log the change. Returns whether the row differed. Raises `ManifestErrors`. The
    user who replaces a workload becomes its owner (`submitted_by`; empty: no user with an account)."""
    check_totals([spec])
    values: dict[str, Any] = {column: getattr(spec, column) for column in _COLUMNS}
    if spec.priority is None:
        values |= {column: getattr(workload, column) for column in _PRIORITY}
    values["priority_class_group"] = PRIORITY_CLASS_GROUPS.get(values["priority_class_kind"], "")
    values["labels"], values["annotations"] = dict(spec.labels), dict(spec.annotations)
    values["preemption_gates"] = list(spec.preemption_gates)
    values["waits_for"] = fewer_waits(workload.waits_for, spec.annotations)
    if workload.queue_name != spec.queue_name and workload.quota_reserved_at is None:
        values["cluster_queue_name"] = _cluster_queue_of(workload.cluster_id, spec)
    changed = [column for column, value in values.items() if getattr(workload, column) != value]
    for column in changed:
        setattr(workload, column, values[column])
    pods_changed = pod_set_specs(workload) != spec.pod_sets
    if changed:
        workload.save(update_fields=[*changed, "updated_at"])
    if pods_changed:
        _change_pod_sets(workload, spec)
    if not changed and not pods_changed:
        return False
    if submitted_by and workload.submitted_by != submitted_by:
        workload.submitted_by = submitted_by
        workload.user_groups = groups_of(submitted_by)
        workload.save(update_fields=["submitted_by", "user_groups"])
    words = ", ".join([*changed, *(["pod_sets"] if pods_changed else [])])
    log_event(workload, "UpdatedWorkload", words, actor=actor, now=now)
    return True


def _cluster_queue_of(cluster_id: int, spec: WorkloadSpec) -> str:
    queue = LocalQueue.objects.filter(cluster_id=cluster_id, namespace=spec.namespace, name=spec.queue_name).first()
    return queue.cluster_queue_name if queue else ""


def _change_pod_sets(workload: Workload, spec: WorkloadSpec) -> None:
    """Changed counts are written in place, and other columns of the pod sets are kept; changed pods replace the
    rows.
    """
    if _without_counts(pod_set_specs(workload)) != _without_counts(spec.pod_sets):
        _replace_pod_sets(workload, spec)
        return
    for pod_set in spec.pod_sets:
        rows = PodSet.objects.filter(workload=workload, name=pod_set.name)
        rows.update(
            count=pod_set.count,
            min_count=pod_set.min_count,
            reclaimable_count=Least(F("reclaimable_count"), Value(pod_set.count)),
        )


def _replace_pod_sets(workload: Workload, spec: WorkloadSpec) -> None:
    PodSet.objects.filter(workload=workload).delete()
    PodSet.objects.bulk_create(
        PodSet(
            workload=workload,
            position=position,
            name=pod_set.name,
            count=pod_set.count,
            min_count=pod_set.min_count,
            template=pod_set.template,
            requests=pod_set.requests,
            topology_request=pod_set.topology_request,
        )
        for position, pod_set in enumerate(spec.pod_sets)
    )


def remove_workloads(cluster: Cluster, workloads: Sequence[Workload], *, actor: str, now: datetime) -> None:
    """Remove workloads that their job no longer requests: pending ones are deleted, those with quota cancelled."""
    unfinished = [workload for workload in workloads if workload.status != WorkloadStatus.FINISHED]
    holding = [workload for workload in unfinished if workload.quota_reserved_at is not None]
    waiting = [workload for workload in unfinished if workload.quota_reserved_at is None]
    for workload in waiting:
        log_event(workload, "Deleted", "Its job no longer requests it", actor=actor, now=now)
    Workload.objects.filter(pk__in=[workload.pk for workload in waiting]).delete()
    if holding:
        keys_ = [(workload.namespace, workload.name) for workload in holding]
        cancel(cluster, keys_, actor=actor, withdraw_jobs=False, now=now)
