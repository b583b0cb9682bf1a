"""The life of pod groups: the group's workload follows the pods that exist.

A group is a `Job` row of kind PodGroup that owns the workload; each of its pods is a `Job` row of kind Pod that
references the group. The workload is composed once all pods exist; until then it is not queued. After that its pod
sets are fixed: a pod that fails or is deleted is missed until another one of its role replaces it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any

from django.db import transaction
from django.utils import timezone

from accounts.events import request_push, wake_scheduler
from accounts.models import Cluster
from queues.manifests.job import JobManifest
from queues.manifests.job_workloads import JOB_READERS
from queues.manifests.kueue_keys import RETRIABLE_IN_GROUP, ROLE_HASH
from queues.manifests.pod_group import POD, POD_GROUP, PodGroupMember, role_hash
from queues.manifests.workload import PodSetSpec
from queues.models import Job, PodSet, Workload
from queues.services.job_changes import change_workload, pod_set_specs
from queues.services.workload_events import log_event
from queues.services.workload_objects import workload_spec
from queues.services.workloads import raise_push, record_finished
from scheduling.manifest import FieldReader, ValidationReport
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import (
    ConditionStatus,
    ConditionType,
    FinishedReason,
    PendingReason,
    ReplacementPodsReason,
    WorkloadStatus,
)


class MemberPhase(StrEnum):
    """How a pod of a group ended; None while it has not."""

    SUCCEEDED = "Succeeded"
    FAILED = "Failed"


class Member:
    """A pod of a group: its row, and its manifest, which is parsed on first use."""

    def __init__(self, row: Job) -> None:
        self.row = row

    @cached_property
    def job(self) -> JobManifest:
        top = FieldReader(ValidationReport(), "", self.row.manifest)
        top.ignore("apiVersion", "kind")
        return JOB_READERS["v1", POD](top, None)

    @property
    def group(self) -> PodGroupMember:
        """The group fields of its manifest."""
        assert self.job.group is not None  # a member references its group
        return self.job.group

    @property
    def retriable(self) -> bool:
        """Whether the group waits for another pod if this one fails."""
        return self._annotations.get(RETRIABLE_IN_GROUP) != "false"

    @cached_property
    def role(self) -> str:
        """The pod set that it belongs to."""
        return str(self._annotations.get(ROLE_HASH) or role_hash(self.row.manifest))

    @property
    def counts(self) -> bool:
        """Whether it takes a place in the group: it may run, runs, or has succeeded."""
        return self.row.phase != MemberPhase.FAILED and self.row.deletion_requested_at is None

    @property
    def is_replaced(self) -> bool:
        """Whether it failed and another pod has its place: it only waits to lose its finalizer."""
        return self.row.phase == MemberPhase.FAILED and self.row.deletion_requested_at is not None

    @property
    def _annotations(self) -> Mapping[str, str]:
        return (self.row.manifest.get("metadata") or {}).get("annotations") or {}


def members_of(group: Job) -> list[Member]:
    """The pods of a group in order of creation."""
    return [Member(row) for row in Job.objects.filter(group=group).order_by("pk")]


def compose(jobs: Sequence[JobManifest], stated: PodGroupMember) -> tuple[PodSetSpec, ...]:
    """The pod sets of a group with these pods: one per role, by name; with fast admission one of all its pods."""
    if stated.fast_admission:
        return (replace(jobs[0].pod_sets[0], count=stated.total_count),)
    roles: dict[str, PodSetSpec] = {}
    for job in jobs:
        roles.setdefault(job.pod_sets[0].name, job.pod_sets[0])
    counts = Counter(job.pod_sets[0].name for job in jobs)
    return tuple(replace(roles[name], count=counts[name]) for name in sorted(roles))


def excess_message(pod: str) -> str:
    """The message of the event of a pod that its group has no place for."""
    return f"Pod {pod} exceeds the size of the group"


def is_followed(group: Job, members: Iterable[Member]) -> bool:
    """Whether others made the group and all of its pods: the watcher follows it by Kueue's controller."""
    return group.found_in_cluster and all(member.row.found_in_cluster for member in members)


def is_composed(workload: Workload) -> bool:
    """Whether all pods of its group existed once, so that its pod sets are those of the whole group."""
    condition = _condition(workload, ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    return condition is None or condition["reason"] != PendingReason.POD_GROUP_INCOMPLETE


def _condition(workload: Workload, type_: ConditionType) -> dict[str, Any] | None:
    """The condition of that type, if it is True."""
    found = (each for each in workload.conditions if each["type"] == type_ and each["status"] == "True")
    return next(found, None)


def wait_for_pods(group: Job, now: datetime) -> None:
    """Have the new workload of a group that others make wait: the watcher composes it once all pods are there."""
    workload = Workload.objects.select_for_update().get(job=group)
    message = f"Pod group {group.name} is not complete"
    set_condition(workload, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, message, now)


def set_condition(workload: Workload, status: ConditionStatus, reason: str, message: str, now: datetime) -> bool:
    """Set WaitingForReplacementPods of a locked row; whether its status or reason changed."""
    type_ = ConditionType.WAITING_FOR_REPLACEMENT_PODS
    others = [found for found in workload.conditions if found["type"] != type_]
    before = next((found for found in workload.conditions if found["type"] == type_), None)
    told = {"type": str(type_), "status": str(status), "reason": str(reason), "message": message}
    same = before is not None and before["status"] == status
    condition = {**told, "lastTransitionTime": before["lastTransitionTime"] if before and same else rfc3339(now)}
    if before == condition:
        return False
    workload.conditions = [*others, condition]
    workload.save(update_fields=["conditions", "updated_at"])
    return not (same and before is not None and before["reason"] == condition["reason"])


def record_phases(cluster: Cluster, phases: Mapping[int, MemberPhase], *, now: datetime | None = None) -> None:
    """Record how pods of groups ended, by the keys of their rows, and update their groups."""
    with transaction.atomic():
        changed: set[int] = set()
        for phase in MemberPhase:
            ended = [pk for pk, found in phases.items() if found is phase]
            rows = Job.objects.filter(cluster=cluster, pk__in=ended, group__isnull=False).exclude(phase=phase)
            changed |= {row.group_id or 0 for row in rows.only("group_id")}
            rows.update(phase=phase)
        refresh_groups(cluster, changed, now=now)


def forget_members(cluster: Cluster, members: Collection[int], *, now: datetime | None = None) -> None:
    """Remove these pods (by the keys of their rows), which no longer exist. One that succeeded still counts."""
    with transaction.atomic():
        gone = Job.objects.filter(cluster=cluster, pk__in=list(members), group__isnull=False)
        gone = gone.exclude(phase=MemberPhase.SUCCEEDED, deletion_requested_at=None)
        groups = {row.group_id or 0 for row in gone.only("group_id")}
        gone.delete()
        refresh_groups(cluster, groups, now=now)


def withdraw_members(cluster: Cluster, rows: Sequence[Job], *, actor: str, now: datetime) -> dict[int, str]:
    """Remove some pods of a group. Returns why some have to wait, by row key."""
    waiting: dict[int, str] = {}
    told = Workload.objects.filter(job__in={row.group_id for row in rows}, pushed_sequence__gt=0)
    groups = set(told.exclude(status=WorkloadStatus.FINISHED).values_list("job_id", flat=True))
    for row in rows:
        if row.group_id in groups and not row.phase:
            waiting[row.pk] = "is deleted once the cluster has deleted it"
    Job.objects.filter(pk__in=waiting).update(deletion_requested_at=now)
    Job.objects.filter(pk__in=[row.pk for row in rows if row.pk not in waiting]).delete()
    if waiting:
        raise_push(told)
        request_push(cluster.name)
    refresh_groups(cluster, {row.group_id or 0 for row in rows}, actor=actor, now=now)
    return waiting


def refresh_groups(
    cluster: Cluster, groups: Collection[int], *, actor: str = "watcher", now: datetime | None = None
) -> None:
    """Update the workloads of these groups to the pods that the groups have."""
    if not groups:
        return
    with transaction.atomic():
        rows = Job.objects.filter(cluster=cluster, pk__in=list(groups), kind=POD_GROUP)
        for group in rows.select_for_update().order_by("pk"):
            workload = (
                Workload.objects.filter(job=group)
                .exclude(status=WorkloadStatus.FINISHED)
                .select_for_update()
                .prefetch_related("pod_sets")
                .first()
            )
            if workload is not None:
                _Refresh(cluster, group, workload, actor, now or timezone.now()).run()
        wake_scheduler(cluster.name)


class _Refresh:
    """The update of one group, with its rows locked."""

    def __init__(self, cluster: Cluster, group: Job, workload: Workload, actor: str, now: datetime) -> None:
        self._cluster = cluster
        self._group = group
        self._workload = workload
        self._actor = actor
        self._now = now
        self._members = self._present()
        spec = group.manifest["spec"]
        self._total = int(spec["totalCount"])
        self._fast = bool(spec.get("fastAdmission"))
        self._serving = bool(spec.get("serving"))

    def run(self) -> None:
        """Finish the group, or update its pod sets, surplus pods, missing pods and reclaimable pods.

        The watcher does so for a group whose pods others made, by Kueue's controller.
        """
        if is_followed(self._group, self._members):
            return
        ended = self._ended()
        if ended is not None:
            key = (self._workload.namespace, self._workload.name)
            record_finished(self._cluster, [key], *ended, actor=self._actor, now=self._now)
            self._push()  # its pods lose their finalizers
            return
        if not self._has_all_places() or self._workload.quota_reserved_at is None:
            self._compose()
        self._remove_surplus()
        self._wait()
        self._reclaim()

    def _present(self) -> list[Member]:
        return [member for member in members_of(self._group) if not member.is_replaced]

    def _has_all_places(self) -> bool:
        """Whether all pods of the group existed once."""
        return sum(pod_set.count for pod_set in self._workload.pod_sets.all()) >= self._total

    def _push(self) -> None:
        raise_push(Workload.objects.filter(pk=self._workload.pk))
        request_push(self._cluster.name)

    def _live(self, role: str = "") -> list[Member]:
        return [member for member in self._members if member.counts and role in ("", member.role)]

    def _ended(self) -> tuple[FinishedReason, str] | None:
        """Whether the group has ended: all pods succeeded, or no pod is active and one of them says not to wait."""
        if not self._members:
            if _condition(self._workload, ConditionType.EVICTED) is None:
                return FinishedReason.OWNER_NOT_FOUND, "The group has no pods left"
            return None
        succeeded = sum(member.row.phase == MemberPhase.SUCCEEDED for member in self._members)
        message = f"Pods succeeded: {succeeded}/{self._total}."
        if succeeded >= self._total and not self._serving:
            return FinishedReason.SUCCEEDED, message
        at_work = any(not member.row.phase for member in self._members)
        if not at_work and any(not member.retriable for member in self._members):
            return FinishedReason.FAILED, message
        return None

    def _compose(self) -> None:
        """Until all pods exist, the pod sets are those of the present pods; after that they are those of the whole
        group."""
        live = self._live()[: self._total]
        composed = self._has_all_places()
        if not live or (composed and len(live) < self._total):
            return
        pod_sets = compose([member.job for member in live], live[0].group)
        if pod_sets == pod_set_specs(self._workload):
            return
        if not composed and sum(pod_set.count for pod_set in pod_sets) >= self._total:
            # Kueue creates the workload at this moment, so its place in the queue counts from here.
            Workload.objects.filter(pk=self._workload.pk).update(created_at=self._now)
        change_workload(
            self._workload,
            replace(workload_spec(self._workload), pod_sets=pod_sets),
            actor=self._actor,
            now=self._now,
        )
        self._workload = Workload.objects.prefetch_related("pod_sets").get(pk=self._workload.pk)

    def _remove_surplus(self) -> None:
        """Delete pods for which the group has no place, latest first, and let failed pods go that were replaced, the
        earliest first. Before the group is complete no failed pod is kept."""
        failed = [member for member in self._members if member.row.phase == MemberPhase.FAILED]
        surplus: list[Member] = []
        if self._has_all_places():
            failed = []
            places = {pod_set.name: pod_set.count for pod_set in self._workload.pod_sets.all()}
            for role in dict.fromkeys(member.role for member in self._members):
                live, count = self._live(role), places.get(role, 0)
                surplus += live[count:]
                ended = [each for each in self._members if each.row.phase == MemberPhase.FAILED and each.role == role]
                failed += ended[: max(0, len(ended) + len(live) - count)]
        self._leave(failed)
        Job.objects.filter(pk__in=[member.row.pk for member in surplus]).update(deletion_requested_at=self._now)
        for member in surplus:
            self._log("ExcessPodDeleted", excess_message(member.row.name))
        if surplus or failed:
            self._push()
            self._members = self._present()

    def _leave(self, failed: Sequence[Member]) -> None:
        """Drop failed pods from the group. One that others made keeps its row until it has lost its finalizer."""
        rows = Job.objects.filter(pk__in=[member.row.pk for member in failed])
        rows.filter(found_in_cluster=False).delete()
        rows.update(deletion_requested_at=self._now)

    def _wait(self) -> None:
        """Set WaitingForReplacementPods while pods are missing. The scheduler skips the workload meanwhile."""
        waiting = self._incomplete() or self._absent()
        if waiting is not None:
            if set_condition(self._workload, ConditionStatus.TRUE, *waiting, self._now):
                incomplete = waiting[0] == PendingReason.POD_GROUP_INCOMPLETE
                event = "ErrWorkloadCompose" if incomplete else ConditionType.WAITING_FOR_REPLACEMENT_PODS
                self._log(event, waiting[1], warning=True)
        elif _condition(self._workload, ConditionType.WAITING_FOR_REPLACEMENT_PODS) is not None:
            reason, message = ReplacementPodsReason.PODS_READY, "No pods need replacement"
            set_condition(self._workload, ConditionStatus.FALSE, reason, message, self._now)

    def _incomplete(self) -> tuple[str, str] | None:
        if self._has_all_places():
            return None
        there = f"{len(self._live())} of its {self._total} pods are there"
        return PendingReason.POD_GROUP_INCOMPLETE, f"Pod group {self._group.name} is not complete: {there}"

    def _absent(self) -> tuple[str, str] | None:
        """The number of pods that are missing. With fast admission, pods that were never created do not count."""
        places = self._total
        if self._fast:
            places = max(1, min(self._total, len(self._members)))
        absent = places - len(self._live())
        if absent <= 0:
            return None
        evicted = _condition(self._workload, ConditionType.EVICTED)
        if evicted is not None:
            return evicted["reason"], evicted["message"]
        return ReplacementPodsReason.PODS_FAILED, "Some Failed pods need replacement"

    def _reclaim(self) -> None:
        """Release what succeeded pods requested: Kueue's reclaimablePods."""
        if self._serving:
            return
        done = Counter(member.role for member in self._members if member.row.phase == MemberPhase.SUCCEEDED)
        for role, count in done.items():
            rows = PodSet.objects.filter(workload=self._workload, name=role, count__gte=count)
            rows.filter(reclaimable_count__lt=count).update(reclaimable_count=count)

    def _log(self, reason: str, message: str, *, warning: bool = False) -> None:
        log_event(self._workload, reason, message, actor=self._actor, now=self._now, warning=warning)
