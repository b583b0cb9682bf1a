"""The gates of workloads that start after other jobs (`kueueweb.io/start-after`).

`waits_for` of a row holds the jobs that are not far enough yet. A job counts once all its workloads have succeeded (or
have ended, or started, as the item says), and then leaves the lists: its later deletion delays no other job. After a
failed or cancelled job, none of the jobs that wait for its success starts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from django.db import connection, transaction

from accounts.models import Cluster
from foundation.wake_ups import wake_scheduler
from queues.manifests import kueue_keys as keys
from queues.manifests.job_workloads import JOB_READERS
from queues.manifests.pod_group import POD_GROUP
from queues.manifests.start_order import ENDED, STARTED
from queues.models import Workload
from queues.services.workload_events import log_event
from scheduling.model.vocabulary import FinishedReason, WorkloadStatus

_ENDED: Final = """work.conditions @> '[{{"type": "Finished", "reason": "{}"}}]'"""
_SUCCEEDED: Final = _ENDED.format(FinishedReason.SUCCEEDED)
_REPLACED: Final = _ENDED.format(FinishedReason.WORKLOAD_SLICE_REPLACED)
_WAITS: Final = """
    queues_workload AS waiting CROSS JOIN LATERAL jsonb_array_elements_text(waiting.waits_for) AS before (item)"""
_NAME: Final = "split_part(before.item, ':', -1)"
_IS_WAITING: Final = "waiting.waits_for <> '[]' AND waiting.status <> 'Finished'"
_HAS_ENDED: Final = "work.status = 'Finished'"
_HAS_STARTED: Final = """(work.admitted_at IS NOT NULL OR EXISTS (
    SELECT FROM queues_workloadevent AS event WHERE event.workload_uid = work.uid AND event.reason = 'Admitted'))"""
"""It was admitted once: an eviction forgets the time, and the log does not."""
_FLOW: Final = f"labels ->> '{keys.BY_JOB_FLOW}'"
_MET: Final = f"""
    WITH items AS MATERIALIZED (
        SELECT waiting.cluster_id, waiting.namespace, waiting.id, waiting.job_id, before.item, {_NAME} AS name
        FROM {_WAITS} WHERE {_IS_WAITING}
    ), waited AS MATERIALIZED (
        SELECT cluster_id, namespace, name, bool_or(starts_with(item, '{STARTED}:')) AS by_start
        FROM items GROUP BY cluster_id, namespace, name
    ), known AS MATERIALIZED (
        SELECT job.cluster_id, job.namespace, job.name,
            bool_and({_HAS_ENDED} AND {_SUCCEEDED}) AS has_succeeded, bool_and({_HAS_ENDED}) AS has_ended
        FROM waited
        JOIN queues_job AS job USING (cluster_id, namespace, name) JOIN queues_workload AS work ON work.job_id = job.id
        WHERE job.kind IN (KINDS) AND work.parent_name = '' AND NOT {_REPLACED}
        GROUP BY job.cluster_id, job.namespace, job.name
        HAVING bool_and({_HAS_ENDED} OR (waited.by_start AND {_HAS_STARTED}))
    ), met AS MATERIALIZED (
        SELECT items.cluster_id, items.namespace, items.id, items.item,
            coalesce((SELECT job.{_FLOW} FROM queues_job AS job WHERE job.id = items.job_id), '') AS flow
        FROM items JOIN known USING (cluster_id, namespace, name)
        WHERE CASE
            WHEN starts_with(items.item, '{STARTED}:') THEN true
            WHEN starts_with(items.item, '{ENDED}:') THEN known.has_ended
            ELSE known.has_succeeded END
    ), failed AS MATERIALIZED (
        SELECT cluster_id, namespace, flow FROM (
            SELECT job.cluster_id, job.namespace, job.{_FLOW} AS flow, job.deletion_requested_at IS NULL AS is_kept,
                bool_and({_HAS_ENDED})
                    AND NOT (bool_and({_SUCCEEDED} OR {_REPLACED}) AND bool_or({_SUCCEEDED})) AS has_failed
            FROM queues_job AS job LEFT JOIN queues_workload AS work ON work.job_id = job.id
            WHERE job.labels ? '{keys.BY_JOB_FLOW}' AND starts_with(job.{_FLOW}, job.namespace || '.')
                AND ((job.cluster_id, job.namespace, job.{_FLOW}) IN (
                    SELECT cluster_id, namespace, flow FROM met)) IS TRUE
            GROUP BY job.id
        ) AS jobs
        GROUP BY cluster_id, namespace, flow HAVING bool_and(is_kept) AND bool_or(has_failed)
    )
    SELECT cluster_id, id, item FROM met
    WHERE (cluster_id, namespace, flow) NOT IN (SELECT cluster_id, namespace, flow FROM failed)"""  # noqa: S608 (constants)
"""`failed` has the flows of `FlowPhase.FAILED`: of a flow in which a job has failed, no further job starts.

Each part is computed once, by hashes (`IS TRUE` keeps the planner from a nested loop): a condition that PostgreSQL
evaluates for each waiting workload takes seconds with some thousands of them."""
_LOCK: Final = f"""
    WITH named AS (
        SELECT workload.id, workload.job_id
        FROM queues_workload AS workload JOIN unnest(%s::text[], %s::text[]) AS key (namespace, name)
            USING (namespace, name)
        WHERE workload.cluster_id = %s
    ), jobs AS (
        SELECT namespace, name FROM queues_job WHERE id = ANY (ARRAY(SELECT job_id FROM named))
    ), awaiting AS (
        SELECT waiting.id FROM {_WAITS}
        WHERE waiting.cluster_id = %s AND {_IS_WAITING}
            AND ((waiting.namespace, {_NAME}) IN (SELECT namespace, name FROM jobs)) IS TRUE
    )
    SELECT FROM queues_workload
    WHERE id = ANY (ARRAY(SELECT id FROM named)) OR job_id = ANY (ARRAY(SELECT job_id FROM named))
        OR id = ANY (ARRAY(SELECT id FROM awaiting))
    ORDER BY id FOR UPDATE"""  # noqa: S608 (constants)
_ACTOR: Final = "scheduler"


def met_query() -> str:
    """Return a query of the workloads that wait for a job that is far enough: its cluster and key, and the item of its
    list. The task that opens the gates runs while there are some, so workloads of a failed flow are left out: they
    wait for ever.

    Call it when the kinds of jobs are registered: with them, PostgreSQL finds each job by the index of the names.
    """
    kinds = sorted({kind for _, kind in JOB_READERS} | {POD_GROUP})
    return _MET.replace("KINDS", ", ".join(f"'{kind}'" for kind in kinds))


def lock_with_awaiting(cluster: Cluster, keys: Iterable[tuple[str, str]]) -> None:
    """Lock workloads (namespace, name), all other workloads of their jobs, and the workloads that wait for these jobs,
    in the common lock order. With arrays PostgreSQL uses the indexes, and with subqueries none. `IS TRUE` keeps the
    planner from a nested loop over the waiting workloads and the jobs.

    A deletion calls it first: it opens gates while it holds its own workloads, and two deletions could otherwise wait
    for each other.
    """
    keys = list(keys)
    with connection.cursor() as cursor:
        cursor.execute(_LOCK, [[key[0] for key in keys], [key[1] for key in keys], cluster.pk, cluster.pk])


def open_start_gates(cluster: Cluster, now: datetime, *, later: bool = False) -> int:
    """Remove the jobs that are far enough from the lists of the workloads that wait for them. Returns the number of
    workloads that wait for no job any more.

    * later: leave workloads that another transaction changes to a later call, rather than waiting for it. Callers that
      hold locks need it: they lock the workloads that wait for their own jobs before (`lock_with_awaiting`).
    """
    met = _met(cluster)
    if not met:
        return 0
    with transaction.atomic():
        rows = Workload.objects.filter(pk__in=met).exclude(status=WorkloadStatus.FINISHED).order_by("pk")
        opened = 0
        for row in rows.select_for_update(skip_locked=later):
            names = [name for name in row.waits_for if name in met[row.pk]]
            if not names:
                continue  # another process has opened it
            row.waits_for = [name for name in row.waits_for if name not in names]
            row.save(update_fields=["waits_for", "updated_at"])
            log_event(row, "StartGateOpened", _words(names), actor=_ACTOR, now=now)
            opened += not row.waits_for
        if opened:
            wake_scheduler(cluster.name)
    return opened


def _words(items: Sequence[str]) -> str:
    """Return the jobs that are far enough by their conditions: `Succeeded: a, b; ended: c`."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in items:
        condition, _, name = item.rpartition(":")
        found[{STARTED: "started", ENDED: "ended"}.get(condition, "succeeded")].append(name)
    text = "; ".join(f"{word}: {', '.join(names)}" for word, names in found.items())
    return text[:1].upper() + text[1:]


def _met(cluster: Cluster) -> dict[int, set[str]]:
    """Return the items of the lists whose jobs are far enough, by the key of the workload."""
    found: dict[int, set[str]] = defaultdict(set)
    with connection.cursor() as cursor:
        cursor.execute(met_query())
        for cluster_id, pk, item in cursor.fetchall():
            if cluster_id == cluster.pk:
                found[pk].add(item)
    return found
