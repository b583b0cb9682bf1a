"""The gates of workloads that start after other jobs (`kueueweb.io/start-after`).

`waits_for` of a row holds the jobs that have not succeeded yet. A job counts once all its workloads have succeeded, and
then leaves the lists: its later deletion delays no other job. After a failed or cancelled job, none of the jobs that
name it starts.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime
from typing import Final

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.wake_ups import wake_scheduler
from queues.manifests.job_workloads import JOB_READERS
from queues.manifests.pod_group import POD_GROUP
from queues.models import Workload
from queues.services.flows.job_flows import failed_flows, flow_of
from queues.services.workload_events import log_event
from scheduling.model.vocabulary import WorkloadStatus

WAITING: Final = "SELECT FROM queues_workload WHERE waits_for <> '[]' AND status <> 'Finished'"
"""Finds a row while any workload waits for a job."""

_HAVE_SUCCEEDED: Final = """
    bool_and(work.status = 'Finished' AND work.conditions @> '[{"type": "Finished", "reason": "Succeeded"}]')"""
_REPLACED: Final = """work.conditions @> '[{"type": "Finished", "reason": "WorkloadSliceReplaced"}]'"""
_SUCCEEDED: Final = f"""
    WITH waited AS (
        SELECT DISTINCT waiting.namespace, before.name
        FROM queues_workload AS waiting CROSS JOIN LATERAL jsonb_array_elements_text(waiting.waits_for) AS before (name)
        WHERE waiting.cluster_id = %s AND waiting.waits_for <> '[]' AND waiting.status <> 'Finished'
    )
    SELECT job.namespace, job.name
    FROM waited JOIN queues_job AS job USING (namespace, name) JOIN queues_workload AS work ON work.job_id = job.id
    WHERE job.cluster_id = %s AND job.kind = ANY(%s) AND work.parent_name = '' AND NOT {_REPLACED}
    GROUP BY job.namespace, job.name
    HAVING {_HAVE_SUCCEEDED}"""  # noqa: S608 (constants)
_ACTOR: Final = "scheduler"


def open_start_gates(cluster: Cluster, now: datetime) -> int:
    """Remove the jobs that have succeeded from the lists of the workloads that wait for them. Returns the number of
    workloads that wait for no job any more."""
    done = _succeeded(cluster)
    if not done:
        return 0
    with transaction.atomic():
        waiting = Workload.objects.filter(cluster=cluster, namespace__in=done).exclude(waits_for=[])
        waiting = waiting.exclude(status=WorkloadStatus.FINISHED).select_related("job").order_by("pk")
        rows = list(waiting.select_for_update(of=("self",)))
        failed = failed_flows(cluster, {flow for row in rows if (flow := _flow(row)) is not None})
        opened = 0
        for row in rows:
            met = [name for name in row.waits_for if name in done[row.namespace]]
            if not met or _flow(row) in failed:
                continue
            row.waits_for = [name for name in row.waits_for if name not in met]
            row.save(update_fields=["waits_for", "updated_at"])
            log_event(row, "StartGateOpened", f"Succeeded: {', '.join(met)}", actor=_ACTOR, now=now)
            opened += not row.waits_for
        if opened:
            wake_scheduler(cluster.name)
    return opened


def _flow(row: Workload) -> tuple[str, str] | None:
    """Return the JobFlow of a workload's job, if it has one: no further job of a flow starts when one has failed."""
    name = flow_of(row.namespace, row.job.labels) if row.job is not None else ""
    return (row.namespace, name) if name else None


def _succeeded(cluster: Cluster) -> dict[str, set[str]]:
    """Return, by namespace, the names of the jobs that have succeeded and for which a workload waits."""
    # With the kinds, PostgreSQL finds each job by the index of the names.
    kinds = [*{kind for _, kind in JOB_READERS}, POD_GROUP]
    found: dict[str, set[str]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(_SUCCEEDED, [cluster.pk, cluster.pk, kinds])
        for namespace, name in cursor.fetchall():
            found[namespace].add(name)
    return found
