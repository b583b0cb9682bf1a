"""The next steps for one workload, from the states of its copies in the workers (pure). The order of the steps is
Kueue's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from clusters.multikueue.settings import Settings
from clusters.multikueue.worker_copies import Copy
from scheduling.model.vocabulary import AdmissionCheckStatus

ROUND: Final = timedelta(minutes=5)
"""How long the incremental dispatcher waits before it nominates more workers."""
_NEVER: Final = ""


@dataclass(frozen=True, slots=True)
class Dispatch:
    """The workers to which a workload was sent since it holds quota; stored in its row.

    * reserved_at: which reservation that is about.
    * nominated: the workers that may have a copy; round_at: the time of the last addition.
    * cluster: the worker that runs it; lost_since: since when that worker is unreachable.
    """

    reserved_at: str = _NEVER
    nominated: tuple[str, ...] = ()
    round_at: datetime | None = None
    cluster: str = ""
    lost_since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Local:
    """A workload of the manager. `wants`: it holds quota, is not being evicted and has not ended."""

    wants: bool
    state: AdmissionCheckStatus
    digest: str
    priority: int
    others_ready: bool = True
    """Whether its other admission checks are Ready."""
    only: str | None = None
    """The worker that has the other workloads of its job; "" while the first one has none."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The new state of the check."""

    state: AdmissionCheckStatus
    message: str


@dataclass(slots=True)
class Verdict:
    """The steps to carry out.

    * create, remove, change: workers whose copy is made, deleted, or gets the workload's priority.
    * run: the worker in which the job is made, unless it is there; its status is copied.
    * answer: of the check; with `run`, it waits until that worker has the job.
    * finish: (reason, message).
    """

    dispatch: Dispatch
    create: set[str] = field(default_factory=set)
    remove: set[str] = field(default_factory=set)
    change: set[str] = field(default_factory=set)
    run: str = ""
    answer: Answer | None = None
    finish: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Workers:
    """The workers of a check in the order of preference, and the state of a workload in the reachable ones."""

    order: Sequence[str]
    copies: Mapping[str, Copy | None]

    def earliest(self, condition: str) -> str:
        """Return the worker whose copy has had the condition for longest."""
        found = [(copy.since(condition), name) for name, copy in self.copies.items() if copy and copy.since(condition)]
        return min(found)[1] if found else ""

    def with_copy(self) -> set[str]:
        return {name for name, copy in self.copies.items() if copy}


def decide(local: Local, dispatch: Dispatch, workers: Workers, settings: Settings, now: datetime) -> Verdict:
    """Return the next step of a workload."""
    verdict = Verdict(dispatch)
    if not local.wants:
        verdict.remove = workers.with_copy()
        if not verdict.remove:
            verdict.dispatch = Dispatch()
        return verdict
    finished = workers.earliest("Finished")
    if finished:
        copy = workers.copies[finished]
        assert copy is not None  # it has the condition
        verdict.run, verdict.finish = finished, copy.reason_of("Finished")
        return verdict
    if local.state is AdmissionCheckStatus.READY and _is_evicted(workers.copies.get(dispatch.cluster)):
        message = (
            f'Workload evicted on worker cluster: "{dispatch.cluster}", resetting for re-admission. '
            f'Previously: "{local.state}"'
        )
        verdict.answer = Answer(AdmissionCheckStatus.RETRY, message)
        return verdict
    workers = _keep_in_step(local, workers, verdict)
    winner = dispatch.cluster if _is_admitted(workers.copies.get(dispatch.cluster)) else workers.earliest("Admitted")
    if winner:
        return _run(verdict, winner, local, workers)
    if local.state is AdmissionCheckStatus.READY:
        return _miss(verdict, workers, settings, now)
    if local.state is AdmissionCheckStatus.PENDING and not dispatch.cluster and local.others_ready:
        _send(verdict, local, workers, settings, now)
    return verdict


def _keep_in_step(local: Local, workers: Workers, verdict: Verdict) -> Workers:
    """Copies that differ from the workload are deleted; copies with another priority get the workload's."""
    for name, copy in workers.copies.items():
        if copy and copy.differs(local.digest):
            verdict.remove.add(name)
        elif copy and copy.priority != local.priority:
            verdict.change.add(name)
    left = {name: None if name in verdict.remove else copy for name, copy in workers.copies.items()}
    return replace(workers, copies=left)


def _run(verdict: Verdict, winner: str, local: Local, workers: Workers) -> Verdict:
    """After `winner` has admitted the workload: remove the other copies, run the job there, and set the check to Ready
    if it is Pending or Ready."""
    verdict.run = winner
    verdict.create.clear()
    verdict.remove |= workers.with_copy() - {winner}
    verdict.change &= {winner}
    verdict.dispatch = replace(verdict.dispatch, nominated=(), round_at=None, cluster=winner, lost_since=None)
    if local.state in (AdmissionCheckStatus.PENDING, AdmissionCheckStatus.READY):
        verdict.answer = Answer(AdmissionCheckStatus.READY, f'The workload was admitted on "{winner}"')
    return verdict


def _miss(verdict: Verdict, workers: Workers, settings: Settings, now: datetime) -> Verdict:
    """Decide for a running workload that no reachable worker has."""
    cluster = verdict.dispatch.cluster
    if cluster in workers.copies:
        drifted = cluster in verdict.remove
        message = "Remote workload out of sync" if drifted else "Reserving remote no longer exists or is not admitted"
        verdict.answer = Answer(AdmissionCheckStatus.RETRY, message)
        return verdict
    lost_since = verdict.dispatch.lost_since or now
    if now - lost_since < timedelta(seconds=settings.lost_seconds):
        verdict.dispatch = replace(verdict.dispatch, lost_since=lost_since)
    else:
        verdict.answer = Answer(AdmissionCheckStatus.RETRY, "Reserving remote lost")
    return verdict


def _send(verdict: Verdict, local: Local, workers: Workers, settings: Settings, now: datetime) -> None:
    """Nominate workers: each reachable one that has no copy gets one, and copies in other workers are removed."""
    nominated, round_at = _nominated(verdict.dispatch, local, workers, settings, now)
    verdict.dispatch = replace(verdict.dispatch, nominated=nominated, round_at=round_at)
    reachable = set(workers.copies)
    verdict.create = (set(nominated) & reachable) - workers.with_copy()
    verdict.remove |= workers.with_copy() - set(nominated)


def _nominated(
    dispatch: Dispatch, local: Local, workers: Workers, settings: Settings, now: datetime
) -> tuple[tuple[str, ...], datetime | None]:
    if local.only is not None:
        return ((local.only,) if local.only else ()), None
    if not settings.incremental:
        return tuple(name for name in workers.order if name in workers.copies), None
    nominated = tuple(name for name in dispatch.nominated if name in workers.order)
    if dispatch.round_at is not None and now - dispatch.round_at <= ROUND:
        return nominated, dispatch.round_at
    order = workers.order if settings.in_order else sorted(workers.order)
    more = [name for name in order if name not in nominated][: settings.step]
    return (*nominated, *more), (now if more else dispatch.round_at)


def _is_admitted(copy: Copy | None) -> bool:
    return copy is not None and bool(copy.since("Admitted"))


def _is_evicted(copy: Copy | None) -> bool:
    return copy is not None and bool(copy.since("Evicted"))
