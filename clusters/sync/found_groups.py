"""Groups of pods that others made: runs the controller's pass over the pods of a group, and stores in rows the
changes of its workload.

The workload of a group has a row from its first pod on, and waits as incomplete until the pass makes it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from django.db import DataError, transaction

from accounts.events import request_push, wake_scheduler
from accounts.exceptions import ManifestErrors
from accounts.kinds.metrics_settings import copied_keys
from accounts.models import Cluster
from accounts.transactions import unnoticed_transaction
from clusters.client import PODS, ClusterClient, ClusterError, JsonObject
from clusters.jobs.cluster_objects import OneLook, RowsAndCluster
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.manifest import annotations_of, labels_of, name_of, namespace_of, uid_of
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod import group_name_of, is_gated, role_of
from clusters.jobs.live_job import changed_spec, shown_workload
from clusters.jobs.live_pods import look_at_group
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.workload import PodSetSpec
from queues.models import Job, Workload
from queues.services.job_changes import change_workload, pod_set_specs
from queues.services.pod_groups.life import Member, excess_message, is_composed, is_followed, set_condition
from queues.services.pods import record_reclaimable
from queues.services.workload_events import log_event
from queues.services.workloads import raise_push, record_finished
from scheduling.lifecycle.conditions import OWNER_IS_GONE
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import ConditionStatus, ConditionType, FinishedReason, PendingReason, WorkloadStatus

_log = logging.getLogger(__name__)

_ACTOR: Final = "watcher"
_MAX_ROUNDS: Final = 3
"""Passes over one group in a row: its row may change while the pass runs."""
GroupKey = tuple[str, str]
"""The namespace and the name of a group."""


class FoundGroups:
    """The groups of one cluster, with their pods as they were last seen."""

    def __init__(self, cluster: Cluster, client: ClusterClient) -> None:
        self._cluster = cluster
        self._client = client
        self._looked_up = RowsAndCluster(cluster, client)
        self._pods: dict[GroupKey, dict[str, JsonObject]] = defaultdict(dict)
        self._strangers: set[str] = set()
        """The uids of pods of which an event says that they have another shape than their group."""

    def note(self, pods: Iterable[JsonObject]) -> set[GroupKey]:
        """Remember pods as they are now; returns their groups."""
        groups = set()
        for pod in pods:
            key = namespace_of(pod), group_name_of(pod)
            if key[1]:
                self._pods[key][name_of(pod)] = pod
                groups.add(key)
        return groups

    def forget(self, pods: Iterable[JsonObject]) -> set[GroupKey]:
        """Forget pods that are gone; returns their groups."""
        groups = set()
        for pod in pods:
            key = namespace_of(pod), group_name_of(pod)
            if self._pods.get(key, {}).pop(name_of(pod), None) is not None:
                groups.add(key)
                self._strangers.discard(uid_of(pod))
                if not self._pods[key]:
                    del self._pods[key]
        return groups

    def replace(self, present: Iterable[JsonObject]) -> set[GroupKey]:
        """Remember the pods of a complete list, and no others; returns all groups that have a workload."""
        self._pods.clear()
        unfinished = Job.objects.filter(cluster=self._cluster, kind=POD_GROUP, found_in_cluster=True)
        rows = unfinished.exclude(workloads__status=WorkloadStatus.FINISHED).values_list("namespace", "name")
        return self.note(present) | set(rows)

    def settle(self, groups: Collection[GroupKey], now: datetime) -> None:
        """Run the pass over each of these groups, and store the changes of its workload."""
        if not groups or self._cluster.is_mirrored:
            return
        told: list[int] = []
        left = set(groups)
        for _ in range(_MAX_ROUNDS):
            again: set[GroupKey] = set()
            for look in self._looks(left, now):
                try:
                    if look.pods:
                        look.run()
                    elif self._any_is_there(look.members):
                        continue  # the list was older than the rows
                    if not look.store():
                        again.add((look.group.namespace, look.group.name))
                    elif look.acts:
                        told.append(look.group.pk)
                except (ClusterError, ManifestErrors, DataError) as error:
                    _log.info("Pod group %s of cluster %s: %s", look.group.key, self._cluster.name, error)
            left = again
        if told:
            with unnoticed_transaction():
                raise_push(Workload.objects.filter(job__in=told))
            request_push(self._cluster.name)

    def _looks(self, groups: Collection[GroupKey], now: datetime) -> Iterator[_Look]:
        """The groups that have an unfinished workload, with their rows, in three queries."""
        jobs = Job.objects.filter(
            cluster=self._cluster, kind=POD_GROUP, found_in_cluster=True, deletion_requested_at=None,
            name__in={name for _, name in groups},
        )  # fmt: skip
        found = {job.pk: job for job in jobs.order_by("pk") if (job.namespace, job.name) in groups} if groups else {}
        members: dict[int, list[Member]] = defaultdict(list)
        for row in Job.objects.filter(group__in=found).order_by("pk") if found else ():
            members[row.group_id or 0].append(Member(row))
        workloads = Workload.objects.filter(job__in=found, deletion_requested_at=None)
        unfinished = workloads.exclude(status=WorkloadStatus.FINISHED).prefetch_related("pod_sets").order_by("pk")
        objects = OneLook(self._cluster, self._looked_up)
        context = job_context(self._cluster.configuration, objects, rfc3339(now))
        for workload in unfinished if found else ():
            group = found[workload.job_id or 0]
            workload.job = group
            if is_followed(group, members[group.pk]):
                pods = list(self._pods.get((group.namespace, group.name), {}).values())
                yield _Look(self._cluster, group, members[group.pk], workload, pods, context, now, self._strangers)

    def _any_is_there(self, members: Iterable[Member]) -> bool:
        for member in members:
            there = self._client.get(PODS, member.row.namespace, member.row.name)
            if there is not None and uid_of(there) == str(member.row.uid):
                return True
        return False


class _Look:
    """One group with its pods and its rows, and the changes that the pass makes to them.

    * acts: whether the push has pods of the group to change.
    """

    def __init__(
        self,
        cluster: Cluster,
        group: Job,
        members: Sequence[Member],
        row: Workload,
        pods: list[JsonObject],
        context: JobContext,
        now: datetime,
        strangers: set[str],
    ) -> None:
        self.group = group
        self.members = members
        self.pods = pods
        self.acts = False
        self._cluster = cluster
        self._row = row
        self._context = context
        self._now = now
        self._strangers = strangers
        self._role_by_name = {member.row.name: member.role for member in members}
        self._before: JsonObject | None = None
        self._after: JsonObject | None = None
        self._why = ""
        self._surplus: set[str] = set()

    def run(self) -> None:
        """Run the pass. Raises ClusterError."""
        self._before = shown_workload(self._row, self.pods[0]) if is_composed(self._row) else None
        found = look_at_group(self.pods, self._role_by_name, self._before, self._context)
        self._after, self._why, self._surplus, self.acts = found

    def store(self) -> bool:
        """Store the changes; False if the row has changed since it was read. Raises ManifestErrors."""
        if self._before is not None and self._after == self._before and not (self._surplus or self._new_strangers()):
            return True
        with transaction.atomic():
            rows = Workload.objects.filter(pk=self._row.pk, updated_at=self._row.updated_at)
            locked = rows.select_for_update().prefetch_related("pod_sets").first()
            if locked is None:
                return False
            locked.job = self.group
            self._row = locked
            if not self.pods:
                self._end()
            elif self._before is None and self._after is None:
                self._wait(self._why)
            elif self._before is None and self._after is not None:
                self._compose(self._after)
            elif self._before is not None and self._after is not None:
                self._follow(self._before, self._after)
            elif self._row.quota_reserved_at is None:  # another workload fits its pods: it is composed anew
                why = f"The pods of group {self.group.name} have changed"
                set_condition(self._row, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, why, self._now)
                return False
            self._remove_surplus(self._surplus)
        return True

    def _end(self) -> None:
        """End a workload without pods; one that was evicted waits for others, if its pods had no finalizers."""
        evicted = state.condition_of({"status": {"conditions": self._row.conditions}}, state.EVICTED) or {}
        if evicted.get("status") == "True":
            set_condition(self._row, ConditionStatus.TRUE, evicted["reason"], evicted["message"], self._now)
            return
        key, reason = (self._row.namespace, self._row.name), FinishedReason.OWNER_NOT_FOUND
        record_finished(self._cluster, [key], reason, OWNER_IS_GONE, actor=_ACTOR, now=self._now)

    def _wait(self, why: str) -> None:
        """Say why the group has no workload yet."""
        total, there = self.group.manifest["spec"]["totalCount"], len(self.pods)
        if there < total:
            why = f"Pod group {self.group.name} is not complete: {there} of its {total} pods are there"
        if set_condition(self._row, ConditionStatus.TRUE, PendingReason.POD_GROUP_INCOMPLETE, why, self._now):
            log_event(self._row, "ErrWorkloadCompose", why, actor=_ACTOR, now=self._now, warning=True)

    def _compose(self, made: JsonObject) -> None:
        """Give the row what the pass has made: the group is complete, and its place in the queue counts from here."""
        pod_sets, noted = self._pod_sets(made), self._annotations()
        if pod_sets is None or noted is None:
            return
        annotations = {**annotations_of(made), **noted}
        spec = replace(changed_spec(self._row, made, lambda: pod_sets), pod_sets=pod_sets)
        spec = replace(spec, labels=dict(labels_of(made)), annotations={**spec.annotations, **annotations})
        change_workload(self._row, spec, actor=_ACTOR, now=self._now)
        kind = ConditionType.WAITING_FOR_REPLACEMENT_PODS
        conditions = [each for each in self._row.conditions if each["type"] != kind]
        since = {"created_at": self._now, "updated_at": self._now}
        Workload.objects.filter(pk=self._row.pk).update(conditions=conditions, **since)
        wake_scheduler(self._cluster.name)

    def _annotations(self) -> dict[str, str] | None:
        """The annotations that the pods hand over to their workload; None, and the group waits, if they differ."""
        copied, found = copied_keys(self._cluster.configuration), dict[str, str]()
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
        rows.update(deletion_requested_at=self._now)
        for name in new:
            log_event(self._row, "ExcessPodDeleted", excess_message(name), actor=_ACTOR, now=self._now)

    def _pod_sets(self, made: JsonObject) -> tuple[PodSetSpec, ...] | None:
        """The pod sets of the workload with the pods of its roles; None while a pod of a role has no row."""
        by_role: dict[str, Member] = {}
        for member in self.members:
            by_role.setdefault(member.role, member)
        wanted = made["spec"]["podSets"]
        if any(each["name"] not in by_role for each in wanted):
            return None
        return tuple(
            replace(by_role[each["name"]].job.pod_sets[0], name=each["name"], count=each["count"]) for each in wanted
        )

    def _follow(self, before: JsonObject, after: JsonObject) -> None:
        key = (self._row.namespace, self._row.name)
        finished = state.condition_of(after, state.FINISHED) or {}
        if state.is_finished(after) and not state.is_finished(before):
            reason, message = FinishedReason(str(finished["reason"])), str(finished.get("message") or "")
            if reason is not FinishedReason.FAILED_TO_START:  # the push tells of it
                record_finished(self._cluster, [key], reason, message, actor=_ACTOR, now=self._now)
            self.acts = True
            return
        if after["spec"] != before["spec"]:
            spec = changed_spec(self._row, after, lambda: pod_set_specs(self._row))
            change_workload(self._row, spec, actor=_ACTOR, now=self._now)
            wake_scheduler(self._cluster.name)
        reclaimable = (after.get("status") or {}).get("reclaimablePods") or ()
        if reclaimable != (before.get("status") or {}).get("reclaimablePods"):
            for each in reclaimable:
                record_reclaimable(self._cluster, each["name"], {key: each["count"]})
        self._follow_condition(after)
        self._name_strangers()

    def _name_strangers(self) -> None:
        """Say once of each pod that waits, and whose role the workload does not have, that it can't join."""
        known = ", ".join(sorted(self._roles()))
        for pod in self._new_strangers():
            self._strangers.add(uid_of(pod))
            why = f"it has another shape ({self._role_of(pod)}) than the pods of the group ({known})"
            message = f"Pod {name_of(pod)} can't join the group: {why}"
            log_event(self._row, "ErrWorkloadCompose", message, actor=_ACTOR, now=self._now, warning=True)

    def _new_strangers(self) -> list[JsonObject]:
        known = self._roles()
        waiting = [pod for pod in self.pods if is_gated(pod) and uid_of(pod) not in self._strangers]
        return [pod for pod in waiting if self._role_of(pod) not in known]

    def _role_of(self, pod: JsonObject) -> str:
        return self._role_by_name.get(name_of(pod)) or role_of(pod)

    def _roles(self) -> set[str]:
        return {pod_set.name for pod_set in self._row.pod_sets.all()}

    def _follow_condition(self, after: JsonObject) -> None:
        found = state.condition_of(after, state.WAITING_FOR_REPLACEMENT_PODS)
        if found is None:
            return
        status = ConditionStatus(found["status"])
        if not set_condition(self._row, status, found["reason"], found["message"], self._now):
            return
        if status is ConditionStatus.TRUE:
            kind = ConditionType.WAITING_FOR_REPLACEMENT_PODS
            log_event(self._row, kind, found["message"], actor=_ACTOR, now=self._now, warning=True)
        wake_scheduler(self._cluster.name)
