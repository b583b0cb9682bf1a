"""Syncs jobs of the cluster: records how they ended, and creates workloads for labelled jobs that others created."""

from __future__ import annotations

import copy
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from accounts.models import Cluster
from clusters.api_errors import ClusterError
from clusters.api_objects import JsonObject
from clusters.client import ClusterClient, Listing, WatchEvent
from clusters.jobs.cluster_objects import KeptObjects, RowsAndCluster
from clusters.jobs.framework.context import JobContext
from clusters.jobs.framework.defaulting import DEFAULT_NAME, default_queue
from clusters.jobs.framework.identity import is_managed, queue_name_of
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.hot_rows import jobs_without_manifests
from clusters.jobs.integrations import job_context
from clusters.jobs.objects import JOB_UID_LABEL
from clusters.jobs.owned_keys import without_owned_keys
from clusters.jobs.reading import NO_CLUSTER, context_of
from foundation.exceptions import ManifestErrors
from foundation.postgresql.instances import fetched_rows
from foundation.transactions import unnoticed_transaction
from foundation.wake_ups import request_push
from queues.manifests.job import WorkloadsPer
from queues.manifests.job_workloads import workload_specs
from queues.manifests.kueue_keys import PRIORITY_CLASS, QUEUE_NAME
from queues.manifests.workload import WorkloadSpec
from queues.models import Job, Workload
from queues.services.cluster_objects import StoredObjects
from queues.services.jobs import apply_jobs, read_job_object
from queues.services.workloads import raise_push, record_finished
from scheduling.lifecycle.conditions import OWNER_IS_GONE
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_log = logging.getLogger(__name__)

_ACTOR: Final = "watcher"
_DEFAULT_QUEUES: Final = """
    SELECT namespace, created_at FROM queues_localqueue
    WHERE cluster_id = %s AND name = %s AND deletion_requested_at IS NULL
"""
_FOLLOWED: Final = (QUEUE_NAME, PRIORITY_CLASS)
"""Labels that the owner of a found job may change in the cluster, and that its workload follows."""


class JobSync:
    """Keeps the workloads of one kind of job in step with the jobs of one cluster."""

    def __init__(self, cluster: Cluster, kind: JobKind, client: ClusterClient, kept: KeptObjects | None = None) -> None:
        """`kept`: objects that earlier batches have looked up; None: each batch looks up its own."""
        self._cluster = cluster
        self._kept = kept
        self._kind = kind
        self._client = client
        self._refused: set[str] = set()
        self._complaints: dict[str, str] = {}
        """uid -> the last logged message about a job that was refused."""
        self._refused_labels: dict[str, JsonObject] = {}
        self._now: datetime | None = None
        self._looked_up = RowsAndCluster(cluster, client)
        self._defaults: dict[str, datetime] | None = None

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Apply lists and changes in the order in which they came."""
        self._now = datetime.fromtimestamp(now, UTC)
        self._defaults = None
        present: dict[str, JsonObject] = {}
        gone: dict[str, JsonObject] = {}
        listed = False
        for item in items:
            if isinstance(item, Listing):
                listed, present = True, {job["metadata"]["uid"]: job for job in item.items}
                gone.clear()
            elif item.type == "DELETED":
                uid = item.object["metadata"]["uid"]
                present.pop(uid, None)
                gone[uid] = item.object
            else:
                present[item.object["metadata"]["uid"]] = item.object
        # Deleted jobs first, since a new one may have the name or the place in a group.
        self._lose(list(gone.values()))
        if listed:
            self._find_missing(present.values())
            self._refused.clear()  # a missing object may exist now
        self._take_in(list(present.values()))

    def _take_in(self, jobs: Sequence[JsonObject]) -> None:
        rows = self._rows(jobs)
        if any(self._kind.is_suspended(job) for job in jobs if key_of(job) in rows):
            # The job is suspended now, so an evicted workload may have stopped.
            request_push(self._cluster.name)

    def _context(self) -> JobContext:
        """Return the objects that the kind's rules look up."""
        return context_of(StoredObjects(self._cluster)) if self._kind.refers_to else NO_CLUSTER

    def _relabelled(self, job: JsonObject, row: Job) -> JsonObject | None:
        """Return the manifest of a found job whose owner changed its queue or priority class."""
        if not row.found_in_cluster or row.deletion_requested_at is not None:
            return None
        if self._cluster.is_mirrored or self._kind.outcome(job).finished:
            return None
        labels = job["metadata"].get("labels") or {}
        if all(labels.get(key) == row.labels.get(key) for key in _FOLLOWED):
            return None
        return _relabelled(job, row.manifest)

    def _follow_labels(self, job: JsonObject, row: Job) -> None:
        """Move a workload to another queue or priority class: a pending one always, one with quota as far as Kueue
        allows.
        """
        manifest = self._relabelled(job, row)
        uid = str(job["metadata"]["uid"])
        if manifest is None or manifest["metadata"]["labels"] == self._refused_labels.get(uid):
            return
        try:
            with transaction.atomic():
                submitted = read_job_object(manifest, objects=self._context().objects)
                apply_jobs(self._cluster, [submitted], actor=_ACTOR, found_in_cluster=True, now=self._now)
        except ManifestErrors as errors:
            self._refused_labels[uid] = manifest["metadata"]["labels"]
            _log.warning("%s of cluster %s: its label changes were rejected: %s", row, self._cluster.name, errors)

    def _note(self, job: JsonObject, why: Exception | str) -> None:
        _log.info("%s %s of cluster %s: %s", self._kind.kind, _name(job), self._cluster.name, why)

    def _to_take(self, job: JsonObject) -> JsonObject | None:
        """Return a job without a row as the webhook leaves it; None if it gets no workload."""
        if self._kind.workloads_per is WorkloadsPer.POD or self._cluster.is_mirrored:
            return None  # pods that are workloads of their own are handled separately
        if not self._kind.has_workload:
            return None
        if self._kind.outcome(job).finished or self._kind.is_skipped(job) or job["metadata"]["uid"] in self._refused:
            return None
        return self._as_the_webhook_leaves_it(job)

    def _refuse(self, uid: str, key: tuple[str, str], errors: Exception) -> bool:
        """Note that a job can't be read: it is tried again with the next list, and reported once, or when the reason
        changes. Returns whether it was reported now.
        """
        self._refused.add(uid)
        if self._complaints.get(uid) == str(errors):
            return False
        self._complaints[uid] = str(errors)
        _log.warning("%s %s of cluster %s: %s", self._kind.kind, "/".join(key), self._cluster.name, errors)
        return True

    def _as_the_webhook_leaves_it(self, job: JsonObject) -> JsonObject | None:
        """Return the job with its queue's name; None if it needs no workload of its own.

        The webhook names the namespace's default queue, unless it was down when the job was created: it fails open for
        jobs without a queue name. A job that is older than its default queue must not be suspended.
        """
        namespace, named = job["metadata"]["namespace"], queue_name_of(job)
        default_since = None if named else self._default_queues().get(namespace)
        late = default_since is not None and datetime.fromisoformat(job["metadata"]["creationTimestamp"]) >= (
            default_since.replace(microsecond=0)
        )
        context = job_context(self._cluster.configuration, self._looked_up)
        if not (named or late or context.settings.manage_jobs_without_queue_name):
            return None
        if not context.is_enabled(job) or not context.namespace_is_managed(namespace):
            return None
        found = copy.deepcopy(job)
        if late:
            default_queue(found, context)
        return found if is_managed(found, context) else None

    def _default_queues(self) -> dict[str, datetime]:
        """By namespace, since when it has a default LocalQueue, which gets the jobs that name no queue."""
        if self._defaults is None:
            self._defaults = dict(fetched_rows(_DEFAULT_QUEUES, [self._cluster.pk, DEFAULT_NAME]))
        return self._defaults

    def _specs(self, job: JsonObject) -> list[WorkloadSpec]:
        """Return the workloads that a found job requests. Raises ManifestErrors."""
        # A copy of a started job, or a job that a restored database does not know, still names its submitter.
        submitted = without_owned_keys(as_submitted(job))
        objects = self._context().objects
        return workload_specs(submitted, objects=objects, queue_required=False, found_in_cluster=True)

    def _lose(self, jobs: Sequence[JsonObject]) -> None:
        """Handle deleted jobs: the workload of a found job ends, a submitted job is created again."""
        if not jobs:
            return
        rows = self._rows(jobs)
        lost = [row for row in rows.values() if not row.deletion_requested_at]
        self._without_job(lost)
        withdrawn = [row.pk for row in rows.values() if row.deletion_requested_at]
        left = Workload.objects.filter(job__in=withdrawn, deletion_requested_at=None)
        self._end_orphans(list(left.exclude(status=WorkloadStatus.FINISHED).values_list("namespace", "name")))

    def _find_missing(self, present: Iterable[JsonObject]) -> None:
        """Find jobs that should be in the cluster and are missing in a complete list."""
        there = {key for job in present for key in keys_of(job)}
        told = Q(status=WorkloadStatus.ADMITTED, evicted_at=None, pushed_sequence__gt=0)
        expected = Workload.objects.filter(
            told | Q(job__found_in_cluster=True),
            cluster=self._cluster,
            job__kind=self._kind.kind,
            job__deletion_requested_at=None,
        ).exclude(status=WorkloadStatus.FINISHED)
        # Nearly all of them exist, so do not read their rows.
        keys = expected.order_by().values_list("job", "job__namespace", "job__name", "job__uid")
        missing = {pk for pk, namespace, name, uid in keys if (namespace, name, str(uid)) not in there}
        rows = Job.objects.filter(pk__in=missing).order_by("pk")
        self._without_job([row for row in rows if self._is_gone(row)])

    def _is_gone(self, row: Job) -> bool:
        """Return whether the cluster confirms that this job does not exist. A list may be older than the rows and lack
        a job created since."""
        try:
            there = self._client.get(self._kind.resource, row.namespace, row.name)
        except ClusterError as error:
            _log.info("Could not check whether %s still exists in cluster %s: %s", row, self._cluster.name, error)
            return False
        return there is None or row_key(row) not in keys_of(there)

    def _without_job(self, rows: Collection[Job]) -> None:
        """Finish workloads of missing found jobs with OwnerNotFound, and of jobs that delete themselves after their
        end; push ours again."""
        orphaned: list[tuple[str, str]] = []
        found = [row for row in rows if row.found_in_cluster]
        again: list[uuid.UUID] = []
        for row in rows:
            if row.found_in_cluster or "ttlSecondsAfterFinished" in (row.manifest.get("spec") or {}):
                orphaned += list(row.workloads.values_list("namespace", "name"))
            else:
                again.append(row.uid)
        if orphaned:
            self._end_orphans(orphaned)
            self._free_names(found)
        if again:
            Job.objects.filter(cluster=self._cluster, uid__in=again).update(pushed_generation=0)
            tell_again(self._cluster, again)
            request_push(self._cluster.name)

    def _end_orphans(self, keys: Sequence[tuple[str, str]]) -> None:
        message, reason = OWNER_IS_GONE, FinishedReason.OWNER_NOT_FOUND
        record_finished(self._cluster, keys, reason, message, actor=_ACTOR, now=self._now)

    def _free_names(self, rows: Iterable[Job]) -> None:
        """Free the names of deleted found jobs, since another job may have the name now."""
        gone = Job.objects.filter(pk__in=[row.pk for row in rows], deletion_requested_at=None)
        gone.update(deletion_requested_at=self._now or timezone.now())

    def _rows(self, jobs: Sequence[JsonObject]) -> dict[tuple[str, str], Job]:
        """Return the rows of these jobs, by namespace and name.

        A job is identified by its row's uid in its label, or by the cluster's uid. Anyone can write a label, so it
        counts only if the namespace and name match the row's.
        """
        keys = {key for job in jobs for key in keys_of(job)}
        rows = jobs_without_manifests(self._cluster, self._kind.kind, {uid for _, _, uid in keys})
        return {(row.namespace, row.name): row for row in rows if row_key(row) in keys}


def tell_again(cluster: Cluster, job_uids: Sequence[uuid.UUID]) -> None:
    """Push the rows of these jobs' workloads again."""
    jobs = Job.objects.filter(cluster=cluster, uid__in=job_uids)
    with unnoticed_transaction():
        raise_push(Workload.objects.filter(job__in=jobs))


def key_of(job: JsonObject) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _name(job: JsonObject) -> str:
    return "/".join(key_of(job))


def keys_of(job: JsonObject) -> list[tuple[str, str, str]]:
    """Return the identities of a job as (namespace, name, uid): with the cluster's uid, and with the uid in our label
    if it is valid."""
    found = [(*key_of(job), str(job["metadata"]["uid"]))]
    label = (job["metadata"].get("labels") or {}).get(JOB_UID_LABEL, "")
    try:
        found.append((*key_of(job), str(uuid.UUID(label))))
    except ValueError:
        return found
    return found


def row_key(row: Job) -> tuple[str, str, str]:
    """(namespace, name, uid) of its job in the cluster."""
    return row.namespace, row.name, str(row.uid)


def as_submitted(job: JsonObject) -> JsonObject:
    """Return the manifest as submitted, without the fields that a server adds."""
    metadata: dict[str, Any] = {
        key: value
        for key, value in job["metadata"].items()
        if key in ("name", "namespace", "uid", "labels", "annotations")
    }
    spec = job.get("spec") or {}  # an operator's job may be created empty
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": metadata, "spec": spec}


def _relabelled(job: JsonObject, manifest: Mapping[str, Any]) -> JsonObject | None:
    """Return the stored manifest with the job's present queue and priority class; None if they are unchanged.

    A removed queue label changes nothing: the job stays in its queue.
    """
    labels = dict((manifest.get("metadata") or {}).get("labels") or {})
    now = job["metadata"].get("labels") or {}
    wanted = {key: now[key] for key in _FOLLOWED if now.get(key)}
    kept = {key: value for key, value in labels.items() if key != PRIORITY_CLASS}
    changed = {**kept, **wanted}
    if changed == labels:
        return None
    return {**manifest, "metadata": {**manifest["metadata"], "labels": changed}}
