"""Syncs StatefulSets and LeaderWorkerSets, and has the push process their pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Final

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from accounts.models import Cluster
from clusters.api_errors import ClusterError, ClusterUnreachable
from clusters.api_objects import PODS, JsonObject
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.cluster_objects import KeptObjects, OneLook
from clusters.jobs.families.serving import ServingKind, annotated_parent, lets_pods_wait
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.identity import queue_name_of
from clusters.jobs.framework.manifest import dig, is_being_deleted, labels_of, name_of, namespace_of, uid_of
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod import group_name_of, is_gated
from clusters.jobs.live_job import Changes, look_at_set
from clusters.jobs.live_pods import look_at_pods_without_workload
from clusters.jobs.looks import Look
from clusters.jobs.registry import JOB_KINDS
from clusters.jobs.set_pods import pods_of_set
from clusters.jobs.whole_objects import difference
from clusters.sync.jobs import key_of
from clusters.sync.suspendable_jobs import SuspendableJobSync
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import request_push
from queues.manifests.bounds import MAX_REPLICAS
from queues.manifests.kueue_keys import COMPONENT_INDEX, MULTIKUEUE_ORIGIN, QUEUE_NAME
from queues.models import Workload
from queues.services.workloads import raise_push
from scheduling.model.vocabulary import WorkloadStatus

_BY_FRAMEWORK: Final = {
    kind.framework: kind for kind in JOB_KINDS.values() if isinstance(kind, ServingKind) and kind.groups_pods
}
_SetKey = tuple[str, str, str]
"""The kind, the namespace and the name of a set."""
_State = tuple[Any, ...]
"""The parts of an object whose change may require changes of the set's pods."""


class SetSync(SuspendableJobSync):
    """Keeps the workloads of one kind of set in step with the sets of one cluster.

    `pods`: the pods that the watcher has seen; None if it sees none, and pods are then listed for each set.
    """

    _remembers = False  # a pass over a set also follows from its pods

    def __init__(
        self,
        cluster: Cluster,
        kind: ServingKind,
        client: ClusterClient,
        pods: SetPodSync | None = None,
        kept: KeptObjects | None = None,
    ) -> None:
        super().__init__(cluster, kind, client, kept)
        self._serving = kind
        self._pods = pods
        self._states: dict[str, _State] = {}
        self._without_pods: dict[str, JsonObject] = {}
        """uid -> a set that needs no workload, and without any pod so far."""

    def tick(self, now: float) -> None:
        """Mark also the pods of sets that need no workload, once a pod of such a set is seen."""
        super().tick(now)
        self._mark_pods([job for job in self._without_pods.values() if not self._has_no_pods(job)])

    def _changes(self, look: Look, context: JobContext) -> Changes:
        return look_at_set(self._serving, look.job, look.row, look.workloads, context)

    def _as_the_webhook_leaves_it(self, job: JsonObject) -> JsonObject | None:
        # A set with a queue name gets a workload in every namespace, even where the webhook ignores pods.
        return super()._as_the_webhook_leaves_it(job) or (job if queue_name_of(job) else None)

    def _is_settled(self, job: JsonObject, changes: Changes, context: JobContext) -> bool:
        return False  # a set may need more workloads, and its pods wait instead of the set

    def _keep_seen(self, jobs: Iterable[JsonObject]) -> None:
        """Keep none: the push starts the pods of a set, not the set."""

    def _prebuilt_names(self, job: JsonObject) -> list[str]:
        if MULTIKUEUE_ORIGIN not in labels_of(job) or self._serving.workload_count(job) > MAX_REPLICAS:
            return []
        return self._serving.workload_names(job)

    def _noted(self, job: JsonObject) -> Sequence[str]:
        return (COMPONENT_INDEX,)

    def _take_in(self, jobs: Sequence[JsonObject]) -> None:
        super()._take_in(jobs)
        states = {uid_of(job): _state_of_set(job) for job in jobs}
        changed = [job for job in jobs if self._states.get(uid_of(job)) != states[uid_of(job)]]
        self._states |= states
        for job in jobs:
            self._without_pods.pop(uid_of(job), None)
        _look_again(self._cluster, Q(job__in=[row.pk for row in self._rows(changed).values()]) if changed else None)
        self._mark_pods([job for job in jobs if not self._serving.workload_count(job) and _may_have_pods(job)])

    def _mark_pods(self, jobs: Sequence[JsonObject]) -> None:
        """Mark the pods of sets that need no workload, such as one that was scaled to zero: no row tells the push."""
        jobs = [job for job in jobs if lets_pods_wait(self._serving, job)]
        if not jobs or self._cluster.is_mirrored or self._cluster.kueue_is_alive:
            return
        without = {uid_of(job): job for job in jobs if self._has_no_pods(job)}
        jobs = [job for job in jobs if uid_of(job) not in without]
        for job in jobs:
            self._without_pods.pop(uid_of(job), None)
        self._without_pods |= without
        context = job_context(self._cluster.configuration, OneLook(self._cluster, self._looked_up, self._kept))
        for job in jobs:
            try:
                maker, pods = pods_of_set(self._client, self._serving, job)
                changes = look_at_pods_without_workload(maker, pods, context)
                if changes.failure:
                    self._note(job, changes.failure)
                for before, after in changes.patched:
                    self._mark(job, before, after)
            except ClusterUnreachable as error:
                self._note(job, error)
                return  # each request would wait as long; the next list repeats them
            except ClusterError as error:
                self._note(job, error)

    def _has_no_pods(self, job: JsonObject) -> bool:
        """Return whether the watcher has seen no pod of the set, so that the cluster need not list them."""
        return self._pods is not None and self._pods.has_none(self._serving, job)

    def _mark(self, job: JsonObject, before: JsonObject, after: JsonObject) -> None:
        try:
            self._client.patch(PODS, *key_of(before), difference(before, after) or {})
        except ClusterUnreachable:
            raise
        except ClusterError as error:  # the pod has changed meanwhile: the next list repeats it
            self._note(job, error)

    def _lose(self, jobs: Sequence[JsonObject]) -> None:
        super()._lose(jobs)
        for job in jobs:
            self._states.pop(uid_of(job), None)
            self._without_pods.pop(uid_of(job), None)


def _may_have_pods(job: JsonObject) -> bool:
    """Return whether a set of no replicas may have pods left: its status does not say that it has none."""
    return bool(dig(job, "status", "replicas") != 0)


class SetPodSync:
    """Request a push of the workload of a set whose pods are created, changed or deleted."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._states: dict[str, _State] = {}
        self._sets: dict[str, _SetKey] = {}
        """By the uid of a pod, the set that created it."""
        self._sizes: Counter[_SetKey] = Counter()
        self._is_listed = False

    def has_none(self, kind: ServingKind, job: JsonObject) -> bool:
        """Return whether all pods have been listed, and none of the remaining pods is the set's."""
        return self._is_listed and not self._sizes[kind.kind, namespace_of(job), name_of(job)]

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        touched: dict[_SetKey, set[str]] = defaultdict(set)
        for item in items:
            if isinstance(item, Listing):
                there = {uid_of(pod) for pod in item.items}
                self._states = {uid: state for uid, state in self._states.items() if uid in there}
                self._sets = {uid: made_by for uid, made_by in self._sets.items() if uid in there}
                self._sizes = Counter(self._sets.values())
                self._is_listed = True
            for pod in item.items if isinstance(item, Listing) else (item.object,):
                kind = _BY_FRAMEWORK.get(annotated_parent(pod) or "")
                if kind is None:
                    continue
                made_by = (kind.kind, namespace_of(pod), kind.maker_of(pod))
                gone = not isinstance(item, Listing) and item.type == "DELETED"
                self._count(uid_of(pod), made_by, gone=gone)
                if self._is_news(pod, gone=gone):
                    touched[made_by].add(kind.group_of(pod))
        wanted = Q()
        for (kind_name, namespace, name), groups in touched.items():
            of_set = Q(job__kind=kind_name, namespace=namespace, job__name=name)
            if "" not in groups:
                of_set &= Q(component_index__in=groups)
            wanted |= of_set
        _look_again(self._cluster, wanted if touched else None)

    def _count(self, uid: str, made_by: _SetKey, *, gone: bool) -> None:
        known = self._sets.pop(uid, None)
        if known is not None:
            self._sizes[known] -= 1
        if not gone:
            self._sets[uid] = made_by
            self._sizes[made_by] += 1

    def _is_news(self, pod: JsonObject, *, gone: bool) -> bool:
        uid = uid_of(pod)
        if gone:
            return self._states.pop(uid, None) is not None
        state = _state_of_pod(pod)
        changed = self._states.get(uid) != state
        self._states[uid] = state
        return changed


def _state_of_set(job: JsonObject) -> _State:
    status = job.get("status") or {}
    spec = job.get("spec") or {}
    return (
        labels_of(job).get(QUEUE_NAME),
        spec.get("replicas"),
        status.get("currentRevision"),
        status.get("updateRevision"),
    )


def _state_of_pod(pod: JsonObject) -> _State:
    queue = labels_of(pod).get(QUEUE_NAME)
    return queue, group_name_of(pod), is_gated(pod), dig(pod, "status", "phase"), is_being_deleted(pod)


def _look_again(cluster: Cluster, workloads: Q | None) -> None:
    """Have the push run the pass on the pods of these workloads."""
    if workloads is None or cluster.is_mirrored:
        return
    indexed = Workload.objects.annotate(component_index=KeyTextTransform(COMPONENT_INDEX, "annotations"))
    rows = indexed.filter(workloads, cluster=cluster).exclude(status=WorkloadStatus.FINISHED)
    with unnoticed_transaction():
        raised = raise_push(rows)
    if raised:
        request_push(cluster.name)
