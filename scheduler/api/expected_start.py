"""Estimates when a waiting workload may start, from the recent admissions of its ClusterQueue. The estimate does not
know how long running workloads will last or which workloads will be submitted meanwhile.

So it carries its basis, and is left out rather than given without one.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from scheduling.advice.explanation import Explanation, Rule, WaitState

WINDOW: Final = timedelta(hours=1)
_SHORTEST: Final = timedelta(minutes=1)

# A second Admit of a workload that already holds quota: it has waited for nothing.
_ADMITTED: Final = """
    SELECT count(*), max(decided_at),
        count(*) FILTER (
            WHERE decided_at - make_interval(secs => (detail ->> 'waited_seconds')::float8) > %(queued_at)s
        ), (
            SELECT created_at FROM queues_clusterqueue
            WHERE cluster_id = %(cluster_id)s AND name = %(cluster_queue)s
        )
    FROM scheduler_decision
    WHERE cluster_name = %(cluster)s AND decided_at >= %(since)s AND action = 'Admit'
        AND cluster_queue_name = %(cluster_queue)s AND detail ->> 'waited_seconds' IS NOT NULL
"""


class NoEstimate(StrEnum):
    """Why there is no estimate."""

    HOLDS_QUOTA = "HoldsQuota"
    """It does not wait: it holds its quota, or has finished."""
    NOT_QUEUED = "NotQueued"
    """It is held, or its queue is stopped or missing."""
    CANNOT_START = "CannotStart"
    """It requests more than it can ever have."""
    DECIDED_ELSEWHERE = "DecidedElsewhere"
    """Another scheduler runs the cluster; kueueweb cannot predict its admissions."""
    NOTHING_ADMITTED = "NothingAdmitted"
    """Its ClusterQueue admitted no workload in the last hour, so there is no rate."""
    NO_PLACE = "NoPlace"
    """Its quota is free, but its pods have no place on nodes; smaller workloads are admitted meanwhile."""
    OVERTAKEN = "Overtaken"
    """Its ClusterQueue admitted workloads that were queued later: its place in the queue predicts nothing."""


_SENTENCES: Final = {
    NoEstimate.HOLDS_QUOTA: "The workload is not waiting.",
    NoEstimate.NOT_QUEUED: "The workload is not in a queue.",
    NoEstimate.CANNOT_START: "The workload requests more than it can ever have here.",
    NoEstimate.DECIDED_ELSEWHERE: "Another scheduler decides in this cluster.",
    NoEstimate.NOTHING_ADMITTED: "Its ClusterQueue admitted no workload in {window}.",
    NoEstimate.NO_PLACE: "The workload waits for room on nodes, which the rate of its ClusterQueue does not predict.",
    NoEstimate.OVERTAKEN: "Its ClusterQueue admitted workloads that were queued later.",
}
_PLACES: Final = frozenset({Rule.DEVICES, Rule.NODES, Rule.TOPOLOGY, Rule.NAMESPACE_QUOTA})
_SILENT: Final = {
    WaitState.HOLDS_QUOTA: NoEstimate.HOLDS_QUOTA,
    WaitState.NOT_QUEUED: NoEstimate.NOT_QUEUED,
    WaitState.CANNOT_START: NoEstimate.CANNOT_START,
}


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """An estimate, or the reason why there is none. `admitted` and `overtaken_by` are None if nothing was counted."""

    at: datetime | None
    seconds: int | None
    reason: str
    basis: str
    window_seconds: int
    admitted: int | None
    overtaken_by: int | None
    ahead: int


@dataclass(frozen=True, slots=True)
class _Admissions:
    """The workloads that a ClusterQueue gave quota in the window, which is shorter for a younger ClusterQueue."""

    count: int
    overtaking: int
    window: timedelta
    since_last: timedelta


def expected_start(cluster: Cluster, found: Explanation, queued_at: datetime, now: datetime) -> ExpectedStart:
    """When the workload of this explanation may start, by the rate of its ClusterQueue in the last hour, or since the
    workload was created if that is shorter.
    """
    ahead = max(0, found.position - 1)
    if found.state in _SILENT:
        return _none(_SILENT[found.state], None, ahead)
    if cluster.is_mirrored:
        return _none(NoEstimate.DECIDED_ELSEWHERE, None, ahead)
    if found.state is WaitState.FITS_NOW and ahead == 0:
        basis = "Quota and devices are free, and no workload is ahead of it."
        return ExpectedStart(now, 0, "", basis, _seconds(WINDOW), None, None, 0)
    admitted = _admissions(cluster, found.cluster_queue, queued_at, now)
    if found.state is WaitState.WAITS and found.rule in _PLACES:
        return _none(NoEstimate.NO_PLACE, admitted, ahead)
    if admitted.count == 0:
        return _none(NoEstimate.NOTHING_ADMITTED, admitted, ahead)
    if admitted.overtaking > 0:
        return _none(NoEstimate.OVERTAKEN, admitted, ahead)
    interval = admitted.window / admitted.count
    # A head that has already waited longer than the rate predicts may wait as long again.
    wait = max(interval, admitted.since_last) + interval * ahead
    were = "workload was" if admitted.count == 1 else "workloads were"
    basis = (
        f"{admitted.count} {were} admitted from this ClusterQueue in {_words(admitted.window)}; "
        f"{ahead or 'none'} {'is' if ahead == 1 else 'are'} ahead."
    )
    return ExpectedStart(now + wait, _seconds(wait), "", basis, _seconds(admitted.window), admitted.count, 0, ahead)


def _none(reason: NoEstimate, admitted: _Admissions | None, ahead: int) -> ExpectedStart:
    window = WINDOW if admitted is None else admitted.window
    basis = _SENTENCES[reason].format(window=_words(window))
    count, overtaking = (None, None) if admitted is None else (admitted.count, admitted.overtaking)
    return ExpectedStart(None, None, reason.value, basis, _seconds(window), count, overtaking, ahead)


def _seconds(time: timedelta) -> int:
    return round(time.total_seconds())


def _words(window: timedelta) -> str:
    minutes = max(1, round(window.total_seconds() / 60))
    if window == WINDOW:
        return "the last hour"
    return "the last minute" if minutes == 1 else f"the last {minutes} minutes"


def _admissions(cluster: Cluster, cluster_queue: str, queued_at: datetime, now: datetime) -> _Admissions:
    """The workloads that the ClusterQueue gave quota lately."""
    asked: dict[str, Any] = {
        "cluster": cluster.name,
        "cluster_id": cluster.pk,
        "since": now - WINDOW,
        "cluster_queue": cluster_queue,
        "queued_at": queued_at,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ADMITTED, asked)
        [(count, last_at, overtaking, created_at)] = cursor.fetchall()
    age = WINDOW if created_at is None else max(now - created_at, _SHORTEST)
    since_last = timedelta() if last_at is None else max(now - last_at, timedelta())
    return _Admissions(int(count), int(overtaking), min(WINDOW, age), since_last)
