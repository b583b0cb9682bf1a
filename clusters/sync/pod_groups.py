"""Syncs plain pods, alone or in groups, to their rows: creation, changes and ends."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from django.db import DataError, transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import Cluster
from accounts.services.apply_result import Submitted
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.cluster_objects import OneLook
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.errors import JobError
from clusters.jobs.framework.job_kind import Stopping
from clusters.jobs.framework.manifest import controller_of
from clusters.jobs.integrations import job_context
from clusters.jobs.kinds.pod import group_name_of
from clusters.jobs.objects import JOB_UID_LABEL, QUEUE_LABEL
from clusters.jobs.plain_pods import KUEUE_FINALIZER, ended_by_itself, is_kept_ended, may_be_taken
from clusters.jobs.registry import JOB_KINDS, KINDS, ending_of
from clusters.jobs.submitter import submitter_of
from clusters.sync.found_groups import FoundGroups, GroupKey, group_key
from clusters.sync.jobs import JobSync, as_submitted, key_of, keys_of, row_key, tell_again
from foundation.exceptions import Conflict, KueuewebError, ManifestErrors
from foundation.wake_ups import request_push, request_release
from queues.manifests.job import JobManifest
from queues.manifests.pod_group import POD
from queues.models import Job, Workload
from queues.services.jobs import apply_jobs, read_job_object
from queues.services.pod_groups.life import MemberPhase, forget_members, record_phases
from queues.services.workload_events import log_event
from queues.services.workloads import record_finished
from scheduling.lifecycle.conditions import OWNER_IS_GONE
from scheduling.manifest import MistakeReason
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)

_ACTOR: Final = "watcher"
_LOOK_SECONDS: Final = 5.0
"""The wait between two looks for groups whose workload was deleted."""
_PAUSE_SECONDS: Final = 60.0
_MAX_PAUSE_SECONDS: Final = 3600.0
"""The waits before a group is made again once more, which double each time: it may end at once, or its name may be
taken."""
_SUSPENDED: Final = frozenset(
    key for key, kind in KINDS.items() if kind.stopping is Stopping.SUSPEND and not kind.groups_pods
)
"""The kinds of jobs that wait as a whole: none of their pods is a job of its own."""
_PHASES: Final = {phase.value: phase for phase in MemberPhase}


class PodGroupSync(JobSync):
    """Keeps the rows of plain pods in step with the pods of one cluster.

    `PodSync`, which knows the pods of all workloads, records how a workload that is one pod ends.
    """

    def __init__(self, cluster: Cluster, client: ClusterClient) -> None:
        super().__init__(cluster, JOB_KINDS[POD], client)
        self._groups = FoundGroups(cluster, client)
        self._touched: set[GroupKey] = set()
        self._next_look = 0.0
        self._pauses: dict[GroupKey, tuple[float, float]] = {}
        """For a group that was made again: until when it is not made again, and the length of that wait."""

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        super().apply(items, now)
        touched, self._touched = self._touched, set()
        self._groups.settle(touched, datetime.fromtimestamp(now, UTC))

    def tick(self, now: float) -> None:
        """Submit again the pods that still wait after the workload of their group has ended and was deleted."""
        if self._cluster.is_mirrored or now < self._next_look:
            return
        self._next_look = now + _LOOK_SECONDS
        pods = [pod for pod in self._groups.without_workload() if self._is_due(group_key(pod), now)]
        if pods:
            self._pause({group_key(pod) for pod in pods}, now)
            self._now = datetime.fromtimestamp(now, UTC)
            self._submit_all(pods)
            self._groups.settle(self._groups.note(pods), self._now)

    def _is_due(self, group: GroupKey, now: float) -> bool:
        return self._pauses.get(group, (now, 0.0))[0] <= now

    def _pause(self, groups: Collection[GroupKey], now: float) -> None:
        """Let these groups wait, and forget the waits that ended long ago."""
        kept = {key: pause for key, pause in self._pauses.items() if now - pause[0] < _MAX_PAUSE_SECONDS}
        for group in groups:
            seconds = min(kept[group][1] * 2, _MAX_PAUSE_SECONDS) if group in kept else _PAUSE_SECONDS
            kept[group] = now + seconds, seconds
        self._pauses = kept

    def _take_in(self, jobs: Sequence[JsonObject]) -> None:
        pods = [pod for pod in jobs if _concerns_us(pod)]
        if not pods:
            return
        self._touched |= self._groups.note(pods)
        rows = self._rows(pods)
        phases: dict[int, MemberPhase] = {}
        new: list[JsonObject] = []
        for pod in pods:
            row = rows.get(key_of(pod))
            if row is None:
                new.append(pod)
            elif row.group_id is not None and not row.phase:
                phase = _phase(pod)
                if phase is not None:
                    phases[row.pk] = phase
        record_phases(self._cluster, phases, now=self._now)
        self._submit_all(new)
        self._follow_all(pods, rows)
        self._let_go(pods, rows)

    def _follow_all(self, pods: Iterable[JsonObject], rows: dict[tuple[str, str], Job]) -> None:
        """Follow changes of queue or priority class in the rows of pods."""
        for pod in pods:
            row = rows.get(key_of(pod))
            if row is not None and not pod["metadata"].get("deletionTimestamp"):
                self._follow_labels(pod, row)

    def _let_go(self, pods: Iterable[JsonObject], rows: dict[tuple[str, str], Job]) -> None:
        """Request the removal of Kueue's finalizer from pods that are being deleted, and from pods alone that ended."""
        kept = [key_of(pod) for pod in pods if KUEUE_FINALIZER in (pod["metadata"].get("finalizers") or ())]
        deleted = {key_of(pod) for pod in pods if pod["metadata"].get("deletionTimestamp")}
        alone = {key_of(pod) for pod in pods if self._kind.outcome(pod).finished and not group_name_of(pod)}
        self._tell([rows[key] for key in kept if key in rows and key in deleted | alone])
        unknown = [key for key in kept if key not in rows and key in deleted]  # it has no row, or it was rejected
        if unknown and not self._cluster.is_mirrored:
            request_release(self._cluster.name, unknown)

    def _submit_all(self, pods: Iterable[JsonObject]) -> None:
        """Submit gated pods with a queue label that others created: alone, or as members of their group."""
        if self._cluster.is_mirrored:
            return
        grouped: dict[tuple[str, str], list[Submitted[JobManifest]]] = defaultdict(list)
        submitters: dict[tuple[str, str], set[str]] = defaultdict(set)
        context = job_context(self._cluster.configuration, OneLook(self._cluster, self._looked_up))
        wanted = [
            pod
            for pod in pods
            if pod["metadata"]["uid"] not in self._refused and may_be_taken(pod) and _in_managed_namespace(pod, context)
        ]
        self._forget_namesakes(wanted)
        for pod in wanted:
            uid = str(pod["metadata"]["uid"])
            try:
                read = read_job_object(as_submitted(pod))
            except ManifestErrors as errors:
                self._refuse(uid, key_of(pod), errors)
                continue
            name = read.spec.group.name if read.spec.group else uid
            key = read.spec.meta.namespace, name
            grouped[key].append(read)
            submitters[key].add(submitter_of(self._cluster.name, pod))
        for key, submissions in grouped.items():
            # A group of several users has no owner.
            self._submit_together(submissions, submitters[key].pop() if len(submitters[key]) == 1 else "")

    def _forget_namesakes(self, pods: Sequence[JsonObject]) -> None:
        """Delete the rows of earlier found pods with the same names, which must be gone."""
        keys = {key_of(pod) for pod in pods}
        rows = Job.objects.filter(
            cluster=self._cluster, kind=POD, found_in_cluster=True, name__in={name for _, name in keys}
        )
        if keys:
            self._without_pods([row for row in rows if (row.namespace, row.name) in keys])

    def _submit_together(self, submissions: Sequence[Submitted[JobManifest]], submitter: str) -> None:
        """Submit a group's pods at once; if that is refused, one by one, so that an invalid one does not keep out
        the others."""
        try:
            with transaction.atomic():
                apply_jobs(
                    self._cluster, submissions, actor=_ACTOR, submitted_by=submitter, found_in_cluster=True,
                    now=self._now,
                )  # fmt: skip
        except (KueuewebError, DataError) as errors:
            if len(submissions) > 1:
                for submitted in submissions:
                    submitted.report.errors.clear()
                    self._submit_together([submitted], submitter)
                return
            self._refuse_submitted(submissions[0], errors)
        else:
            request_push(self._cluster.name)

    def _refuse_submitted(self, submitted: Submitted[JobManifest], errors: KueuewebError | DataError) -> None:
        job = submitted.spec
        in_use = isinstance(errors, ManifestErrors) and any(
            each.reason == MistakeReason.IN_USE for each in errors.errors
        )
        if in_use or isinstance(errors, Conflict):
            # The name belongs to another pod, which may end. Each list tries again.
            _log.info("Pod %s of cluster %s: %s", job.meta.key, self._cluster.name, errors)
            return
        if not self._refuse(job.uid, (job.meta.namespace, job.meta.name), errors):
            return
        group = job.group.name if job.group else ""
        workload = Workload.objects.filter(
            cluster=self._cluster, namespace=job.meta.namespace, name=group, job__isnull=False
        ).first()
        if workload is not None:
            message = f"Pod {job.meta.name} can't join the group: {errors}"
            now = self._now or timezone.now()
            log_event(workload, "ErrWorkloadCompose", message, actor=_ACTOR, now=now, warning=True)

    def _lose(self, jobs: Sequence[JsonObject]) -> None:
        pods = [pod for pod in jobs if _concerns_us(pod)]
        if not pods:
            return
        self._touched |= self._groups.forget(pods)
        rows = self._rows(pods)
        self._end_singles(pods, rows)
        phases = {
            row.pk: MemberPhase.SUCCEEDED
            for pod in pods
            if (row := rows.get(key_of(pod))) is not None and row.group_id and _phase(pod) is MemberPhase.SUCCEEDED
        }
        record_phases(self._cluster, phases, now=self._now)
        self._without_pods([row for row in rows.values() if row.pk not in phases])

    def _end_singles(self, pods: Iterable[JsonObject], rows: dict[tuple[str, str], Job]) -> None:
        """Finish pods that ended and were deleted before their end was seen."""
        for pod in pods:
            row, ending = rows.get(key_of(pod)), ending_of(self._kind, pod)
            if row is None or row.group_id is not None or ending is None or _phase(pod) is not MemberPhase.SUCCEEDED:
                continue
            keys = list(row.workloads.values_list("namespace", "name"))
            record_finished(self._cluster, keys, *ending, actor=_ACTOR, now=self._now)

    def _find_missing(self, present: Iterable[JsonObject]) -> None:
        """Find pods that should be in the cluster and are missing in a complete list."""
        listed = [pod for pod in present if _concerns_us(pod)]
        self._touched |= self._groups.replace(listed)
        there = {key for pod in listed for key in keys_of(pod)}
        unfinished = Workload.objects.filter(cluster=self._cluster).exclude(status=WorkloadStatus.FINISHED)
        told = unfinished.filter(status=WorkloadStatus.ADMITTED, evicted_at=None, pushed_sequence__gt=0)
        pods = Job.objects.filter(cluster=self._cluster, kind=POD)
        rows = pods.filter(Q(phase="") | Q(deletion_requested_at__isnull=False)).filter(
            Q(found_in_cluster=True, workloads__in=unfinished)
            | Q(found_in_cluster=True, group__workloads__in=unfinished)
            | Q(workloads__in=told, deletion_requested_at=None)
            | Q(group__workloads__in=told)
            | Q(group__isnull=False, deletion_requested_at__isnull=False)
        )
        missing = [row for row in rows.distinct() if row_key(row) not in there and self._is_gone(row)]
        self._without_pods(missing)

    def _without_pods(self, rows: Sequence[Job]) -> None:
        """Handle deleted pods. A found pod gives up its place in the group; a pod that we stopped leaves; a pod of
        ours is created again."""
        gone = [row for row in rows if row.group_id is not None and (row.found_in_cluster or row.deletion_requested_at)]
        alone = [row for row in rows if row.group_id is None and row.found_in_cluster]
        keys = [key for row in alone for key in row.workloads.values_list("namespace", "name")]
        reason = FinishedReason.OWNER_NOT_FOUND
        record_finished(self._cluster, keys, reason, OWNER_IS_GONE, actor=_ACTOR, now=self._now)
        self._free_names(alone)
        forget_members(self._cluster, [row.pk for row in gone], now=self._now)
        self._tell([row for row in rows if not (row.found_in_cluster or row.deletion_requested_at or row.phase)])

    def _tell(self, rows: Iterable[Job]) -> None:
        """Push the rows of these pods again."""
        owners = {row.group_id or row.pk for row in rows}
        if owners:
            tell_again(self._cluster, list(Job.objects.filter(pk__in=owners).values_list("uid", flat=True)))
            request_push(self._cluster.name)


def _concerns_us(pod: JsonObject) -> bool:
    """Return whether the pod may have a row, or need a finalizer removed."""
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    if QUEUE_LABEL in labels or KUEUE_FINALIZER in (metadata.get("finalizers") or ()):
        return QUEUE_LABEL in labels or JOB_UID_LABEL in labels
    owner = controller_of(pod) or {}
    return JOB_UID_LABEL in labels and (owner.get("apiVersion", ""), owner.get("kind", "")) not in _SUSPENDED


def _in_managed_namespace(pod: JsonObject, context: JobContext) -> bool:
    try:
        return context.namespace_is_managed(key_of(pod)[0])
    except JobError:  # the namespace is unknown yet: the next list contains the pod again
        return False


def _phase(pod: JsonObject) -> MemberPhase | None:
    """Return how a pod of a group ended. A stopped pod of ours has not ended, since it is created again."""
    if is_kept_ended(pod):
        return MemberPhase.FAILED
    phase = _PHASES.get((pod.get("status") or {}).get("phase", ""))
    return phase if phase is not None and ended_by_itself(pod) else None
