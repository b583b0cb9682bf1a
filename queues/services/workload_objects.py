"""Stores submitted Workload objects: creates new ones in bulk, and replaces existing ones where Kueue allows it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from accounts.models import Cluster
from accounts.services.apply_result import Action, Applied, Submitted, refuse_mistakes
from accounts.services.object_status import Status, server_metadata, timestamp
from queues.manifests.translated_condition import translated_condition
from queues.manifests.workload import WorkloadSpec
from queues.manifests.workload_object import write_workload
from queues.models import PodSet, ServedObject, Workload
from queues.services.admission_rows import read_topology_assignment
from queues.services.job_changes import WORKLOAD_PATHS, change_workload, frozen_paths, pod_set_specs
from queues.services.submission import create_workloads
from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.manifest import MistakeReason
from scheduling.model.quantity import format_amounts
from scheduling.model.topology_encoding import encode
from scheduling.model.vocabulary import WorkloadStatus

_KIND = "Workload"


def apply_workloads(
    cluster: Cluster,
    submissions: Sequence[Submitted[WorkloadSpec]],
    *,
    actor: str,
    submitted_by: str = "",
    applied_set: str = "",
    now: datetime | None = None,
) -> list[Applied]:
    """Store Workload objects, within the caller's transaction. Raises `ManifestErrors`."""
    now = now or timezone.now()
    rows = _rows(cluster, submissions)
    created: list[WorkloadSpec] = []
    changed: list[tuple[Workload, WorkloadSpec]] = []
    applied: list[Applied | WorkloadSpec] = []
    for submitted in submissions:
        spec = replace(submitted.spec, api_version=submitted.api_version, applied_set=applied_set)
        row = None if spec.generate_name else rows.get(f"{spec.namespace}/{spec.name}")
        if row is None:
            created.append(spec)
            applied.append(spec)
            continue
        _check(submitted, row)
        differs = _differs(row, spec)
        if differs:
            changed.append((row, spec))
        elif applied_set and row.applied_set != applied_set:
            Workload.objects.filter(pk=row.pk).update(applied_set=applied_set)
        action = Action.CONFIGURED if differs else Action.UNCHANGED
        applied.append(Applied(_KIND, row.namespace, row.name, action, tuple(submitted.report.warnings)))
    refuse_mistakes(submissions)
    for row, spec in changed:
        change_workload(row, spec, actor=actor, now=now, submitted_by=submitted_by)
    stored = iter(create_workloads(cluster, created, actor=actor, submitted_by=submitted_by, now=now))
    return [
        Applied(_KIND, spec.namespace, next(stored).name, Action.CREATED, tuple(submitted.report.warnings))
        if isinstance(spec, WorkloadSpec)
        else spec
        for submitted, spec in zip(submissions, applied, strict=True)
    ]


def workload_spec(row: Workload) -> WorkloadSpec:
    """Return the spec of a row with prefetched pod sets. Applying it again changes nothing."""
    return WorkloadSpec(
        namespace=row.namespace,
        name=row.name,
        queue_name=row.queue_name,
        pod_sets=pod_set_specs(row),
        priority=row.priority,
        priority_class_kind=row.priority_class_kind,
        priority_class_name=row.priority_class_name,
        active=row.active,
        never_preempt=row.never_preempt,
        maximum_execution_seconds=row.maximum_execution_seconds,
        preemption_gates=tuple(row.preemption_gates),
        labels=row.labels,
        annotations=row.annotations,
    )


def workload_manifest(row: Workload) -> dict[str, Any]:
    """Return the manifest of a workload, with the fields that an API server adds, and its status."""
    written = write_workload(workload_spec(row))
    written["metadata"] |= server_metadata(row)
    owners = owner_references(row)
    if owners:
        written["metadata"]["ownerReferences"] = owners
    status = workload_status(row)
    return {**written, "status": status} if status else written


def owner_references(row: Workload) -> list[dict[str, Any]]:
    """Return the job of a workload, as the object that owns it."""
    if row.job is None:
        return []
    return [
        {
            "apiVersion": row.job.manifest.get("apiVersion", ""),
            "kind": row.job.kind,
            "name": row.job.name,
            "uid": str(row.job.uid),
            "controller": True,
            "blockOwnerDeletion": True,
        }
    ]


def workload_status(row: Workload) -> Status:
    """Return the status of a row whose pod sets are prefetched: `admission`, conditions, admission checks and
    requeues."""
    pod_sets = sorted(row.pod_sets.all(), key=lambda found: found.position)
    status: Status = {}
    if row.quota_reserved_at is not None:
        status["admission"] = {
            "clusterQueue": row.cluster_queue_name,
            "podSetAssignments": [_assignment(pod_set) for pod_set in pod_sets],
        }
    translated = translated_condition(row.annotations, row.created_at)
    if row.conditions or translated:
        status["conditions"] = [*row.conditions, *([translated] if translated else [])]
    if row.admission_check_states:
        status["admissionChecks"] = row.admission_check_states
    if row.requeue_count or row.requeue_at:
        at = {"requeueAt": timestamp(row.requeue_at)} if row.requeue_at else {}
        status["requeueState"] = {"count": row.requeue_count} | at
    reclaimable = [
        {"name": pod_set.name, "count": pod_set.reclaimable_count} for pod_set in pod_sets if pod_set.reclaimable_count
    ]
    if reclaimable:
        status["reclaimablePods"] = reclaimable
    if row.accumulated_execution_seconds:
        status["accumulatedPastExecutionTimeSeconds"] = row.accumulated_execution_seconds
    if row.eviction_counts:
        status["schedulingStats"] = {"evictions": row.eviction_counts}
    if row.unhealthy_nodes:
        status["unhealthyNodes"] = [{"name": name} if isinstance(name, str) else name for name in row.unhealthy_nodes]
    if row.gate_opened_at is not None:
        opened = {"name": VARIANT_GATE, "position": "Open", "lastTransitionTime": timestamp(row.gate_opened_at)}
        status["preemptionGates"] = [opened]
    return status | _dispatch(row)


def jobs_unknown_to_kueue(cluster: Cluster) -> list[str]:
    """Return the jobs that kueueweb started and whose Workload in the cluster does not show their quota: a Kueue would
    stop them. One line each, with the reason if the cluster refused it."""
    running = Workload.objects.filter(
        cluster=cluster, quota_reserved_at__isnull=False, job__isnull=False, pushed_sequence__gt=0
    ).exclude(status=WorkloadStatus.FINISHED)
    entries = ServedObject.objects.filter(cluster=cluster, kind="Workload").only("name", "uid", "status", "problem")
    told = {entry.key: entry for entry in entries}
    found = []
    for row in running.select_related("job").order_by("pk"):
        entry = told.get(row.key)
        if entry is not None and entry.uid and not entry.problem and (entry.status or {}).get("admission"):
            continue
        job = row.job
        why = (entry.problem if entry is not None else "") or "no Workload in the cluster shows its admission"
        found.append(f"{job.kind if job else 'Workload'} {row.namespace}/{job.name if job else row.name}: {why}")
    return found


def _dispatch(row: Workload) -> Status:
    """Return the worker that runs it, or the nominated workers."""
    if row.multikueue.get("cluster"):
        return {"clusterName": row.multikueue["cluster"]}
    nominated = row.multikueue.get("nominated")
    return {"nominatedClusterNames": nominated} if nominated else {}


def _assignment(pod_set: PodSet) -> dict[str, Any]:
    count = pod_set.count if pod_set.admitted_count is None else pod_set.admitted_count
    found: dict[str, Any] = {
        "name": pod_set.name,
        "flavors": dict(pod_set.flavors),
        "resourceUsage": format_amounts(pod_set.resource_usage),
        "count": count,
    }
    assigned = read_topology_assignment(pod_set.topology_assignment)
    if assigned is not None:
        found["topologyAssignment"] = encode(assigned)
    delayed = (pod_set.topology_assignment or {}).get("delayed")
    return {**found, "delayedTopologyRequest": delayed} if delayed else found


def _rows(cluster: Cluster, submissions: Sequence[Submitted[WorkloadSpec]]) -> dict[str, Workload]:
    specs = [submitted.spec for submitted in submissions if not submitted.spec.generate_name]
    rows = (
        Workload.objects.filter(
            cluster=cluster, namespace__in={spec.namespace for spec in specs}, name__in={spec.name for spec in specs}
        )
        .select_for_update()
        .prefetch_related("pod_sets")
    )
    return {row.key: row for row in rows}


def _differs(row: Workload, spec: WorkloadSpec) -> bool:
    there = workload_spec(row)
    if spec.priority is None and not spec.priority_class_name:
        there = replace(there, priority=None, priority_class_kind="", priority_class_name="")
    return there != replace(spec, api_version="", applied_set="", document=0, job=None)


def _check(submitted: Submitted[WorkloadSpec], row: Workload) -> None:
    if row.job_id is not None:
        _check_owned(submitted, row)
    for path, rule in frozen_paths(WORKLOAD_PATHS, row, submitted.spec).items():
        submitted.report.error(
            submitted.at(path),
            None,
            rule,
            "Wait until it has ended, or create another workload.",
            MistakeReason.IMMUTABLE,
        )


def _check_owned(submitted: Submitted[WorkloadSpec], row: Workload) -> None:
    """A job's workload follows its job. Only `active` and the priority may be changed here."""
    spec = submitted.spec
    follows = {
        "spec.podSets": pod_set_specs(row) != spec.pod_sets,
        "spec.queueName": row.queue_name != spec.queue_name,
        "spec.maximumExecutionTimeSeconds": row.maximum_execution_seconds != spec.maximum_execution_seconds,
    }
    for path, differs in follows.items():
        if differs:
            submitted.report.error(
                submitted.at(path),
                None,
                "follows the job that owns this workload",
                "Change the job instead.",
                MistakeReason.FORBIDDEN,
            )
