"""Groups of found pods: keeps the present pods of the cluster, and runs the controller's pass over groups that
changed.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from django.db import DataError

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient
from clusters.jobs.cluster_objects import OneLook, RowsAndCluster
from clusters.jobs.framework import conditions as state
from clusters.jobs.framework.manifest import name_of, namespace_of, uid_of
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod import group_name_of, is_gated, is_terminated, role_of
from clusters.jobs.live_groups import MAX_ROUNDS, GroupLook
from clusters.jobs.plain_pods import KUEUE_FINALIZER, may_be_taken
from foundation.exceptions import ManifestErrors
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import request_push
from queues.manifests.pod_group import POD_GROUP
from queues.models import Job, Workload
from queues.services.pod_groups.life import Member, is_followed
from queues.services.workload_events import log_event
from queues.services.workloads import raise_push
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import WorkloadStatus

_log = logging.getLogger(__name__)

_ACTOR: Final = "watcher"
GroupKey = tuple[str, str]
"""The namespace and the name of a group."""


class FoundGroups:
    """The groups of one cluster, with the last known state of their pods."""

    def __init__(self, cluster: Cluster, client: ClusterClient) -> None:
        self._cluster = cluster
        self._client = client
        self._looked_up = RowsAndCluster(cluster, client)
        self._pods: dict[GroupKey, dict[str, JsonObject]] = defaultdict(dict)
        self._strangers: set[str] = set()
        """The uids of pods for which an event already reports that their shape differs from the group's."""
        self._released: set[GroupKey] = set()
        """Groups with a waiting pod that has no finalizer of Kueue's, as after the end of its group."""

    def note(self, pods: Iterable[JsonObject]) -> set[GroupKey]:
        """Store the present state of pods; return their groups."""
        groups = set()
        for pod in pods:
            key = group_key(pod)
            if key[1]:
                self._pods[key][name_of(pod)] = pod
                groups.add(key)
                if _is_released(pod):
                    self._released.add(key)
        return groups

    def forget(self, pods: Iterable[JsonObject]) -> set[GroupKey]:
        """Drop pods that no longer exist; return their groups."""
        groups = set()
        for pod in pods:
            key = group_key(pod)
            if self._pods.get(key, {}).pop(name_of(pod), None) is not None:
                groups.add(key)
                self._strangers.discard(uid_of(pod))
                if not self._pods[key]:
                    del self._pods[key]
        return groups

    def without_workload(self) -> list[JsonObject]:
        """Return the waiting pods of groups whose ended workload was deleted. As in Kueue, they form a group again."""
        self._released = {key for key in self._released if any(map(_is_released, self._pods.get(key, {}).values()))}
        if not self._released:
            return []
        groups = Job.objects.filter(
            cluster=self._cluster, kind=POD_GROUP, found_in_cluster=True, deletion_requested_at=None, workloads=None,
            name__in={name for _, name in self._released},
        )  # fmt: skip
        over = self._released.intersection(groups.values_list("namespace", "name"))
        return [pod for key in sorted(over) for pod in self._pods[key].values() if _waits(pod)]

    def replace(self, present: Iterable[JsonObject]) -> set[GroupKey]:
        """Remember exactly the pods of a complete list; return all groups that have a workload."""
        self._pods.clear()
        self._released.clear()
        unfinished = Job.objects.filter(cluster=self._cluster, kind=POD_GROUP, found_in_cluster=True)
        rows = unfinished.exclude(workloads__status=WorkloadStatus.FINISHED).values_list("namespace", "name")
        return self.note(present) | set(rows)

    def settle(self, groups: Collection[GroupKey], now: datetime) -> None:
        """Run the pass over each of these groups, and store the changes of its workload."""
        if not groups or self._cluster.is_mirrored:
            return
        told: list[int] = []
        left = set(groups)
        for _ in range(MAX_ROUNDS):
            again: set[GroupKey] = set()
            for look in self._looks(left, now):
                try:
                    if look.pods:
                        look.run()
                    elif self._any_is_there(look.members):
                        continue  # the list was read before the rows
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

    def _looks(self, groups: Collection[GroupKey], now: datetime) -> Iterator[_FoundLook]:
        """Yield the groups that have an unfinished workload, with their rows, in three queries."""
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
                yield _FoundLook(
                    self._cluster,
                    group,
                    members[group.pk],
                    workload,
                    pods,
                    context,
                    _ACTOR,
                    now,
                    strangers=self._strangers,
                )

    def _any_is_there(self, members: Iterable[Member]) -> bool:
        for member in members:
            there = self._client.get(PODS, member.row.namespace, member.row.name)
            if there is not None and uid_of(there) == str(member.row.uid):
                return True
        return False


def group_key(pod: JsonObject) -> GroupKey:
    """Return the namespace and the name of the pod's group; the name is empty if the pod is in no group."""
    return namespace_of(pod), group_name_of(pod)


def _waits(pod: JsonObject) -> bool:
    """Return whether the pod may still run, and waits at its gate."""
    return may_be_taken(pod) and not is_terminated(pod)


def _is_released(pod: JsonObject) -> bool:
    return _waits(pod) and KUEUE_FINALIZER not in (pod["metadata"].get("finalizers") or ())


@dataclass
class _FoundLook(GroupLook):
    """A group of found pods, with their state in the cluster; `strangers` as in `FoundGroups`."""

    strangers: set[str] = field(default_factory=set)

    def _leaves_pods(self) -> bool:
        return super()._leaves_pods() or bool(self._new_strangers())

    def _follow(self, before: JsonObject, after: JsonObject) -> None:
        super()._follow(before, after)
        if not state.is_finished(after):
            self._name_strangers()

    def _name_strangers(self) -> None:
        """Report once for each waiting pod whose role the workload lacks that it can't join."""
        known = ", ".join(sorted(pod_set.name for pod_set in self.row.pod_sets.all()))
        for pod, role in self._new_strangers():
            self.strangers.add(uid_of(pod))
            why = f"it has another shape ({role}) than the pods of the group ({known})"
            message = f"Pod {name_of(pod)} can't join the group: {why}"
            log_event(self.row, "ErrWorkloadCompose", message, actor=_ACTOR, now=self.now, warning=True)

    def _new_strangers(self) -> list[tuple[JsonObject, str]]:
        known = {pod_set.name for pod_set in self.row.pod_sets.all()}
        roles = {member.row.name: member.role for member in self.members}
        waiting = [pod for pod in self.pods if is_gated(pod) and uid_of(pod) not in self.strangers]
        found = [(pod, roles.get(name_of(pod)) or role_of(pod)) for pod in waiting]
        return [(pod, role) for pod, role in found if role not in known]
