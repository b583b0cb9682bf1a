"""Groups of pods: runs the controller's pass over the pods of a group, and stores the changes of its workload in rows.

The workload of a group has a row from its first pod on, and waits as incomplete until the pass composes it. The pods
are read from the cluster or, for a submitted group, from its rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import ClassVar, Final

from django.db import transaction

from accounts.kinds.metrics_settings import copied_keys
from accounts.models import Cluster
from clusters.api_objects import NAMESPACES, JsonObject
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.manifest import annotations_of, labels_of, name_of
from clusters.jobs.framework.pod_sets import counts_of
from clusters.jobs.framework.store import ObjectStore
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod_group import is_runnable
from clusters.jobs.live_job import changed_spec, shown_workload
from clusters.jobs.live_pods import GroupChanges, SeenPodGroup, SubmittedPodGroup, look_at_group
from foundation.wake_ups import request_push, wake_scheduler
from queues.manifests import kueue_keys as keys
from queues.manifests.workload import PodSetSpec, WorkloadSpec
from queues.models import Job, Workload
from queues.services.job_changes import change_workload, pod_set_specs
from queues.services.pod_groups.life import (
    GroupPreview,
    Member,
    MemberPhase,
    excess_message,
    is_composed,
    members_of,
    set_condition,
    sized_pod_sets,
)
from queues.services.pods import record_reclaimable
from queues.services.workload_events import log_event
from queues.services.workloads import raise_push, record_finished
from scheduling.lifecycle.conditions import OWNER_IS_GONE
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import ConditionStatus, ConditionType, FinishedReason, PendingReason

MAX_ROUNDS: Final = 3
"""Passes over one group in a row: its row may change while the pass runs."""
_WAITS_FOR_PODS: Final = ConditionType.WAITING_FOR_REPLACEMENT_PODS


@dataclass
class GroupLook:
    """One group with its pods and its rows, and the changes that the pass makes to them.

    * acts: whether the push has pods of the group to change.
    """

    cluster: Cluster
    group: Job
    members: Sequence[Member]
    row: Workload
    pods: Sequence[JsonObject]
    context: JobContext
    actor: str
    now: datetime
    acts: bool = False
    before: JsonObject | None = None
    changes: GroupChanges = field(default_factory=lambda: GroupChanges(None))

    pass_class: ClassVar[type[SeenPodGroup]] = SeenPodGroup

    def run(self) -> None:
        """Run the pass. Raises ClusterError."""
        roles = {member.row.name: member.role for member in self.members}
        self.before = shown_workload(self.row, self.pods[0]) if self._is_composed() else None
        self.changes = look_at_group(self.pods, roles, self.before, self.context, self.pass_class)
        self.acts = self.changes.acts

    def store(self) -> bool:
        """Store the changes; False if the row has changed since it was read. Raises ManifestErrors."""
        after = self.changes.workload
        if self.before is not None and after == self.before and not self._leaves_pods():
            return True
        with transaction.atomic():
            rows = Workload.objects.filter(pk=self.row.pk, updated_at=self.row.updated_at)
            locked = rows.select_for_update().prefetch_related("pod_sets").first()
            if locked is None:
                return False
            locked.job = self.group
            self.row = locked
            if not self.pods:
                self._end()
            elif self.before is None and after is None:
                self._wait(self.changes.why)
            elif self.before is None and after is not None:
                self._compose(after)
            elif self.before is not None and after is not None:
                self._follow(self.before, after)
            elif self.row.quota_reserved_at is None:
                # Its pods match another workload: compose the group's workload again.
                why = f"The pods of group {self.group.name} have changed"
                set_condition(self.row, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, why, self.now)
                return False
            self._remove_surplus(self.changes.surplus)
        return True

    def _is_composed(self) -> bool:
        return is_composed(self.row)

    def _leaves_pods(self) -> bool:
        """Return whether surplus pods leave the group, so that rows change even if the workload does not."""
        return bool(self.changes.surplus)

    def _end(self) -> None:
        """End a workload without pods; one that was evicted waits for others, if its pods had no finalizers."""
        evicted = state.condition_of({"status": {"conditions": self.row.conditions}}, state.EVICTED) or {}
        if evicted.get("status") == "True":
            set_condition(self.row, ConditionStatus.TRUE, evicted["reason"], evicted["message"], self.now)
            return
        key, reason = (self.row.namespace, self.row.name), FinishedReason.OWNER_NOT_FOUND
        record_finished(self.cluster, [key], reason, OWNER_IS_GONE, actor=self.actor, now=self.now)

    def _wait(self, why: str) -> None:
        """Report why the group has no workload yet."""
        total, there = self.group.manifest["spec"]["totalCount"], sum(map(is_runnable, self.pods))
        if there < total:
            why = f"Pod group {self.group.name} is not complete: {there} of its {total} pods exist"
        if set_condition(self.row, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, why, self.now):
            log_event(self.row, "ErrWorkloadCompose", why, actor=self.actor, now=self.now, warning=True)

    def _compose(self, made: JsonObject) -> None:
        """Store the composed workload in the row: the group is complete, and its place in the queue counts from
        here.
        """
        pod_sets, noted = self._pod_sets(made), self._annotations()
        if pod_sets is None or noted is None:
            return
        annotations = {**annotations_of(made), **noted}
        spec = replace(self._changed_spec(made, pod_sets), pod_sets=pod_sets)
        spec = replace(spec, labels=dict(labels_of(made)), annotations={**spec.annotations, **annotations})
        since = {"created_at": self.now} if self._is_new() else {}
        change_workload(self.row, spec, actor=self.actor, now=self.now)
        conditions = [each for each in self.row.conditions if each["type"] != _WAITS_FOR_PODS]
        Workload.objects.filter(pk=self.row.pk).update(conditions=conditions, updated_at=self.now, **since)
        wake_scheduler(self.cluster.name)

    def _is_new(self) -> bool:
        """Return whether the composed workload is queued again from now on."""
        return True

    def _changed_spec(self, after: JsonObject, pod_sets: tuple[PodSetSpec, ...]) -> WorkloadSpec:
        return changed_spec(self.row, after, lambda: pod_sets)

    def _annotations(self) -> dict[str, str] | None:
        """Return the annotations that the pods hand over to their workload; None, and the group waits, if they
        differ."""
        copied, found = copied_keys(self.cluster.configuration), dict[str, str]()
        for pod in self.pods:
            _, noted = copied.of({}, annotations_of(pod))
            for key, value in noted.items():
                if found.setdefault(key, value) != value:
                    self._wait(f"Pods of group {self.group.name} have different values of the annotation {key}")
                    return None
        return found

    def _remove_surplus(self, names: Collection[str]) -> None:
        """Have the push delete pods for which the group has no place."""
        rows = Job.objects.filter(group=self.group, name__in=names, deletion_requested_at=None)
        new = sorted(rows.values_list("name", flat=True)) if names else []
        rows.update(deletion_requested_at=self.now)
        for name in new:
            log_event(self.row, "ExcessPodDeleted", excess_message(name), actor=self.actor, now=self.now)

    def _pod_sets(self, made: JsonObject) -> tuple[PodSetSpec, ...] | None:
        """Return the pod sets of the workload with the pods of its roles; None while a pod of a role has no row."""
        return sized_pod_sets(self.members, counts_of(made["spec"]["podSets"]))

    def _follow(self, before: JsonObject, after: JsonObject) -> None:
        key = (self.row.namespace, self.row.name)
        finished = state.condition_of(after, state.FINISHED) or {}
        if state.is_finished(after) and not state.is_finished(before):
            reason, message = FinishedReason(str(finished["reason"])), str(finished.get("message") or "")
            if reason is not FinishedReason.FAILED_TO_START:  # the push reports it
                record_finished(self.cluster, [key], reason, message, actor=self.actor, now=self.now)
            self.acts = True
            return
        if after["spec"] != before["spec"]:
            spec = self._changed_spec(after, pod_set_specs(self.row))
            change_workload(self.row, spec, actor=self.actor, now=self.now)
            wake_scheduler(self.cluster.name)
        reclaimable = (after.get("status") or {}).get("reclaimablePods") or ()
        if reclaimable != (before.get("status") or {}).get("reclaimablePods"):
            for each in reclaimable:
                record_reclaimable(self.cluster, each["name"], {key: each["count"]})
        self._follow_condition(after)

    def _follow_condition(self, after: JsonObject) -> None:
        found = state.condition_of(after, _WAITS_FOR_PODS)
        if found is None:
            return
        status = ConditionStatus(found["status"])
        if not set_condition(self.row, status, found["reason"], found["message"], self.now):
            return
        if status is ConditionStatus.TRUE:
            log_event(self.row, _WAITS_FOR_PODS, found["message"], actor=self.actor, now=self.now, warning=True)
        wake_scheduler(self.cluster.name)


@dataclass
class _SubmittedLook(GroupLook):
    """A group with submitted pods: its rows are locked, and its pods are shown as their rows describe them.

    `anew`: pods were submitted while the workload has no quota, so its pod sets are computed again from the present
    pods.
    """

    anew: bool = False

    pass_class: ClassVar[type[SeenPodGroup]] = SubmittedPodGroup

    def store(self) -> bool:
        """Store the changes, and delete the failed pods that have been replaced."""
        self.acts = bool(self.changes.surplus)  # show the pods as they should be, not as they are
        stored = super().store()
        if stored and not (self.changes.workload and state.is_finished(self.changes.workload)):
            self._remove_replaced()
        return stored

    def _is_composed(self) -> bool:
        return not self.anew and super()._is_composed()

    def _is_new(self) -> bool:
        """Return whether the group has all of its pods for the first time: a group that has changed keeps its place."""
        total: int = self.group.manifest["spec"]["totalCount"]
        return sum(pod_set.count for pod_set in self.row.pod_sets.all()) < total

    def _changed_spec(self, after: JsonObject, pod_sets: tuple[PodSetSpec, ...]) -> WorkloadSpec:
        """Return the spec without a priority: that of the submission, or a later one, stays."""
        return replace(super()._changed_spec(after, pod_sets), priority=None)

    def _remove_replaced(self) -> None:
        """Remove failed pods from the group. A found pod keeps its row until it has lost its finalizer."""
        rows = Job.objects.filter(group=self.group, name__in=self.changes.released, phase=MemberPhase.FAILED)
        left = rows.update(deletion_requested_at=self.now) if self.changes.released else 0
        if left:
            rows.filter(found_in_cluster=False).delete()
            self.acts = True


def preview_submitted(
    cluster: Cluster, members: Sequence[Member], workload: Workload | None, queue_name: str, now: datetime
) -> GroupPreview:
    """Run the pass over the rows of pods as they will be, and store nothing. `GroupPass` describes the arguments."""
    pods = [_shown(member.row, workload or Workload(queue_name=queue_name)) for member in members]
    roles = {member.row.name: member.role for member in members}
    before = shown_workload(workload, pods[0]) if workload is not None else None
    context = _context(cluster, members[0].row.namespace, now)
    changes = look_at_group(pods, roles, before, context, SubmittedPodGroup)
    if changes.workload is not None:
        return GroupPreview(counts_of(changes.workload["spec"]["podSets"]), composed=True, surplus=changes.surplus)
    there = Counter(roles[name_of(pod)] for pod in pods if is_runnable(pod))
    return GroupPreview(there, composed=False, surplus=changes.surplus)


def _context(cluster: Cluster, namespace: str, now: datetime) -> JobContext:
    made = {"kind": NAMESPACES.kind, "metadata": {"name": namespace}}  # the push makes it
    configuration = {**cluster.configuration, "managedJobsNamespaceSelector": None}  # REST has judged the namespace
    return job_context(configuration, ObjectStore([made]), rfc3339(now))


def settle_submitted(cluster: Cluster, group: Job, workload: Workload, anew: bool, actor: str, now: datetime) -> None:
    """Run the pass over the pods of a group that was submitted here, whose rows are locked, and store the pass's
    changes."""
    rows = Workload.objects.filter(pk=workload.pk)
    context = _context(cluster, group.namespace, now)
    for _ in range(MAX_ROUNDS):
        members = [member for member in members_of(group) if not member.is_replaced]
        pods = [_shown(member.row, workload) for member in members]
        look = _SubmittedLook(cluster, group, members, workload, pods, context, actor, now, anew=anew)
        if pods:
            look.run()
        stored = look.store()
        if look.acts:
            raise_push(rows)
            request_push(cluster.name)
        if stored:
            return
        workload, anew = rows.prefetch_related("pod_sets").get(), False
        workload.job = group


def _shown(row: Job, workload: Workload) -> JsonObject:
    """Return the pod of a row: it waits at its gate until it has ended, because a stopped pod is created again.

    It has the queue, the gates and the time limit of its workload, which may have been changed there, and no class.
    """
    metadata, spec = row.manifest["metadata"], row.manifest["spec"]
    told = {
        keys.QUEUE_NAME: workload.queue_name, keys.PRIORITY_CLASS: "", keys.PREBUILT_WORKLOAD: "",
        keys.MAXIMUM_EXECUTION_SECONDS: str(workload.maximum_execution_seconds or ""),
    }  # fmt: skip
    gated_by = workload.annotations.get(keys.ADMISSION_GATED_BY, "")
    leaving = {"deletionTimestamp": rfc3339(row.deletion_requested_at)} if row.deletion_requested_at else {}
    return {
        "apiVersion": "v1",
        "kind": row.kind,
        "metadata": {
            "namespace": row.namespace, "name": row.name, "uid": str(row.uid),
            "labels": {**(metadata.get("labels") or {}), **told},
            "annotations": {
                **(metadata.get("annotations") or {}),
                keys.ADMISSION_GATED_BY: gated_by, keys.PREBUILT_WORKLOAD: "",
            },
            "finalizers": [keys.MANAGED], "creationTimestamp": rfc3339(row.created_at), **leaving,
        },
        "spec": {**spec, "priorityClassName": "", "schedulingGates": [{"name": keys.ADMISSION_GATE}]},
        "status": {"phase": row.phase or "Pending"},
    }  # fmt: skip
