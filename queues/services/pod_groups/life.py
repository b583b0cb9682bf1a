"""The life of pod groups: the controller's pass (`clusters.jobs.live_groups`) runs when the pods of a group change.

A group is a `Job` row of kind PodGroup that owns the workload; each of its pods is a `Job` row of kind Pod that
references the group. The workload is composed once all pods exist; until then it is not queued. After that its pod
sets are fixed: a pod that fails or is deleted is missed until another one of its role replaces it.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from functools import cached_property
from typing import Any, Final

from django.db import transaction
from django.utils import timezone

from accounts.models import Cluster
from foundation.wake_ups import request_push, wake_scheduler
from queues.manifests.job import JobManifest
from queues.manifests.job_workloads import JOB_READERS
from queues.manifests.kueue_keys import RETRIABLE_IN_GROUP, ROLE_HASH
from queues.manifests.pod_group import POD, POD_GROUP, PodGroupMember, role_hash
from queues.manifests.workload import PodSetSpec
from queues.models import Job, Workload
from queues.services.workloads import raise_push
from scheduling.manifest import FieldReader, ValidationReport
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import (
    ConditionStatus,
    ConditionType,
    PendingReason,
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
        """Whether the pod takes a place in the group: it may run, runs, or has succeeded."""
        return self.row.phase != MemberPhase.FAILED and self.row.deletion_requested_at is None

    @property
    def is_replaced(self) -> bool:
        """Whether it failed and another pod has taken its place. It only waits for the removal of its finalizer."""
        return self.row.phase == MemberPhase.FAILED and self.row.deletion_requested_at is not None

    @property
    def _annotations(self) -> Mapping[str, str]:
        return (self.row.manifest.get("metadata") or {}).get("annotations") or {}


def members_of(group: Job) -> list[Member]:
    """Return the pods of a group in order of creation."""
    return [Member(row) for row in Job.objects.filter(group=group).order_by("pk")]


@dataclass(frozen=True, slots=True)
class GroupPreview:
    """The places in a group once some pods are submitted.

    * sizes: the number of pods of each role: as in the workload, or the present pods while the group is incomplete.
    * composed: whether the group has a workload with these pod sets.
    * surplus: the names of pods for which the group has no place.
    """

    sizes: Mapping[str, int]
    composed: bool
    surplus: Collection[str]


@dataclass(frozen=True, slots=True)
class GroupPass:
    """The controller's pass over the pods of a group that was submitted here, whose rows are locked.

    * preview: runs it over the rows of pods that are not stored yet, in the queue of that name; with the group's
      workload, unless the workload must be composed again. Stores nothing.
    * settle: runs it over the existing pods, and stores its changes.
    """

    preview: Callable[[Cluster, Sequence[Member], Workload | None, str, datetime], GroupPreview]
    settle: Callable[[Cluster, Job, Workload, bool, str, datetime], None]


GROUP_PASSES: Final[dict[str, GroupPass]] = {}
"""By the kind of a group's row. `clusters`, which contains the controller, registers the pass."""


def sized_pod_sets(members: Iterable[Member], sizes: Mapping[str, int]) -> tuple[PodSetSpec, ...] | None:
    """Return the pod sets of these sizes, by role, with the first pod of each role; None if a role has no pod."""
    by_role: dict[str, Member] = {}
    for member in members:
        by_role.setdefault(member.role, member)
    if any(role not in by_role for role in sizes):
        return None
    return tuple(
        replace(by_role[role].job.pod_sets[0], name=role, count=count) for role, count in sorted(sizes.items())
    )


def excess_message(pod: str) -> str:
    """Return the message of the event for a pod that exceeds its group's size."""
    return f"Pod {pod} exceeds the size of the group"


def is_followed(group: Job, members: Iterable[Member]) -> bool:
    """Return whether all pods of the group were found in the cluster. If so, the watcher follows it with Kueue's
    controller."""
    return group.found_in_cluster and all(member.row.found_in_cluster for member in members)


def is_composed(workload: Workload) -> bool:
    """Return whether all pods of its group have existed, so that its pod sets are those of the whole group."""
    condition = _condition(workload, ConditionType.WAITING_FOR_REPLACEMENT_PODS)
    return condition is None or condition["reason"] != PendingReason.POD_GROUP_INCOMPLETE


def _condition(workload: Workload, type_: ConditionType) -> dict[str, Any] | None:
    """Return the condition of that type, if it is True."""
    found = (each for each in workload.conditions if each["type"] == type_ and each["status"] == "True")
    return next(found, None)


def wait_for_pods(group: Job, now: datetime) -> None:
    """Make the new workload of a found group wait: the watcher composes it once all pods exist."""
    workload = Workload.objects.select_for_update().get(job=group)
    message = f"Pod group {group.name} is not complete"
    set_condition(workload, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, message, now)


def set_condition(workload: Workload, status: ConditionStatus, reason: str, message: str, now: datetime) -> bool:
    """Set WaitingForReplacementPods of a locked row; return whether its status or reason changed."""
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
    if not phases:
        return
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
    if not members:
        return
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
    cluster: Cluster,
    groups: Collection[int],
    *,
    anew: bool = False,
    actor: str = "watcher",
    now: datetime | None = None,
) -> None:
    """Run the controller's pass over these groups.

    For groups found in the cluster, the watcher runs it on the cluster's pods. With `anew`, pods were submitted, so the
    pod sets of a workload without quota are computed again from the existing pods.
    """
    if not groups:
        return
    now = now or timezone.now()
    with transaction.atomic():
        rows = Job.objects.filter(cluster=cluster, pk__in=list(groups), kind=POD_GROUP)
        for group in rows.select_for_update().order_by("pk"):
            if is_followed(group, members_of(group)):
                continue
            unfinished = Workload.objects.filter(job=group).exclude(status=WorkloadStatus.FINISHED)
            workload = unfinished.select_for_update().prefetch_related("pod_sets").first()
            if workload is not None:
                workload.job = group
                composes = anew and workload.quota_reserved_at is None
                GROUP_PASSES[POD_GROUP].settle(cluster, group, workload, composes, actor, now)
        wake_scheduler(cluster.name)
