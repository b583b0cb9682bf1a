"""Events from the log of decisions and the records of use: starts, waits, ends, preemptions, evictions."""

from datetime import datetime
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from foundation.time_series import Resolution
from history.models import Count
from history.services.sampling.gathered import Gathered, Places, SubjectKey
from history.services.waits import bucket_of
from scheduling.model.vocabulary import DecisionKind, EvictionReason

_DECISIONS: Final = """
    SELECT date_bin(make_interval(secs => %(step)s), decision.decided_at, 'epoch'::timestamptz), decision.action,
        decision.reason, decision.namespace, coalesce(workload.queue_name, ''), decision.cluster_queue_name,
        (decision.detail ->> 'waited_seconds')::float8
    FROM scheduler_decision AS decision
        LEFT JOIN queues_workload AS workload ON workload.cluster_id = %(cluster_id)s
            AND workload.namespace = decision.namespace AND workload.name = decision.workload_name
    WHERE decision.cluster_name = %(cluster_name)s AND decision.decided_at >= %(since)s
        AND decision.action IN ('Admit', 'Preempt', 'Evict')
"""
_ENDS: Final = """
    SELECT date_bin(make_interval(secs => %(step)s), ended_at, 'epoch'::timestamptz), reason, namespace, local_queue,
        cluster_queue, count(*)
    FROM history_usagerecord
    WHERE cluster_id = %(cluster_id)s AND ended_at >= %(since)s AND outcome = 'Finished'
    GROUP BY 1, 2, 3, 4, 5
"""


def gather_events(cluster: Cluster, since: datetime, places: Places, found: Gathered) -> None:
    """Return all events since then, by step."""
    asked: dict[str, Any] = {
        "step": int(Resolution.RAW),
        "cluster_id": cluster.pk,
        "cluster_name": cluster.name,
        "since": since,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DECISIONS, asked)
        for at, action, reason, namespace, local_queue, cluster_queue, waited in cursor.fetchall():
            for kind, detail in event_kinds(action, reason, waited):
                count_event(found, places, kind, detail, at, (namespace, local_queue, cluster_queue), 1)
        cursor.execute(_ENDS, asked)
        for at, reason, *where, count in cursor.fetchall():
            count_event(found, places, Count.ENDED, reason, at, tuple(where), count)


def event_kinds(action: str, reason: str, waited: float | None) -> list[tuple[Count, str]]:
    """Return the kinds of events that a decision counts as, with the detail; `waited` is in seconds, None in a second
    pass."""
    if action == DecisionKind.PREEMPT:
        return [(Count.PREEMPTED, reason)]
    if action == DecisionKind.EVICT:
        return [] if reason == EvictionReason.PREEMPTED else [(Count.EVICTED, reason)]
    if waited is None:
        return []  # a second pass over a workload that already holds quota
    return [(Count.STARTED, ""), (Count.WAIT, str(bucket_of(waited)))]


def count_event(
    found: Gathered, places: Places, kind: Count, detail: str, at: datetime, where: tuple[Any, ...], count: int
) -> None:
    """Count events at the start of a step, in all scopes of `where`: namespace, LocalQueue, ClusterQueue."""
    for scope, name in places.scopes(*where):
        found.events[SubjectKey(scope, name, kind, detail=detail), at] += count
