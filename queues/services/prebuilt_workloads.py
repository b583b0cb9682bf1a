"""Workloads that exist before their job: a MultiKueue manager creates both here, first the workload. Other users of the
cluster may do the same; their job names the workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from django.contrib.auth import get_user_model
from django.db.models import F, QuerySet

from accounts.models import Cluster
from foundation.exceptions import Conflict
from queues.manifests import kueue_keys as keys
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.start_order import jobs_before
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.models import PodSet, Workload
from queues.services.workload_events import log_event
from scheduling.model.vocabulary import WorkloadStatus

_OUT_OF_SYNC: Final = "The prebuilt workload is out of sync with its user job"

Found = dict[int, tuple[WorkloadSpec, Workload]]
"""By the identity of a spec: the spec, and its prebuilt workload."""


def find_prebuilt(cluster: Cluster, specs: Sequence[WorkloadSpec], submitted_by: str = "") -> Found:
    """Return the existing workloads for jobs of a manager, and for found jobs that name a workload, locked; empty for
    all other jobs. Raises `Conflict` for a job whose workload does not exist yet, has other pods, or belongs to another
    user. The pods of a group come one by one: Kueue's controller compares them with the workload."""
    found: Found = {}
    for spec in specs:
        if spec.job is None or not _is_sent(cluster, spec):
            continue
        row = _waiting(cluster, spec)
        if row is None:
            raise Conflict(f"{spec.job.kind} {spec.job.namespace}/{spec.job.name}: its prebuilt workload is not found")
        if not may_take(row, submitted_by, found_in_cluster=spec.job.found_in_cluster):
            raise Conflict(
                f"Workload {row.key} was submitted by {row.submitted_by}: a job of another user may not use it"
            )
        if spec.job.kind != POD_GROUP and _sizes(row.pod_sets.all()) != _sizes(spec.pod_sets):
            raise Conflict(f"Workload {row.key}: {_OUT_OF_SYNC}")
        found[id(spec)] = (spec, row)
    return found


def is_prebuilt(cluster: Cluster, namespace: str, group: str) -> bool:
    """Return whether a manager created the workload of a pod group that no group has taken over yet."""
    rows = Workload.objects.filter(cluster=cluster, namespace=namespace, name=group, job=None)
    return rows.filter(labels__has_key=keys.MULTIKUEUE_ORIGIN).exclude(status=WorkloadStatus.FINISHED).exists()


def take_over(
    row: Workload, spec: WorkloadSpec, job_id: int, actor: str, now: datetime
) -> tuple[Workload, WorkloadSpec]:
    """Transfer the workload to the job. The workload's templates become those of the job, as its cluster has completed
    them. Without quota, the workload also waits for the jobs after which the job starts."""
    templates = {pod_set.name: pod_set.template for pod_set in spec.pod_sets}
    for name, template in templates.items():
        PodSet.objects.filter(workload=row, name=name).update(template=template)
    job = spec.job
    assert job is not None  # it belongs to the job
    labels = {**row.labels, **({} if job.kind == POD_GROUP else {keys.JOB_UID: str(job.uid)})}
    rows = Workload.objects.filter(pk=row.pk)
    rows.update(
        job_id=job_id, labels=labels, push_sequence=F("push_sequence") + 1, updated_at=now, **_joined_order(row, spec)
    )
    log_event(row, "OwnerReferencesAdded", f"Owner reference added for {job.kind} {job.name}", actor=actor, now=now)
    return row, spec


def _joined_order(row: Workload, spec: WorkloadSpec) -> dict[str, Any]:
    """Return the columns of the jobs after which the workload and its job start."""
    named, before = jobs_before(spec.annotations), jobs_before(row.annotations)
    more = [name for name in named if name not in before]
    if not more or row.quota_reserved_at is not None:
        return {}
    annotations = {**row.annotations, keys.START_AFTER: ",".join((*before, *more))}
    return {"annotations": annotations, "waits_for": [*row.waits_for, *more]}


def _is_sent(cluster: Cluster, spec: WorkloadSpec) -> bool:
    job = spec.job
    assert job is not None  # by its caller
    if job.kind == POD_GROUP:  # its row has no labels: its workload has the group's name
        return is_prebuilt(cluster, spec.namespace, spec.name)
    return keys.MULTIKUEUE_ORIGIN in _labels(job) or (job.found_in_cluster and bool(_prebuilt_name(job)))


def may_take(row: Workload, submitted_by: str, *, found_in_cluster: bool) -> bool:
    """Return whether a job of that user may take over the workload: both belong to the same user, or both were created
    in the cluster, whose own rules decide who may create a job."""
    if row.submitted_by == submitted_by:
        return True
    is_users = get_user_model()._default_manager.filter(username=row.submitted_by).exists()
    return found_in_cluster and not is_users


def _prebuilt_name(job: JobSpec) -> str:
    """Return the workload that the job names; the annotation takes precedence over the label."""
    annotations: Mapping[str, str] = (job.manifest.get("metadata") or {}).get("annotations") or {}
    return annotations.get(keys.PREBUILT_WORKLOAD) or _labels(job).get(keys.PREBUILT_WORKLOAD, "")


def _waiting(cluster: Cluster, spec: WorkloadSpec) -> Workload | None:
    job = spec.job
    assert job is not None  # by its caller
    rows = _unowned(cluster, spec)
    name = spec.name if job.kind == POD_GROUP else _prebuilt_name(job)
    if name:
        return rows.filter(name=name).first()
    owner = {f"annotations__{keys.JOB_OWNER_NAME}": job.name}
    index = {f"annotations__{keys.COMPONENT_INDEX}": spec.annotations.get(keys.COMPONENT_INDEX, "")}
    return rows.filter(**owner, **index).first()


def _unowned(cluster: Cluster, spec: WorkloadSpec) -> QuerySet[Workload]:
    rows = Workload.objects.filter(cluster=cluster, namespace=spec.namespace, job=None).order_by("pk")
    rows = rows.exclude(status=WorkloadStatus.FINISHED)
    job = spec.job
    if job is None or not (job.found_in_cluster and _prebuilt_name(job)):
        rows = rows.filter(labels__has_key=keys.MULTIKUEUE_ORIGIN)
    return rows.select_for_update(no_key=True, of=("self",))


def _labels(job: JobSpec) -> Mapping[str, str]:
    found: Mapping[str, str] = (job.manifest.get("metadata") or {}).get("labels") or {}
    return found


def _sizes(pod_sets: Any) -> list[tuple[str, int, Mapping[str, int]]]:
    return sorted((each.name, each.count, dict(each.requests)) for each in pod_sets)
