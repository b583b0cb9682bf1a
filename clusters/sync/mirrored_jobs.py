"""Mirrors jobs of a cluster that another scheduler runs to rows, which only show the job of a workload."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from accounts.models import Cluster
from clusters.api_objects import JsonObject
from clusters.client import Listing, WatchEvent
from clusters.jobs.framework.job_kind import JobKind
from clusters.jobs.objects import QUEUE_LABEL
from clusters.sync.jobs import as_submitted
from clusters.sync.ownership import Ownership
from clusters.sync.present import present, uid_of
from queues.services.mirror.mirrored_jobs import MirroredJob, forget_jobs, keep_jobs, store_jobs


class MirroredJobSync:
    """Keeps the rows of one kind of job, those that name a queue, in step with the jobs of one cluster."""

    def __init__(self, cluster: Cluster, kind: JobKind, ownership: Ownership) -> None:
        self._cluster = cluster
        self._kind = kind
        self._ownership = ownership
        self._versions: dict[str, str] = {}
        """uid -> the resourceVersion that is stored."""

    def apply(self, items: Sequence[Listing | WatchEvent], now: float) -> None:
        """Applies lists and changes, in the order in which they came."""
        found = present(items, uid_of)
        self._ownership.note_jobs(found.objects.values())
        queued = {uid: job for uid, job in found.objects.items() if _names_a_queue(job)}
        for uid in found.gone:
            self._versions.pop(uid, None)
        forget_jobs(self._cluster, self._kind.kind, found.gone)
        if found.listed:
            self._versions = {uid: version for uid, version in self._versions.items() if uid in queued}
            keep_jobs(self._cluster, self._kind.kind, queued)
        news = {
            uid: job for uid, job in queued.items() if self._versions.get(uid) != job["metadata"]["resourceVersion"]
        }
        store_jobs(self._cluster, self._kind.kind, [self._read(job) for job in news.values()])
        self._versions |= {uid: job["metadata"]["resourceVersion"] for uid, job in news.items()}

    def _read(self, job: JsonObject) -> MirroredJob:
        metadata = job["metadata"]
        return MirroredJob(
            metadata["uid"],
            metadata["namespace"],
            metadata["name"],
            {**as_submitted(job), "apiVersion": self._kind.api_version, "kind": self._kind.kind},
            datetime.fromisoformat(metadata["creationTimestamp"]),
            self._kind.is_suspended(job),
        )


def _names_a_queue(job: JsonObject) -> bool:
    return bool((job["metadata"].get("labels") or {}).get(QUEUE_LABEL))
