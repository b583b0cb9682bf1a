"""Jobs of a cluster that another scheduler runs: stored unchanged, and linked to their workloads."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection, transaction

from accounts.models import Cluster
from queues.models import Job

_LINK: Final = """
UPDATE queues_workload AS workload SET job_id = job.id
FROM queues_job AS job
WHERE workload.cluster_id = %s AND workload.job_id IS NULL AND job.cluster_id = workload.cluster_id
    AND job.uid = ANY(%s) AND workload.labels ->> 'kueue.x-k8s.io/job-uid' = job.uid::text
"""


@dataclass(frozen=True, slots=True)
class MirroredJob:
    """A job as the cluster has it; `manifest` has apiVersion, kind, metadata and spec."""

    uid: str
    namespace: str
    name: str
    manifest: Mapping[str, Any]
    created_at: datetime
    suspended: bool


def store_jobs(cluster: Cluster, kind: str, jobs: Sequence[MirroredJob]) -> None:
    """Insert or update their rows. A row with the same name and another uid is deleted."""
    if not jobs:
        return
    with transaction.atomic():
        rows = Job.objects.filter(cluster=cluster, kind=kind)
        keys = {(job.namespace, job.name): uuid.UUID(job.uid) for job in jobs}
        named = rows.filter(name__in={name for _, name in keys}).values_list("pk", "namespace", "name", "uid")
        gone = [pk for pk, namespace, name, uid in named if keys.get((namespace, name), uid) != uid]
        _unlink_and_delete(gone)
        known = {row.uid: row for row in rows.filter(uid__in=keys.values())}
        new = []
        for job in jobs:
            metadata = job.manifest["metadata"]
            values = {
                "manifest": dict(job.manifest),
                "labels": metadata.get("labels") or {},
                "annotations": metadata.get("annotations") or {},
                "api_version": job.manifest["apiVersion"],
                "suspended": job.suspended,
                "found_in_cluster": True,
            }
            row = known.get(uuid.UUID(job.uid))
            if row is not None:
                rows.filter(pk=row.pk).update(**values)
                continue
            name = {"namespace": job.namespace, "name": job.name, "uid": uuid.UUID(job.uid)}
            new.append(Job(cluster=cluster, kind=kind, created_at=job.created_at, **name, **values))
        Job.objects.bulk_create(new)
        with connection.cursor() as cursor:
            cursor.execute(_LINK, [cluster.pk, list(keys.values())])


def forget_jobs(cluster: Cluster, kind: str, uids: Iterable[str]) -> None:
    """Delete jobs that no longer exist in the cluster. Their workloads stay until they are deleted, too."""
    gone = [uuid.UUID(uid) for uid in uids]
    if gone:
        rows = Job.objects.filter(cluster=cluster, kind=kind, uid__in=gone)
        _unlink_and_delete(list(rows.values_list("pk", flat=True)))


def keep_jobs(cluster: Cluster, kind: str, uids: Iterable[str]) -> None:
    """Forget every job of the kind except these, after all jobs of the cluster were listed."""
    kept = {uuid.UUID(uid) for uid in uids}
    rows = Job.objects.filter(cluster=cluster, kind=kind).values_list("pk", "uid")
    _unlink_and_delete([pk for pk, uid in rows if uid not in kept])


def _unlink_and_delete(keys: Sequence[int]) -> None:
    if not keys:
        return
    with transaction.atomic():
        for row in Job.objects.filter(pk__in=keys):
            row.workloads.update(job=None)
        Job.objects.filter(pk__in=keys).delete()
