"""When a waiting workload may start: an estimate from how fast its ClusterQueue has admitted lately.

It knows neither how long the running workloads will last nor who will be submitted meanwhile. That is why it carries
its basis with it, and says nothing rather than something that nothing speaks for.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from django.db import connection

from accounts.models import Cluster
from scheduling.advice.explanation import Explanation, WaitState

WINDOW: Final = timedelta(hours=1)
_SHORTEST: Final = timedelta(minutes=1)

# A second look at a workload that holds its quota already is an Admit too; it has waited for nothing.
_ADMITTED: Final = """
    SELECT (
            SELECT count(*) FROM scheduler_decision
            WHERE cluster_name = %(cluster)s AND decided_at >= %(since)s AND action = 'Admit'
                AND cluster_queue_name = %(cluster_queue)s AND detail ->> 'waited_seconds' IS NOT NULL
        ), (
            SELECT created_at FROM queues_clusterqueue
            WHERE cluster_id = %(cluster_id)s AND name = %(cluster_queue)s
        )
"""


class NoEstimate(StrEnum):
    """Why there is no estimate."""

    HOLDS_QUOTA = "HoldsQuota"
    """It waits for nothing: it holds its quota, or has finished."""
    NOT_QUEUED = "NotQueued"
    """It is held, or its queue is stopped or missing."""
    CANNOT_START = "CannotStart"
    """It asks for what it could never have."""
    DECIDED_ELSEWHERE = "DecidedElsewhere"
    """Another scheduler runs the cluster; what it admits, and in which order, is not ours to foretell."""
    NOTHING_ADMITTED = "NothingAdmitted"
    """No pace can be taken from an hour in which its ClusterQueue admitted nothing."""


_SENTENCES: Final = {
    NoEstimate.HOLDS_QUOTA: "It does not wait.",
    NoEstimate.NOT_QUEUED: "It is in no queue, so nothing leads to its start.",
    NoEstimate.CANNOT_START: "It asks for more than it could ever have here.",
    NoEstimate.DECIDED_ELSEWHERE: "Another scheduler decides in this cluster.",
    NoEstimate.NOTHING_ADMITTED: "Nothing was admitted from its ClusterQueue in {window}.",
}
_SILENT: Final = {
    WaitState.HOLDS_QUOTA: NoEstimate.HOLDS_QUOTA,
    WaitState.NOT_QUEUED: NoEstimate.NOT_QUEUED,
    WaitState.CANNOT_START: NoEstimate.CANNOT_START,
}


@dataclass(frozen=True, slots=True)
class ExpectedStart:
    """An estimate, or why there is none. `admitted` is None where nothing was counted."""

    at: datetime | None
    seconds: int | None
    reason: str
    basis: str
    window_seconds: int
    admitted: int | None
    ahead: int


def expected_start(cluster: Cluster, found: Explanation, now: datetime) -> ExpectedStart:
    """When the workload of this explanation may start, by the pace of its ClusterQueue in the last hour, or since it
    was made where that is less."""
    ahead = max(0, found.position - 1)
    if found.state in _SILENT:
        return _none(_SILENT[found.state], None, ahead)
    if cluster.is_mirrored:
        return _none(NoEstimate.DECIDED_ELSEWHERE, None, ahead)
    if found.state is WaitState.FITS_NOW and ahead == 0:
        basis = "Quota and devices for it are free now, and no workload is ahead of it."
        return ExpectedStart(now, 0, "", basis, _seconds(WINDOW), None, 0)
    admitted, window = _admitted(cluster, found.cluster_queue, now)
    if admitted == 0:
        return _none(NoEstimate.NOTHING_ADMITTED, admitted, ahead, window)
    wait = window * (ahead + 1) / admitted
    were = "workload was" if admitted == 1 else "workloads were"
    basis = (
        f"{admitted} {were} admitted from this ClusterQueue in {_words(window)}; "
        f"{ahead or 'none'} {'is' if ahead == 1 else 'are'} ahead."
    )
    return ExpectedStart(now + wait, _seconds(wait), "", basis, _seconds(window), admitted, ahead)


def _none(reason: NoEstimate, admitted: int | None, ahead: int, window: timedelta = WINDOW) -> ExpectedStart:
    basis = _SENTENCES[reason].format(window=_words(window))
    return ExpectedStart(None, None, reason.value, basis, _seconds(window), admitted, ahead)


def _seconds(time: timedelta) -> int:
    return round(time.total_seconds())


def _words(window: timedelta) -> str:
    minutes = max(1, round(window.total_seconds() / 60))
    if window == WINDOW:
        return "the last hour"
    return "the last minute" if minutes == 1 else f"the last {minutes} minutes"


def _admitted(cluster: Cluster, cluster_queue: str, now: datetime) -> tuple[int, timedelta]:
    """How many workloads the ClusterQueue gave quota, and in which time: it may be younger than the window."""
    asked: dict[str, Any] = {
        "cluster": cluster.name,
        "cluster_id": cluster.pk,
        "since": now - WINDOW,
        "cluster_queue": cluster_queue,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ADMITTED, asked)
        [(count, created_at)] = cursor.fetchall()
    age = WINDOW if created_at is None else max(now - created_at, _SHORTEST)
    return int(count), min(WINDOW, age)
