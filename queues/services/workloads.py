"""Changes of a workload's life by users and the cluster: hold, release, cancel, priority; pods ready, stopped,
finished.

The engine owns the admission columns and the conditions QuotaReserved, Admitted, Evicted, Preempted and Requeued.
The functions here write `active`, `priority`, PodsReady, Finished and `pods_stopped_at`, each as one conditional
UPDATE of named columns over any number of workloads, with an event per changed workload, and then wake the
scheduler. Each takes (namespace, name) keys, skips workloads that are missing or in another state, and returns the
keys of changed ones in the given order. User actions on one slice of an elastic job apply to the other one too,
because they are one job.
"""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, LiteralString

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone
from psycopg import sql

from accounts.models import Cluster
from foundation.exceptions import Conflict
from foundation.wake_ups import request_push, wake_scheduler
from queues.models import Workload
from queues.services.bulk import json_text
from queues.services.flows.start_gates import lock_with_awaiting, open_start_gates
from queues.services.withdrawn_jobs import withdraw_jobs_of
from scheduling.lifecycle.conditions import PODS_READY_MESSAGES
from scheduling.lifecycle.inadmissible import PENDING_EVALUATION
from scheduling.model.times import rfc3339
from scheduling.model.vocabulary import (
    ConditionStatus,
    ConditionType,
    EvictionReason,
    FinishedReason,
    PodsReadyReason,
)

Keys = Iterable[tuple[str, str]]
Action = Callable[[Cluster, list[tuple[str, str]]], list[tuple[str, str]]]


# Look up each workload by its own name: after a flood the statistics are outdated, and the planner would read every
# workload of the cluster.
_STATEMENT: Final = sql.SQL(
    """
    WITH wanted AS (
        SELECT * FROM unnest(%(namespaces)s::text[], %(names)s::text[]) AS wanted (namespace, name)
        UNION {slices}
    ), locked AS (
        SELECT workload.id
        FROM queues_workload AS workload
        WHERE workload.id = ANY (ARRAY(
            -- The first key from the wanted one on. Asked for equality, PostgreSQL may take any index that begins with
            -- cluster and namespace while its statistics are old, and read the whole namespace for each name.
            SELECT found.id FROM wanted CROSS JOIN LATERAL (
                SELECT id, cluster_id, namespace, name FROM queues_workload
                WHERE (cluster_id, namespace, name) >= (%(cluster_id)s, wanted.namespace, wanted.name)
                ORDER BY cluster_id, namespace, name LIMIT 1
            ) AS found
            WHERE found.cluster_id = %(cluster_id)s
                AND found.namespace = wanted.namespace AND found.name = wanted.name
        )) AND ({guard})
        ORDER BY workload.id
        FOR UPDATE
    ), changed AS (
        UPDATE queues_workload AS workload SET updated_at = %(now)s, {changes}
        FROM locked WHERE workload.id = locked.id
        RETURNING workload.cluster_id, workload.uid, workload.namespace, workload.name
    )
    INSERT INTO queues_workloadevent
        (cluster_id, workload_uid, namespace, workload_name, at, type, reason, message, actor)
    SELECT cluster_id, uid, namespace, name, %(now)s, %(event_type)s, %(event)s, %(message)s, %(actor)s FROM changed
    RETURNING namespace, workload_name
    """
)
_NO_SLICES: Final = sql.SQL("SELECT NULL, NULL WHERE false")
_OTHER_SLICES: Final = sql.SQL(
    """
    SELECT other.namespace, other.name
    FROM unnest(%(namespaces)s::text[], %(names)s::text[]) AS asked (namespace, name)
    JOIN queues_workload AS slice USING (namespace, name) JOIN queues_workload AS other USING (job_id)
    WHERE slice.cluster_id = %(cluster_id)s AND slice.annotations @> '{"kueue.x-k8s.io/elastic-job": "true"}'
    """
)
_WITH_CONDITION: Final[LiteralString] = """
    conditions = coalesce(
        (
            SELECT jsonb_agg(condition ORDER BY position)
            FROM jsonb_array_elements(workload.conditions) WITH ORDINALITY AS listed (condition, position)
            WHERE condition ->> 'type' <> %(condition_type)s
        ),
        '[]'::jsonb
    ) || %(condition)s::jsonb
"""
_UNFINISHED: Final[LiteralString] = "workload.status <> 'Finished'"
_HAS_PODS: Final[LiteralString] = """
    EXISTS (SELECT FROM queues_pod AS pod
        WHERE pod.workload_id = workload.id AND pod.phase NOT IN ('Succeeded', 'Failed'))
"""
_SETTLED: Final[LiteralString] = f"""
    SELECT namespace, name, ending::text FROM queues_workload AS workload
    WHERE cluster_id = %s AND ending IS NOT NULL AND status <> 'Finished' AND NOT {_HAS_PODS} ORDER BY id
"""  # noqa: S608 (constants)
_ENDED_WELL: Final = (FinishedReason.SUCCEEDED, FinishedReason.CANCELLED, FinishedReason.WORKLOAD_SLICE_REPLACED)
_FINISHED: Final = "The job finished"
"""The event of an end without a message."""


@dataclass(frozen=True, slots=True)
class _Transition:
    """One transition: which workloads may take it, what it writes, and its event."""

    guard: LiteralString
    changes: LiteralString
    event: str
    message: str = ""
    event_type: str = "Normal"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    of_job: bool = False
    """Whether it applies to the other slice of an elastic job too."""


def hold(cluster: Cluster, keys: Keys, *, actor: str, now: datetime | None = None) -> list[tuple[str, str]]:
    """Set spec.active to false (Kueue): the engine evicts an admitted workload and skips a pending one."""
    step = _Transition(f"{_UNFINISHED} AND workload.active", "active = false", "Held", f"Held by {actor}", of_job=True)
    return _take(cluster, keys, step, actor, now)


def release(cluster: Cluster, keys: Keys, *, actor: str, now: datetime | None = None) -> list[tuple[str, str]]:
    """Set spec.active to true again, so that the workload is queued again. One that is being cancelled is not
    released."""
    step = _Transition(
        f"{_UNFINISHED} AND NOT workload.active AND workload.deletion_requested_at IS NULL",
        "active = true, "
        "reason = CASE workload.status WHEN 'Pending' THEN %(waits_for)s ELSE workload.reason END, "
        "message = CASE workload.status WHEN 'Pending' THEN %(waits_because)s ELSE workload.message END",
        "Released",
        f"Released by {actor}",
        parameters={"waits_for": PENDING_EVALUATION[0].value, "waits_because": PENDING_EVALUATION[1]},
        of_job=True,
    )
    return _take(cluster, keys, step, actor, now)


def requeue(
    cluster: Cluster,
    keys: Keys,
    *,
    actor: str,
    reason: EvictionReason = EvictionReason.REQUEUE_REQUESTED,
    message: str = "",
    now: datetime | None = None,
) -> list[tuple[str, str]]:
    """Ask workloads that hold quota to stop and to wait in their queues again. The engine evicts them with this reason
    and message; an empty message is replaced by a message that names the actor."""
    step = _Transition(
        f"{_UNFINISHED} AND workload.active AND workload.quota_reserved_at IS NOT NULL AND workload.evicted_at IS NULL "
        "AND workload.deletion_requested_at IS NULL AND workload.requeue_requested_by = ''",
        "requeue_requested_by = %(actor)s, requeue_reason = %(asked_reason)s, requeue_message = %(asked_message)s",
        "RequeueRequested",
        f"{reason}: {message}" if message else f"Requeued by {actor}",
        parameters={"asked_reason": reason.value, "asked_message": message},
        of_job=True,
    )
    return _take(cluster, keys, step, actor, now)


def mark_for_deactivation(
    cluster: Cluster, keys: Keys, cause: str, message: str, *, actor: str, now: datetime | None = None
) -> list[tuple[str, str]]:
    """Set DeactivationTarget (Kueue): the engine sets spec.active to false and names the cause in the eviction."""
    now = now or timezone.now()
    step = _Transition(
        f"{_UNFINISHED} AND workload.active AND workload.deletion_requested_at IS NULL",
        _WITH_CONDITION,
        "DeactivationRequested",
        f"{cause}: {message}",
        parameters=_condition(ConditionType.DEACTIVATION_TARGET, ConditionStatus.TRUE, cause, message, now),
        of_job=True,
    )
    return _take(cluster, keys, step, actor, now)


def put_on_hold(
    cluster: Cluster, keys: Keys, why: str, *, actor: str, now: datetime | None = None
) -> list[tuple[str, str]]:
    """Hold workloads whose job needs no pods for now: the engine takes their quota and does not queue them."""
    step = _Transition(
        f"{_UNFINISHED} AND workload.on_hold <> %(why)s", "on_hold = %(why)s", "PutOnHold", why, parameters={"why": why}
    )
    return _take(cluster, keys, step, actor, now)


def take_off_hold(cluster: Cluster, keys: Keys, *, actor: str, now: datetime | None = None) -> list[tuple[str, str]]:
    """Requeue workloads whose job needs pods again."""
    step = _Transition(f"{_UNFINISHED} AND workload.on_hold <> ''", "on_hold = ''", "TakenOffHold")
    return _take(cluster, keys, step, actor, now)


def change_priority(
    cluster: Cluster,
    keys: Keys,
    priority: int,
    *,
    actor: str,
    priority_class_name: str = "",
    now: datetime | None = None,
) -> list[tuple[str, str]]:
    """Change the priority of unfinished workloads, and the WorkloadPriorityClass it comes from, if any."""
    from_class = f" (class {priority_class_name})" if priority_class_name else ""
    step = _Transition(
        _UNFINISHED,
        "priority = %(priority)s, priority_class_name = %(class_name)s, priority_class_kind = %(class_kind)s, "
        "priority_class_group = %(class_group)s",
        "PriorityChanged",
        f"Priority {priority}{from_class} set by {actor}",
        parameters={
            "priority": priority,
            "class_name": priority_class_name,
            "class_kind": "WorkloadPriorityClass" if priority_class_name else "",
            "class_group": "kueue.x-k8s.io" if priority_class_name else "",
        },
        of_job=True,
    )
    return _take(cluster, keys, step, actor, now)


def cancel(
    cluster: Cluster, keys: Keys, *, actor: str, withdraw_jobs: bool = True, now: datetime | None = None
) -> list[tuple[str, str]]:
    """End workloads for good.

    Their jobs are deleted from the cluster, except jobs with other workloads: a Deployment loses one replica for each
    ended workload. `withdraw_jobs` is off if the job has already changed. A workload without quota is finished at once
    (reason Cancelled). A workload with quota is deactivated: the engine evicts it, and it is finished when the cluster
    reports that its pods have stopped; until then its devices are not free.
    """
    now = now or timezone.now()
    keys = list(keys)
    message = f"Cancelled by {actor}"
    waiting = _finish("workload.quota_reserved_at IS NULL", FinishedReason.CANCELLED, message, now)
    waiting = replace(waiting, of_job=withdraw_jobs)
    holding = _Transition(
        f"{_UNFINISHED} AND workload.quota_reserved_at IS NOT NULL AND workload.deletion_requested_at IS NULL",
        "active = false, deletion_requested_at = %(now)s",
        "CancelRequested",
        message,
        of_job=withdraw_jobs,
    )
    with transaction.atomic():
        if withdraw_jobs:
            lock_with_awaiting(cluster, keys)
        finished = _take(cluster, keys, waiting, actor, now)
        stopping = _take(cluster, keys, holding, actor, now)
        if withdraw_jobs:
            withdraw_jobs_of(cluster, [*finished, *stopping], now)
    return [*finished, *stopping]


def set_aside(
    cluster: Cluster,
    keys: Collection[tuple[str, str]],
    until: datetime,
    why: str,
    *,
    now: datetime | None = None,
) -> list[tuple[str, str]]:
    """Keep workloads out of their queues until a given time, because the scheduler could not decide on them or could
    not store its decision. Workloads with quota keep it and only get the event."""
    now = now or timezone.now()
    waiting = _Transition(
        f"{_UNFINISHED} AND workload.quota_reserved_at IS NULL",
        "requeue_at = %(until)s, reason = %(reason)s, message = %(message)s, " + _WITH_CONDITION,
        "SetAside",
        why,
        event_type="Warning",
        parameters={
            "until": until,
            **_condition(ConditionType.QUOTA_RESERVED, ConditionStatus.FALSE, PENDING_EVALUATION[0], why, now),
        },
    )
    holding = _Transition(
        f"{_UNFINISHED} AND workload.quota_reserved_at IS NOT NULL",
        "message = workload.message",
        "SetAside",
        why,
        event_type="Warning",
    )
    with transaction.atomic():
        return [*_take(cluster, keys, waiting, "scheduler", now), *_take(cluster, keys, holding, "scheduler", now)]


def record_pods_ready(
    cluster: Cluster,
    keys: Keys,
    *,
    ready: bool = True,
    recovering: bool = False,
    actor: str = "watcher",
    now: datetime | None = None,
) -> list[tuple[str, str]]:
    """Set the PodsReady condition of admitted workloads; `recovering` if they were ready before and lost pods."""
    if ready:
        status, reason = ConditionStatus.TRUE, PodsReadyReason.RECOVERED if recovering else PodsReadyReason.STARTED
    else:
        status = ConditionStatus.FALSE
        reason = PodsReadyReason.WAIT_FOR_RECOVERY if recovering else PodsReadyReason.WAIT_FOR_START
    message = PODS_READY_MESSAGES[reason]
    now = now or timezone.now()
    step = _Transition(
        "workload.status = 'Admitted' AND (workload.pods_ready_at IS NOT NULL) <> %(ready)s",
        "pods_ready_at = CASE WHEN %(ready)s THEN %(now)s END, " + _WITH_CONDITION,
        "PodsReady" if ready else "PodsNotReady",
        message,
        parameters={"ready": ready, **_condition(ConditionType.PODS_READY, status, reason, message, now)},
    )
    return _take(cluster, keys, step, actor, now)


def record_stopped(
    cluster: Cluster, keys: Keys, *, actor: str = "watcher", now: datetime | None = None
) -> list[tuple[str, str]]:
    """Record that no pod of these workloads runs any more. An evicted workload may then be released; a cancelled one is
    finished. A workload that was not asked to stop is left unchanged."""
    now = now or timezone.now()
    keys = list(keys)
    cancelled = _finish(
        "workload.deletion_requested_at IS NOT NULL AND workload.evicted_at IS NOT NULL",
        FinishedReason.CANCELLED,
        "Cancelled, and its pods have stopped",
        now,
        changes="pods_stopped_at = %(now)s, ",
    )
    stopped = _Transition(
        f"{_UNFINISHED} AND workload.quota_reserved_at IS NOT NULL AND workload.evicted_at IS NOT NULL "
        "AND workload.pods_stopped_at IS NULL AND workload.ending IS NULL",
        "pods_stopped_at = %(now)s",
        "Stopped",
        "Its pods have stopped",
    )
    with transaction.atomic():
        ended = _finish_ending(cluster, _ending(cluster, keys), "workload.evicted_at IS NOT NULL", now)
        return [*ended, *_take(cluster, keys, cancelled, actor, now), *_take(cluster, keys, stopped, actor, now)]


def _ending(cluster: Cluster, keys: Keys) -> list[tuple[str, str, Any]]:
    wanted = set(keys)
    rows = Workload.objects.filter(cluster=cluster, ending__isnull=False, name__in={name for _, name in wanted})
    return [row for row in rows.values_list("namespace", "name", "ending") if row[:2] in wanted]


def record_finished(
    cluster: Cluster,
    keys: Keys,
    reason: FinishedReason = FinishedReason.SUCCEEDED,
    message: str = "",
    *,
    actor: str = "watcher",
    now: datetime | None = None,
) -> list[tuple[str, str]]:
    """Set the Finished condition; the engine releases quota and devices at once, as Kueue does.

    A workload with a live pod keeps its quota and devices until that pod is gone (`settle_endings`); its key is not
    returned.
    """
    now = now or timezone.now()
    keys = list(keys)
    if not keys:
        return []
    # Most workloads have no pods left: end these first, and look only at the rest again.
    finished = _finish(
        f"(workload.quota_reserved_at IS NULL OR (workload.ending IS NULL AND NOT {_HAS_PODS}))", reason, message, now
    )
    ended = _take(cluster, keys, finished, actor, now)
    rest = list(set(keys).difference(ended))
    if rest and _take(cluster, rest, _end_later(reason, message, actor), actor, now):
        request_push(cluster.name)
    return ended


def _end_later(reason: FinishedReason, message: str, actor: str) -> _Transition:
    """Store the result with which a workload finishes once its last pod is deleted. A pod that ended since the caller
    looked changes nothing: `settle_endings` finds the workload.
    """
    ending = {"reason": reason.value, "message": message, "actor": actor}
    return _Transition(
        f"{_UNFINISHED} AND workload.quota_reserved_at IS NOT NULL AND workload.ending IS NULL",
        "ending = %(ending)s::jsonb, push_sequence = push_sequence + 1",
        "Ending",
        f"{message or _FINISHED}; quota and devices are released when its pods have ended",
        parameters={"ending": json_text(ending)},
    )


def record_replaced(cluster: Cluster, key: tuple[str, str], reason: FinishedReason, message: str) -> None:
    """Finish a slice of an elastic job whose pods and reservation went to another slice, or that was replaced while
    pending."""
    now = timezone.now()
    _take(cluster, [key], _finish("true", reason, message, now), "scheduler", now)


def require_no_jobs(cluster: Cluster, keys: Keys) -> None:
    """Raises `Conflict` for a workload with a job, because it ends with its job: only one that runs elsewhere is
    finished by hand."""
    keys = list(keys)
    rows = Workload.objects.filter(cluster=cluster, name__in={name for _, name in keys}, job__isnull=False)
    wanted = set(keys)
    of_jobs = [row for row in rows.select_related("job") if (row.namespace, row.name) in wanted]
    if of_jobs:
        row = min(of_jobs, key=lambda found: found.key)
        kind = row.job.kind if row.job is not None else "job"
        raise Conflict(f"Workload {row.key} belongs to a {kind} and ends with it. Cancel the workload to end both.")


def settle_endings(cluster: Cluster, *, now: datetime | None = None) -> list[tuple[str, str]]:
    """Finish the workloads whose job ended before their last pod, once their pods are gone."""
    with connection.cursor() as cursor:
        cursor.execute(_SETTLED, [cluster.pk])
        rows = [(namespace, name, json.loads(ending)) for namespace, name, ending in cursor.fetchall()]
    return _finish_ending(cluster, rows, f"NOT {_HAS_PODS}", now or timezone.now())


def _finish_ending(
    cluster: Cluster, rows: Iterable[tuple[str, str, Any]], guard: LiteralString, now: datetime
) -> list[tuple[str, str]]:
    """Finish the workloads as their jobs ended, with one statement for each reason, message and actor."""
    alike: dict[tuple[str, str, str], list[tuple[str, str]]] = defaultdict(list)
    for namespace, name, ending in rows:
        alike[ending["reason"], ending["message"], ending["actor"]].append((namespace, name))
    finished: list[tuple[str, str]] = []
    for (reason, message, actor), keys in alike.items():
        finished += _take(cluster, keys, _finish(guard, FinishedReason(reason), message, now), actor, now)
    return finished


def delete_workloads(
    cluster: Cluster, keys: Keys, *, actor: str, message: str = "", now: datetime | None = None
) -> list[tuple[str, str]]:
    """Delete workloads; their events are kept. A workload with quota is cancelled instead, and deleted when its pods
    have stopped. Successes are counted first, for jobs that wait for them. Returns the keys of deleted workloads."""
    now = now or timezone.now()
    keys = list(keys)
    with transaction.atomic():
        lock_with_awaiting(cluster, keys)
        cancel(cluster, keys, actor=actor, now=now)
        gone = _take(
            cluster,
            keys,
            _Transition(
                f"workload.status = 'Finished' AND NOT {_HAS_PODS} AND NOT EXISTS "
                "(SELECT FROM gpus_deviceallocation AS slice WHERE slice.workload_id = workload.id)",
                "deletion_requested_at = %(now)s",
                "Deleted",
                message or f"Deleted by {actor}",
            ),
            actor,
            now,
        )
        if gone:
            open_start_gates(cluster, now, later=True)  # the success of a deleted workload counts, too
        _delete_rows(cluster, gone)
    return gone


def _finish(
    guard: LiteralString, reason: FinishedReason, message: str, now: datetime, changes: LiteralString = ""
) -> _Transition:
    return _Transition(
        f"{_UNFINISHED} AND {guard}",
        changes
        + "status = 'Finished', finished_at = %(now)s, reason = %(reason)s, message = %(message)s, requeue_at = NULL, "
        + "ending = NULL, "
        + _WITH_CONDITION,
        reason.value if reason is FinishedReason.WORKLOAD_SLICE_REPLACED else "Finished",
        message or _FINISHED,
        event_type="Normal" if reason in _ENDED_WELL else "Warning",
        parameters=_condition(ConditionType.FINISHED, ConditionStatus.TRUE, reason, message, now),
    )


def _condition(
    type_: ConditionType, status: ConditionStatus, reason: str, message: str, now: datetime
) -> dict[str, Any]:
    condition = {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": rfc3339(now),
    }
    return {"condition_type": str(type_), "condition": json_text(condition), "reason": str(reason)}


def _take(cluster: Cluster, keys: Keys, step: _Transition, actor: str, now: datetime | None) -> list[tuple[str, str]]:
    """Take the step by one statement: within the caller's transaction, else in that of the statement."""
    keys = list(keys)
    if not keys:
        return []
    parameters = {
        **step.parameters,
        "namespaces": [namespace for namespace, _ in keys],
        "names": [name for _, name in keys],
        "cluster_id": cluster.pk,
        "now": now or timezone.now(),
        "event": step.event,
        "event_type": step.event_type,
        "message": step.message,
        "actor": actor,
    }
    slices = _OTHER_SLICES if step.of_job else _NO_SLICES
    statement = _STATEMENT.format(guard=sql.SQL(step.guard), changes=sql.SQL(step.changes), slices=slices)
    with connection.cursor() as cursor:
        cursor.execute(statement, parameters)
        changed = {(namespace, name) for namespace, name in cursor.fetchall()}
    if changed:
        wake_scheduler(cluster.name)
    return [key for key in dict.fromkeys(keys) if key in changed]


def _delete_rows(cluster: Cluster, keys: Keys) -> None:
    """Delete the workloads with their pod sets and pods, in one statement for each table: Django would load every row
    to find the dependent ones."""
    keys = list(keys)
    parameters: list[Any] = [[key[0] for key in keys], [key[1] for key in keys], cluster.pk]
    with connection.cursor() as cursor:
        for table in ("queues_podset", "queues_pod"):
            cursor.execute(
                sql.SQL(
                    """
                    DELETE FROM {table} USING queues_workload AS workload,
                        unnest(%s::text[], %s::text[]) AS key (namespace, name)
                    WHERE {table}.workload_id = workload.id AND workload.cluster_id = %s
                        AND workload.namespace = key.namespace AND workload.name = key.name
                    """
                ).format(table=sql.Identifier(table)),
                parameters,
            )
        cursor.execute(
            """
            DELETE FROM queues_workload AS workload USING unnest(%s::text[], %s::text[]) AS key (namespace, name)
            WHERE workload.cluster_id = %s AND workload.namespace = key.namespace AND workload.name = key.name
            """,
            parameters,
        )


def raise_push(workloads: QuerySet[Workload]) -> int:
    """Push these workloads again, and return their number.

    The rows are locked in the order of their keys, as by every writer of several workloads: a plain UPDATE locks them
    in any order, and two of them can deadlock.
    """
    with transaction.atomic():
        locked = list(workloads.order_by("pk").select_for_update(no_key=True).values_list("pk", flat=True))
        return Workload.objects.filter(pk__in=locked).update(push_sequence=F("push_sequence") + 1)
