"""Deletes the JobFlows that have succeeded and say `jobRetainPolicy: delete`."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db import connection, transaction

from accounts.models import Cluster
from queues.manifests import kueue_keys as keys
from queues.models import Job
from queues.services.flows.job_flows import FlowPhase, JobFlow, flow_of, job_flows
from queues.services.jobs import delete_jobs
from scheduling.model.vocabulary import FinishedReason

_FINISHED: Final = """work.status = 'Finished' AND work.conditions @> '[{{"type": "Finished", "reason": "{}"}}]'"""
_SUCCEEDED: Final = _FINISHED.format(FinishedReason.SUCCEEDED)
_REPLACED: Final = _FINISHED.format(FinishedReason.WORKLOAD_SLICE_REPLACED)
_FLOW: Final = f"job.cluster_id, job.namespace, job.labels ->> '{keys.BY_JOB_FLOW}'"
COMPLETED: Final = f"""
    SELECT {_FLOW} FROM queues_job AS job
    WHERE job.labels ? '{keys.BY_JOB_FLOW}' AND job.annotations ->> '{keys.RETAIN_POLICY}' = 'delete'
        AND starts_with(job.labels ->> '{keys.BY_JOB_FLOW}', job.namespace || '.') AND job.deletion_requested_at IS NULL
        AND NOT job.annotations ? '{keys.JOB_FLOW_UID}'
    EXCEPT
    SELECT {_FLOW} FROM queues_job AS job
    WHERE job.labels ? '{keys.BY_JOB_FLOW}' AND (
        job.deletion_requested_at IS NOT NULL
        OR job.annotations ->> '{keys.RETAIN_POLICY}' IS DISTINCT FROM 'delete'
        OR NOT EXISTS (SELECT FROM queues_workload AS work WHERE work.job_id = job.id AND {_SUCCEEDED})
        OR EXISTS (
            SELECT FROM queues_workload AS work WHERE work.job_id = job.id AND NOT ({_SUCCEEDED}) AND NOT ({_REPLACED})
        )
    )"""  # noqa: S608 (constants)
"""Finds the flows that have succeeded and are deleted then, without a row of any other one: it runs every two
seconds. The watcher deletes the jobs of a flow in the cluster, once the status of the flow says that it has
succeeded."""
_ACTOR: Final = "scheduler"


def delete_completed_flows(cluster: Cluster, now: datetime) -> int:
    """Delete the jobs of flows that have succeeded, if the flow says so. Returns the number of flows."""
    deleted = 0
    found = {(namespace, flow_of(namespace, {keys.BY_JOB_FLOW: text})) for namespace, text in _succeeded(cluster)}
    for flow in job_flows(cluster, only=found) if found else ():
        if flow.phase is FlowPhase.SUCCEED and flow.is_deleted_when_done:
            delete_flow(cluster, flow, actor=_ACTOR, now=now)
            deleted += 1
    return deleted


def _succeeded(cluster: Cluster) -> list[tuple[str, str]]:
    with connection.cursor() as cursor:
        cursor.execute(COMPLETED)
        return [(namespace, text) for pk, namespace, text in cursor.fetchall() if pk == cluster.pk]


def delete_flow(cluster: Cluster, flow: JobFlow, *, actor: str, now: datetime) -> dict[int, str]:
    """Delete the jobs of a flow and their workloads. Returns why a job has to wait, by primary key."""
    with transaction.atomic():
        rows = Job.objects.filter(pk__in=[row.pk for row in flow.rows]).order_by("pk").select_for_update()
        return delete_jobs(cluster, rows.prefetch_related("workloads"), actor=actor, now=now)
