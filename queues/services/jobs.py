"""Stores jobs of all kinds: a row per job and the workloads that it requests, replaced by each apply."""

import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count
from django.utils import timezone

from accounts.kinds.frameworks import disabled_mistake
from accounts.models import Cluster
from accounts.services.apply_result import Action, Applied, Submitted, refuse_mistakes
from foundation.exceptions import ManifestErrors, UnsupportedKind
from foundation.wake_ups import request_push
from queues.manifests import kueue_keys as keys
from queues.manifests.job import JobManifest, WorkloadsPer
from queues.manifests.job_workloads import (
    JOB_READERS,
    ClusterObjects,
    PriorityChoice,
    job_spec,
    job_workloads,
)
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.models import Job, LocalQueue, Workload
from queues.services.flows.start_gates import lock_with_awaiting, open_start_gates
from queues.services.generated_names import draw_names
from queues.services.job_changes import change_workload, frozen_paths, job_paths, remove_workloads
from queues.services.job_passes import Matched, match_workloads
from queues.services.pod_groups.group_rows import store_groups
from queues.services.pod_groups.life import withdraw_members
from queues.services.pod_groups.plans import GroupPod, plan_groups
from queues.services.priorities import choose_priorities
from queues.services.submission import create_workloads
from queues.services.withdrawn_jobs import free_names
from queues.services.workloads import cancel, delete_workloads, put_on_hold, raise_push, record_finished, take_off_hold
from scheduling.manifest import FieldReader, MistakeReason, ValidationReport
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

DEFAULT_LOCAL_QUEUE = "default"
"""A LocalQueue with this name gets the jobs of its namespace that name no queue (Kueue)."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The result of a submission: the wanted state of the job's row, and its workloads."""

    submitted: Submitted[JobManifest]
    job: JobSpec
    workloads: list[WorkloadSpec]


def read_job_object(
    document: Mapping[str, Any], report: ValidationReport | None = None, objects: ClusterObjects | None = None
) -> Submitted[JobManifest]:
    """Read the manifest of a job; raises `UnsupportedKind` and `ManifestErrors`."""
    report = report or ValidationReport()
    kind, api_version = str(document.get("kind")), str(document.get("apiVersion"))
    reader = JOB_READERS.get((api_version, kind))
    if reader is None:
        report.error("kind", kind, f"is not a kind of job in {api_version}", "", MistakeReason.UNSUPPORTED_KIND)
        raise UnsupportedKind(report.errors)
    top = FieldReader(report, "", document)
    top.ignore("apiVersion", "kind")
    job = reader(top, objects)
    top.close()
    if report.errors:
        raise ManifestErrors(report.errors)
    return Submitted(job, report, api_version)


def apply_jobs(
    cluster: Cluster,
    submissions: Sequence[Submitted[JobManifest]],
    *,
    actor: str,
    submitted_by: str = "",
    applied_set: str = "",
    found_in_cluster: bool = False,
    now: datetime | None = None,
) -> list[Applied]:
    """Store jobs and their workloads, within the caller's transaction.

    A job that names no queue, and whose namespace has no LocalQueue `default`, is kept without a workload. An existing
    job is replaced: its pending workloads follow, and workloads with quota must not change (Kueue's immutable fields).
    `found_in_cluster`: others created the jobs there, and their rows get the cluster's uids. Pods of a group form one
    workload (`queues.services.pod_groups.group_rows`). Raises `ManifestErrors`.
    """
    now = now or timezone.now()
    _refuse_disabled(cluster, submissions)
    priorities = choose_priorities(cluster, submissions)
    defaults = _namespaces_with_default_queue(cluster, submissions)
    members, others = _split_groups(submissions, priorities, defaults)
    rows = _rows(cluster, [submitted for submitted, _ in others])
    names = _drawn_names(cluster, [submitted for submitted, _ in others])
    applied: dict[int, Applied] = {}
    created: list[WorkloadSpec] = []
    alone: list[JobSpec] = []
    changed: list[tuple[_Plan, Job]] = []
    for submitted, priority in others:
        row = rows.get((submitted.spec.kind, submitted.spec.meta.key))
        name = row.name if row else names.get(id(submitted), submitted.spec.meta.name)
        plan = _plan(submitted, name, priority, row, defaults, applied_set, found_in_cluster)
        if row is None:
            created += plan.workloads
            if not plan.workloads:
                alone.append(plan.job)
            action = Action.CREATED
        elif _check(submitted, row) and _is_same(row, plan):
            _join_set(row, applied_set)
            action = Action.UNCHANGED
        else:
            changed.append((plan, row))
            action = Action.CONFIGURED
        job = plan.job
        applied[id(submitted)] = Applied(job.kind, job.namespace, job.name, action, tuple(submitted.report.warnings))
    workloads = _locked_workloads(cluster, [row for _, row in changed], members)
    groups = plan_groups(cluster, members, actor=actor, found_in_cluster=found_in_cluster, now=now)
    refuse_mistakes(submissions)
    _store_alone(cluster, alone, now)
    for plan, row in changed:
        created += _replace(cluster, plan, row, workloads[row.pk], actor, submitted_by, now)
    refuse_mistakes(submissions)
    create_workloads(cluster, created, actor=actor, submitted_by=submitted_by, now=now, limited=not found_in_cluster)
    applied |= store_groups(
        cluster,
        groups,
        actor=actor,
        submitted_by=submitted_by,
        applied_set=applied_set,
        found_in_cluster=found_in_cluster,
        now=now,
    )
    return [applied[id(submitted)] for submitted in submissions]


def _refuse_disabled(cluster: Cluster, submissions: Sequence[Submitted[JobManifest]]) -> None:
    """Refuse kinds that the Configuration does not enable."""
    for submitted in submissions:
        job = submitted.spec
        rule, remedy = disabled_mistake(cluster.configuration, job.api_version, job.kind)
        if rule:
            submitted.report.error(submitted.at("kind"), job.kind, rule, remedy, MistakeReason.NOT_SUPPORTED)
    refuse_mistakes(submissions)


def _split_groups(
    submissions: Sequence[Submitted[JobManifest]], priorities: Sequence[PriorityChoice], defaults: set[str]
) -> tuple[list[GroupPod], list[tuple[Submitted[JobManifest], PriorityChoice]]]:
    """Pods of groups with a queue, and all other jobs."""
    members: list[GroupPod] = []
    others: list[tuple[Submitted[JobManifest], PriorityChoice]] = []
    for submitted, priority in zip(submissions, priorities, strict=True):
        queue = _queue_name(submitted.spec, defaults)
        if submitted.spec.group is not None and queue:
            members.append(GroupPod(submitted, queue, priority))
        else:
            others.append((submitted, priority))
    return members, others


def _queue_name(job: JobManifest, namespaces_with_default_queue: set[str]) -> str:
    has_default = job.meta.namespace in namespaces_with_default_queue
    return job.queue_name or (DEFAULT_LOCAL_QUEUE if has_default else "")


def delete_jobs(cluster: Cluster, jobs: Iterable[Job], *, actor: str, now: datetime) -> dict[int, str]:
    """Delete jobs (with their workloads prefetched) and their workloads; their events stay. The successes among them
    are counted first, for jobs that wait for them.

    Returns why a job has to wait, by primary key: until its pods have stopped or, if it exists in the cluster, until it
    was deleted from it. Its finished workloads then stay as history. A group is deleted with its last pod.
    """
    jobs = list(jobs)
    lock_with_awaiting(cluster, [(each.namespace, each.name) for job in jobs for each in job.workloads.all()])
    open_start_gates(cluster, now, later=True)
    jobs, members = _with_whole_groups(jobs)
    waiting = withdraw_members(cluster, members, actor=actor, now=now) if members else {}
    for job in jobs:
        workloads = list(job.workloads.all())
        names = [(workload.namespace, workload.name) for workload in workloads]
        if job.pushed_generation:
            waiting[job.pk] = "is deleted once the cluster has deleted it"
        elif any(workload.pushed_sequence > 0 for workload in workloads):
            cancel(cluster, names, actor=actor, now=now)
            waiting[job.pk] = "is deleted once its pods have stopped and the cluster has deleted it"
        elif len(delete_workloads(cluster, names, actor=actor, now=now)) < len(names):
            waiting[job.pk] = "holds quota: it is deleted once its pods have stopped"
        if job.pk not in waiting:
            Job.objects.filter(pk=job.pk).delete()
            continue
        Job.objects.filter(pk=job.pk).update(deletion_requested_at=now)
        raise_push(Workload.objects.filter(job=job))
        request_push(cluster.name)
        waiting |= dict.fromkeys(job.members.values_list("pk", flat=True), waiting[job.pk])
    return waiting


def _with_whole_groups(jobs: Sequence[Job]) -> tuple[list[Job], list[Job]]:
    """Return the jobs, with groups in place of all their pods; and pods of groups that keep other pods."""
    pods: dict[int, list[Job]] = defaultdict(list)
    for job in jobs:
        if job.group_id is not None:
            pods[job.group_id].append(job)
    groups = Job.objects.filter(pk__in=pods).annotate(size=Count("members")).prefetch_related("workloads")
    whole = [group for group in groups if group.size == len(pods[group.pk])]
    gone = {group.pk for group in whole}
    return [*(job for job in jobs if job.group_id is None), *whole], [
        job for key, members in pods.items() if key not in gone for job in members
    ]


def _rows(cluster: Cluster, submissions: Sequence[Submitted[JobManifest]]) -> dict[tuple[str, str], Job]:
    jobs = [submitted.spec for submitted in submissions if not submitted.spec.meta.generate_name]
    free_names(cluster, ((job.kind, job.meta.namespace, job.meta.name) for job in jobs))
    rows = (
        Job.objects.filter(
            cluster=cluster,
            namespace__in={job.meta.namespace for job in jobs},
            name__in={job.meta.name for job in jobs},
        )
        .select_for_update()
        .order_by("pk")
    )
    return {(row.kind, row.key): row for row in rows}


def _locked_workloads(
    cluster: Cluster, changed: Sequence[Job], members: Sequence[GroupPod]
) -> dict[int, list[Workload]]:
    """Return the workloads of the jobs that change and of the groups that pods join, by job, all locked by one query.

    One query, because every writer of several workloads locks them in the order of their keys: locked job by job, in
    the order of the documents, an apply and a batch of the scheduler could wait for each other. A group's own row is
    locked before its workload, as by all that change groups.
    """
    jobs = [row.pk for row in changed]
    named = {(pod.submitted.spec.meta.namespace, pod.group.name) for pod in members}
    if named:
        groups = Job.objects.filter(
            cluster=cluster,
            kind=POD_GROUP,
            namespace__in={namespace for namespace, _ in named},
            name__in={name for _, name in named},
        )
        jobs += [row.pk for row in groups.select_for_update().order_by("pk") if (row.namespace, row.name) in named]
    found: dict[int, list[Workload]] = defaultdict(list)
    if jobs:
        rows = Workload.objects.filter(job__in=jobs).order_by("pk").select_for_update().prefetch_related("pod_sets")
        for workload in rows:
            found[workload.job_id or 0].append(workload)
    return found


def _namespaces_with_default_queue(cluster: Cluster, submissions: Sequence[Submitted[JobManifest]]) -> set[str]:
    namespaces = {submitted.spec.meta.namespace for submitted in submissions if not submitted.spec.queue_name}
    if not namespaces:
        return set()
    queues = LocalQueue.objects.filter(cluster=cluster, name=DEFAULT_LOCAL_QUEUE, namespace__in=namespaces)
    return set(queues.values_list("namespace", flat=True))


def _drawn_names(cluster: Cluster, submissions: Sequence[Submitted[JobManifest]]) -> dict[int, str]:
    """Generated names of jobs that request one, by submission."""
    asking = [submitted for submitted in submissions if submitted.spec.meta.generate_name]
    metas = [submitted.spec.meta for submitted in submissions]
    given = ((meta.namespace, meta.name) for meta in metas if not meta.generate_name)
    prefixes = [(submitted.spec.meta.namespace, submitted.spec.meta.name) for submitted in asking]
    names = draw_names(Job.objects.filter(cluster=cluster), prefixes, given)
    return {id(submitted): name for submitted, name in zip(asking, names, strict=True)}


def _plan(
    submitted: Submitted[JobManifest],
    name: str,
    priority: PriorityChoice,
    row: Job | None,
    namespaces_with_default_queue: set[str],
    applied_set: str,
    found_in_cluster: bool,
) -> _Plan:
    job = submitted.spec
    queue = _queue_name(job, namespaces_with_default_queue)
    stored = job_spec(
        job,
        name=name,
        uid=row.uid if row else uuid.UUID(job.uid) if found_in_cluster else None,
        queue_name=queue,
        applied_set=applied_set or (row.applied_set if row else ""),
        row_id=row.pk if row else None,
        found_in_cluster=row.found_in_cluster if row else found_in_cluster,
    )
    _check_containers(submitted, queue)
    workloads = job_workloads(job, stored, queue_name=queue, priority=priority) if queue else []
    return _Plan(submitted, stored, workloads)


def _check_containers(submitted: Submitted[JobManifest], queue: str) -> None:
    """Refuse a job without containers that a queue takes. A job that cannot run may be stored, but not queued."""
    job = submitted.spec
    if not queue or job.queue_name or all((each.template.get("spec") or {}).get("containers") for each in job.pod_sets):
        return
    rule = f"Required value: LocalQueue {queue} is used for all jobs of the namespace, and this one could never run"
    path = submitted.at("spec.template.spec.containers")
    submitted.report.error(path, None, rule, "Add at least one container.", MistakeReason.REQUIRED)


def _is_same(row: Job, plan: _Plan) -> bool:
    """Return whether the row equals the submission. A priority that changed through other objects since is ignored."""
    return bool(row.manifest == plan.job.manifest and row.managed == plan.job.managed)


def _join_set(row: Job, applied_set: str) -> None:
    if applied_set and row.applied_set != applied_set:
        Job.objects.filter(pk=row.pk).update(applied_set=applied_set)


def _check(submitted: Submitted[JobManifest], row: Job) -> bool:
    """Return whether the row may be replaced: it is not being deleted, and is not a pod of a group."""
    if row.group_id is not None:
        submitted.report.error(
            submitted.at(f"metadata.labels[{keys.POD_GROUP_NAME}]"),
            None,
            "can't be removed: the pod belongs to a group",
            "Use another name for the pod.",
            MistakeReason.IMMUTABLE,
        )
        return False
    if row.deletion_requested_at is None:
        return True
    submitted.report.error(
        submitted.at("metadata.name"),
        row.key,
        f"this {row.kind} is being deleted",
        "Wait until it is deleted, or use another name.",
        MistakeReason.IN_USE,
    )
    return False


def _store_alone(cluster: Cluster, jobs: Sequence[JobSpec], now: datetime) -> None:
    Job.objects.bulk_create(Job(cluster=cluster, created_at=now, name=job.name, **_columns(job)) for job in jobs)
    if jobs:
        request_push(cluster.name)


def _columns(job: JobSpec) -> dict[str, Any]:
    return {
        "kind": job.kind,
        "namespace": job.namespace,
        "uid": job.uid,
        "manifest": job.manifest,
        "labels": job.labels,
        "annotations": job.annotations,
        "api_version": job.api_version,
        "applied_set": job.applied_set,
        "managed": job.managed,
        "suspended": job.suspended,
        "found_in_cluster": job.found_in_cluster,
    }


def _replace(
    cluster: Cluster,
    plan: _Plan,
    row: Job,
    workloads: Sequence[Workload],
    actor: str,
    submitted_by: str,
    now: datetime,
) -> list[WorkloadSpec]:
    """Change the row and its workloads, which are locked, to the submission; returns the workloads to create."""
    there = sorted(workloads, key=lambda workload: workload.status == WorkloadStatus.FINISHED)
    matched = match_workloads(cluster, row, plan.submitted.spec, plan.job, plan.workloads, there, now)
    kept = [(workload, _with_priority_kept(plan, workload, spec)) for workload, spec in matched.kept]
    if matched.failure:
        plan.submitted.report.error(plan.submitted.at("spec"), None, matched.failure, "Correct the job.")
    _refuse_frozen(plan, row, kept, matched.surplus)
    _refuse_stopping(cluster, plan, there, matched, actor, now)
    if plan.submitted.report.errors:
        return []
    for workload, spec in kept:
        change_workload(workload, spec, actor=actor, now=now, submitted_by=submitted_by)
    for name, why in matched.held.items():
        put_on_hold(cluster, [(row.namespace, name)], why, actor=actor, now=now)
    again = [_key(workload) for workload, _ in kept if workload.on_hold and workload.name not in matched.held]
    take_off_hold(cluster, again, actor=actor, now=now)
    for name, (reason, message) in matched.finished.items():
        record_finished(cluster, [(row.namespace, name)], FinishedReason(reason), message, actor=actor, now=now)
    remove_workloads(cluster, matched.surplus, actor=actor, now=now)
    for column, value in _columns(plan.job).items():
        setattr(row, column, value)
    row.suspended = row.suspended and all(workload.quota_reserved_at is None for workload, _ in kept)
    row.generation += 1
    row.save(update_fields=[*_columns(plan.job), "generation", "updated_at"])
    _tell_cluster(cluster, row)
    return matched.missing


def _refuse_stopping(
    cluster: Cluster, plan: _Plan, there: Sequence[Workload], matched: Matched, actor: str, now: datetime
) -> None:
    """Refuse a set that wants a group again while the group's workload is being stopped. Free the names of workloads
    that have stopped."""
    if plan.submitted.spec.workloads_per is not WorkloadsPer.GROUP:
        return
    wanted = {spec.name for spec in matched.missing}
    stopping = [each for each, _ in matched.kept if each.deletion_requested_at is not None]
    earlier = [each for each in there if each.name in wanted]
    stopping += [each for each in earlier if not delete_workloads(cluster, [_key(each)], actor=actor, now=now)]
    for workload in stopping:
        path, rule = plan.submitted.at(plan.submitted.spec.size_path), f"workload {workload.name} is being stopped"
        plan.submitted.report.error(path, None, rule, "Wait until its pods have stopped.", MistakeReason.IN_USE)


def _key(workload: Workload) -> tuple[str, str]:
    return workload.namespace, workload.name


def _with_priority_kept(plan: _Plan, workload: Workload, spec: WorkloadSpec) -> WorkloadSpec:
    """Keep the cluster's default class, which a job that names no class got at its creation."""
    job = plan.submitted.spec
    names_one = job.workload_priority_class or job.hinted_priority_class or job.pod_priority_class
    kinds = (workload.priority_class_kind, spec.priority_class_kind)
    if names_one or "WorkloadPriorityClass" in kinds:
        return spec
    return replace(
        spec,
        priority=workload.priority,
        priority_class_kind=workload.priority_class_kind,
        priority_class_name=workload.priority_class_name,
    )


def _tell_cluster(cluster: Cluster, row: Job) -> None:
    """Push the change if the job exists in the cluster."""
    told = Workload.objects.filter(job=row, pushed_sequence__gt=0).exclude(status=WorkloadStatus.FINISHED)
    if raise_push(told) or row.pushed_generation:
        request_push(cluster.name)


def _refuse_frozen(
    plan: _Plan, row: Job, kept: Sequence[tuple[Workload, WorkloadSpec]], surplus: Sequence[Workload]
) -> None:
    broken: Mapping[str, str] = {}
    for workload, spec in kept:
        broken = frozen_paths(job_paths(plan.submitted.spec), workload, spec)
        if broken:
            break
    one = plan.submitted.spec.workloads_per is WorkloadsPer.JOB
    if one and not plan.job.managed and any(workload.quota_reserved_at is not None for workload in surplus):
        broken = {f"metadata.labels[{keys.QUEUE_NAME}]": "can't be removed while the job holds quota"}
    for path, rule in broken.items():
        plan.submitted.report.error(
            plan.submitted.at(path),
            None,
            rule,
            f"Wait until the {row.kind} has ended, or delete it and submit it again.",
            MistakeReason.IMMUTABLE,
        )
