"""Stores pods of checked plans: the group, its pods, and their workload."""

import uuid
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db.models import F

from accounts.models import Cluster
from accounts.services.apply_result import Action, Applied
from foundation.wake_ups import request_push
from queues.manifests import kueue_keys as keys
from queues.manifests.generated_name import generated_name
from queues.manifests.job_workloads import job_spec, job_workloads
from queues.manifests.pod_group import POD, POD_GROUP
from queues.manifests.workload import JobSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import change_workload, pod_set_specs
from queues.services.pod_groups.life import is_followed, members_of, refresh_groups, sized_pod_sets, wait_for_pods
from queues.services.pod_groups.plans import GroupPlan, GroupPod
from queues.services.submission import create_workloads
from queues.services.workloads import raise_push


def store_groups(
    cluster: Cluster,
    plans: Iterable[GroupPlan],
    *,
    actor: str,
    submitted_by: str = "",
    applied_set: str = "",
    found_in_cluster: bool = False,
    now: datetime,
) -> dict[int, Applied]:
    """Store the pods, and create or change their groups' workloads. Returns the result per submission identity."""
    applied: dict[int, Applied] = {}
    for plan in plans:
        applied |= _Store(cluster, plan, actor, submitted_by, applied_set, found_in_cluster, now).run()
    return applied


class _Store:
    def __init__(
        self,
        cluster: Cluster,
        plan: GroupPlan,
        actor: str,
        submitted_by: str,
        applied_set: str,
        found_in_cluster: bool,
        now: datetime,
    ) -> None:
        self._cluster = cluster
        self._plan = plan
        self._actor = actor
        self._submitted_by = submitted_by
        self._set = applied_set
        self._found = found_in_cluster
        self._now = now

    def run(self) -> dict[int, Applied]:
        """Store the group first, then its pods, then its workload."""
        plan = self._plan
        fresh = plan.group is None
        group = plan.group or Job(
            cluster=self._cluster, namespace=plan.namespace, name=plan.name, kind=POD_GROUP, created_at=self._now,
            manifest={}, found_in_cluster=self._found, suspended=True,
        )  # fmt: skip
        manifest = _group_manifest(plan)
        if group.manifest != manifest and (fresh or not self._found):
            group.manifest = manifest
            group.save()
        applied: dict[int, Applied] = {}
        changed = False
        for pod in plan.pods:
            result = self._store_pod(pod, group)
            changed |= result.action is not Action.UNCHANGED
            applied[id(pod.submitted)] = result
        followed = is_followed(group, members_of(group))
        if fresh:
            self._create_workload(group)
            if followed and not plan.prebuilt:
                wait_for_pods(group, self._now)
        elif changed and not followed:
            self._change_workload()
        if fresh or changed:
            refresh_groups(self._cluster, [group.pk], anew=True, actor=self._actor, now=self._now)
        return applied

    def _store_pod(self, pod: GroupPod, group: Job) -> Applied:
        job, report = pod.submitted.spec, pod.submitted.report
        row = None if job.meta.generate_name else self._plan.rows.get(job.meta.name)
        name = generated_name(job.meta.name) if job.meta.generate_name else job.meta.name
        spec = job_spec(
            job,
            name=name,
            uid=row.uid if row else uuid.UUID(job.uid) if self._found and job.uid else None,
            queue_name=pod.queue_name,
            applied_set=self._set or (row.applied_set if row else ""),
            row_id=row.pk if row else None,
            found_in_cluster=row.found_in_cluster if row else self._found,
        )
        action = self._write_pod(spec, row, group)
        if row is not None and row.phase and action is Action.UNCHANGED:
            report.warn(pod.submitted.at("metadata.name"), f"this pod has ended ({row.phase}) and is not run again")
        return Applied(POD, spec.namespace, spec.name, action, tuple(report.warnings))

    def _write_pod(self, spec: JobSpec, row: Job | None, group: Job) -> Action:
        columns = {
            "namespace": spec.namespace, "uid": spec.uid, "manifest": spec.manifest, "labels": spec.labels,
            "annotations": spec.annotations, "api_version": spec.api_version, "applied_set": spec.applied_set,
            "managed": spec.managed, "suspended": spec.suspended, "found_in_cluster": spec.found_in_cluster,
        }  # fmt: skip
        if row is None:
            Job.objects.create(
                cluster=self._cluster, kind=POD, name=spec.name, group=group, created_at=self._now, **columns
            )
            return Action.CREATED
        if row.manifest == spec.manifest:
            Job.objects.filter(pk=row.pk).exclude(applied_set=spec.applied_set).update(applied_set=spec.applied_set)
            return Action.UNCHANGED
        Job.objects.filter(pk=row.pk).update(**columns, generation=F("generation") + 1, updated_at=self._now)
        return Action.CONFIGURED

    def _head(self, group: Job, first: GroupPod) -> WorkloadSpec:
        """Return the workload with the fields of its first pod, and with its pod set."""
        stored = JobSpec(
            POD_GROUP, group.name, group.namespace, group.manifest, uid=group.uid, row_id=group.pk,
            found_in_cluster=group.found_in_cluster,
        )  # fmt: skip
        spec = first.submitted.spec
        (head,) = job_workloads(spec, stored, queue_name=first.queue_name, priority=first.priority)
        return replace(
            head,
            name=group.name,
            labels={},
            annotations={**spec.workload_annotations, keys.IS_GROUP_WORKLOAD: "true"},
        )

    def _create_workload(self, group: Job) -> None:
        spec = self._head(group, self._plan.pods[0])
        pod_sets = sized_pod_sets(self._plan.coming, self._plan.preview.sizes)
        spec = replace(spec, pod_sets=pod_sets or spec.pod_sets)
        create_workloads(
            self._cluster, [spec], actor=self._actor, submitted_by=self._submitted_by, now=self._now,
            limited=not self._found,
        )  # fmt: skip

    def _change_workload(self) -> None:
        """If the group's first pod is submitted again, its fields apply to the workload. New pods are pushed to the
        cluster."""
        plan, workload = self._plan, self._plan.workload
        assert plan.group is not None  # the workload exists or is created
        assert workload is not None
        if workload.quota_reserved_at is not None:
            raise_push(Workload.objects.filter(pk=workload.pk))
            request_push(self._cluster.name)
            return
        first = next((member.row.name for member in plan.members if member.counts), "")
        pod = next((pod for pod in plan.pods if pod.submitted.spec.meta.name == first), None)
        if pod is not None:
            spec = replace(self._head(plan.group, pod), pod_sets=pod_set_specs(workload))
            change_workload(workload, spec, actor=self._actor, now=self._now, submitted_by=self._submitted_by)


def _group_manifest(plan: GroupPlan) -> dict[str, Any]:
    first = plan.pods[0].group
    return {
        "apiVersion": "v1",
        "kind": POD_GROUP,
        "metadata": {"name": plan.name, "namespace": plan.namespace},
        "spec": {"totalCount": first.total_count, "fastAdmission": first.fast_admission, "serving": first.serving},
    }
