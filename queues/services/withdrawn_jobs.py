"""Cancelled or deleted jobs: their rows stay until the cluster has deleted them; then their names are free."""

from collections.abc import Collection, Iterable
from datetime import datetime
from typing import Any

from django.db import connection
from django.db.models import F, Q
from django.utils import timezone

from accounts.models import Cluster
from foundation.wake_ups import request_push
from queues.manifests.pod_group import POD
from queues.models import Job, Workload
from queues.services.flows.start_gates import lock_with_awaiting, open_start_gates
from scheduling.model.vocabulary import WorkloadStatus

JobKey = tuple[str, str, str]
"""(kind, namespace, name)."""


def withdraw_jobs_of(cluster: Cluster, workloads: Iterable[tuple[str, str]], now: datetime) -> None:
    """Mark the jobs of ended workloads for removal, and request the push. A job with other workloads (a Deployment,
    each of whose pods is a workload) loses one replica for each workload that ended."""
    keys = list(workloads)
    parameters: list[Any] = [[key[0] for key in keys], [key[1] for key in keys], cluster.pk]
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH ended AS (
                SELECT workload.job_id, count(*) AS count
                FROM queues_workload AS workload JOIN unnest(%s::text[], %s::text[]) AS key (namespace, name)
                    ON workload.namespace = key.namespace AND workload.name = key.name
                WHERE workload.cluster_id = %s AND workload.job_id IS NOT NULL
                GROUP BY workload.job_id
            ), told AS (
                UPDATE queues_workload AS workload SET push_sequence = push_sequence + 1
                FROM ended WHERE workload.job_id = ended.job_id
            ), shared AS (
                SELECT DISTINCT job_id FROM queues_workload JOIN ended USING (job_id)
                WHERE status <> 'Finished' AND deletion_requested_at IS NULL AND ending IS NULL
            )
            UPDATE queues_job AS job SET
                manifest = CASE WHEN shared.job_id IS NULL THEN job.manifest ELSE
                    jsonb_set(job.manifest, '{spec,replicas}', to_jsonb(greatest(
                        0, coalesce((job.manifest #>> '{spec,replicas}')::int, 1) - ended.count))) END,
                deletion_requested_at = CASE WHEN shared.job_id IS NULL THEN %s ELSE job.deletion_requested_at END
            FROM ended LEFT JOIN shared USING (job_id) WHERE job.id = ended.job_id
            """,
            [*parameters, now],
        )
    request_push(cluster.name)


def free_names(cluster: Cluster, keys: Iterable[JobKey]) -> None:
    """Delete withdrawn jobs of these names if their workloads have finished and the withdrawal was pushed.

    The finished workloads stay as history, without a job. Their ends are counted first, for jobs that wait for them. A
    group of pods is deleted whole, with the first of its names.
    """
    wanted = set(keys)
    wanted |= _groups_of(cluster, {(namespace, name) for kind, namespace, name in wanted if kind == POD})
    if not wanted:
        return
    at_work = Workload.objects.exclude(
        Q(pushed_sequence=0) | Q(pushed_sequence__gte=F("push_sequence")), status=WorkloadStatus.FINISHED
    )
    rows = (
        Job.objects.filter(
            cluster=cluster, deletion_requested_at__isnull=False, name__in={name for _, _, name in wanted}
        )
        .exclude(pk__in=at_work.filter(job__isnull=False).values("job"))
        .select_for_update()
        .order_by("pk")
    )
    gone = [row.pk for row in rows if (row.kind, row.namespace, row.name) in wanted]
    if gone:
        lock_with_awaiting(cluster, Workload.objects.filter(job__in=gone).values_list("namespace", "name"))
        open_start_gates(cluster, timezone.now(), later=True)
        Workload.objects.filter(job__in=gone).update(job=None)
        Job.objects.filter(pk__in=gone).delete()


def _groups_of(cluster: Cluster, pods: Collection[tuple[str, str]]) -> set[JobKey]:
    """Return the withdrawn groups of pods with these namespaces and names."""
    if not pods:
        return set()
    rows = Job.objects.filter(
        cluster=cluster, name__in={name for _, name in pods}, group__deletion_requested_at__isnull=False
    ).select_related("group")
    groups = {row.group for row in rows if (row.namespace, row.name) in pods and row.group is not None}
    return {(group.kind, group.namespace, group.name) for group in groups}
