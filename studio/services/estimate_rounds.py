"""Renews the estimates of starts: each minute, and sooner when the queue of a cluster has changed.

A child process makes them, in addition to the children of questions, one cluster at a time. A lease gives each cluster
to one studio.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import InterfaceError, OperationalError, connection, transaction

from accounts.models import MIRRORED_MODES, Cluster
from scheduler.store.kept_world import kept_world
from scheduling.estimates.estimator import Estimator
from scheduling.estimates.run_times import RunHistory
from scheduling.studio.foretold_starts import ForetoldStart, foretell_starts
from scheduling.world import World
from studio.models import EstimateRound
from studio.services.children import Child, GoOn, Limits, Outcome, Tell, Work
from studio.services.kept_estimates import judge_estimates, read_estimators, store_estimates
from studio.services.run_histories import RunHistories

RENEW_SECONDS: Final = 60.0
"""Estimates are renewed after this time, although nothing has changed."""
SOONEST_SECONDS: Final = 10.0
_REST: Final = 4.0
"""A round is followed by a pause of at least this many times its length, so that estimates take a fifth of a core."""
_LOOK_SECONDS: Final = 5.0
TRY_SECONDS: Final = 20.0
LEASE_SECONDS: Final = 120

MAX_BEYOND_REACH: Final = 100_000
"""The number of workloads that a round reports as beyond reach without trying them; workloads behind them are not
estimated."""

_OVERDUE: Final = Outcome(None, "TimeLimit", "The estimates were not finished in time.")

_log = logging.getLogger(__name__)

# What an estimate depends on: the workloads that wait, those that hold quota, and the configuration.
_QUEUE: Final = """
    SELECT count(*) FILTER (WHERE quota_reserved_at IS NULL), count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        coalesce(max(id), 0), max(quota_reserved_at), bool_or(quota_reserved_at IS NULL AND active)
    FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished'
"""
_TAKE: Final = """
    INSERT INTO studio_estimateround AS round (cluster_id, studio, leased_until)
    VALUES (%(cluster)s, %(studio)s, clock_timestamp() + make_interval(secs => %(seconds)s))
    ON CONFLICT (cluster_id) DO UPDATE SET studio = excluded.studio, leased_until = excluded.leased_until
    WHERE round.studio IS NULL OR round.studio = excluded.studio OR round.leased_until < clock_timestamp()
    RETURNING id
"""

Fork = Callable[[Work, Limits], Child]


@dataclass(slots=True)
class _Known:
    """A cluster as its last round left it."""

    queue: tuple[Any, ...] = ()
    started: float = float("-inf")
    rest_until: float = float("-inf")


@dataclass(frozen=True, slots=True)
class _Round:
    cluster: Cluster
    made_at: datetime
    child: Child


class EstimateRounds:
    """The rounds of one studio."""

    def __init__(self, studio: UUID, memory_mib: int, fork: Fork, histories: RunHistories) -> None:
        self._studio = studio
        self._limits = Limits(TRY_SECONDS, memory_mib)
        self._fork = fork
        self._histories = histories
        self._known: dict[int, _Known] = {}
        self._round: _Round | None = None
        self._looked_at = float("-inf")

    def turn(self) -> bool:
        """Store a round that has ended, or begin one that is due. Return whether it forked, which closes the
        connection. Raises the database's errors."""
        if self._round is not None:
            if self._round.child.is_overdue():
                self._round.child.end(self._round.child.outcome or _OVERDUE)
            if self._round.child.outcome is not None:
                ended, self._round = self._round, None
                _try(ended.cluster, partial(self._store, ended))
        elif time.monotonic() - self._looked_at >= _LOOK_SECONDS:
            self._looked_at = time.monotonic()
            self._begin_one()
            return self._round is not None
        return False

    def pipes(self) -> dict[int, Child]:
        """Return the pipe of the running child, for waiting on it."""
        found = self._round
        return {} if found is None or found.child.outcome is not None else {found.child.pipe: found.child}

    def end(self) -> None:
        """Kill the running child."""
        if self._round is not None:
            self._round.child.end(self._round.child.outcome or _OVERDUE)
            self._round = None

    def give_back(self) -> None:
        """Let another studio continue at once."""
        EstimateRound.objects.filter(studio=self._studio).update(studio=None, leased_until=None)

    def _begin_one(self) -> None:
        """Begin the round that is due for the longest time."""
        clusters = [*Cluster.objects.exclude(mode__in=MIRRORED_MODES)]
        self._known = {cluster.pk: self._known.get(cluster.pk, _Known()) for cluster in clusters}
        self._histories.keep(self._known)
        for cluster in sorted(clusters, key=lambda each: self._known[each.pk].started):
            known, queue = self._known[cluster.pk], _queue_of(cluster)
            if not _is_due(known, queue) or not self._take(cluster):
                continue
            known.started, known.queue = time.monotonic(), queue
            _try(cluster, partial(self._begin, cluster, waits=bool(queue[4])))
            return

    def _take(self, cluster: Cluster) -> bool:
        with connection.cursor() as cursor:
            cursor.execute(_TAKE, {"cluster": cluster.pk, "studio": self._studio, "seconds": LEASE_SECONDS})
            return cursor.fetchone() is not None

    def _begin(self, cluster: Cluster, *, waits: bool) -> None:
        now = time.time()
        made_at = datetime.fromtimestamp(now, UTC)
        judge_estimates(cluster, made_at)
        history = self._histories.of(cluster)
        if not waits:
            self._renewed(cluster, made_at, ())
            return
        estimators = read_estimators(cluster, history)
        with kept_world(cluster, now) as world:
            work = partial(_try_starts, world, cluster.pk, now, history, estimators)
        self._round = _Round(cluster, made_at, self._fork(work, self._limits))

    def _store(self, ended: _Round) -> None:
        known, outcome = self._known.get(ended.cluster.pk), ended.child.outcome
        if known is not None:
            known.rest_until = time.monotonic() + _REST * (time.monotonic() - known.started)
        if outcome is None or outcome.answer is None:
            _log.warning("The starts of cluster %s were not estimated: %s", ended.cluster, outcome)
        else:
            answer = outcome.answer
            self._renewed(ended.cluster, ended.made_at, answer["estimates"], answer["beyond_reach"])

    def _renewed(self, cluster: Cluster, made_at: datetime, estimates: Any, beyond_reach: Sequence[str] = ()) -> None:
        """Store the estimates, unless another studio has taken over the cluster."""
        with transaction.atomic():
            mine = EstimateRound.objects.select_for_update().filter(cluster=cluster.pk, studio=self._studio)
            if mine.exists():
                store_estimates(cluster, made_at, estimates, beyond_reach)
                mine.update(renewed_at=made_at)


def _try(cluster: Cluster, step: Callable[[], None]) -> None:
    """Take a step of a cluster's round, whose errors must not end the studio.

    Raises the database's errors where it is away, and OSError where no process or memory is left.
    """
    try:
        step()
    except (OperationalError, InterfaceError, OSError):
        raise
    except Exception:  # noqa: BLE001 (whatever it is, the other clusters and all questions go on)
        _log.exception("The starts of cluster %s could not be estimated", cluster)


def _is_due(known: _Known, queue: tuple[Any, ...]) -> bool:
    now = time.monotonic()
    if now < known.rest_until:
        return False
    return now - known.started >= (SOONEST_SECONDS if queue != known.queue else RENEW_SECONDS)


def _queue_of(cluster: Cluster) -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(_QUEUE, [cluster.pk])
        [row] = cursor.fetchall()
    return (*row, cluster.configuration_generation)


def _try_starts(
    world: World,
    seed: int,
    now: float,
    history: RunHistory,
    estimators: Mapping[str, Estimator],
    _go_on: GoOn,
    _tell: Tell,
) -> Mapping[str, Any]:
    begun = time.monotonic()

    def has_time(share: float) -> bool:
        return time.monotonic() - begun < share * TRY_SECONDS * 0.9

    random = np.random.default_rng([seed])
    found = foretell_starts(world, now, history, estimators, random, has_time)
    return estimates_json(found)


def estimates_json(found: Sequence[ForetoldStart]) -> dict[str, Any]:
    """Return the answer of a child: the estimates, and the UIDs of workloads that were not tried."""
    untried = [each.uid for each in found if not each.is_tried]
    return {
        "estimates": [_json(each) for each in found if each.is_tried],
        "beyond_reach": untried[:MAX_BEYOND_REACH],
    }


def _json(found: ForetoldStart) -> dict[str, Any]:
    estimate = found.estimate
    return {
        "workload": found.workload,
        "uid": found.uid,
        "cluster_queue": found.cluster_queue,
        "tree": found.tree,
        "queued_at": found.queued_at,
        "p10": estimate.p10,
        "p50": estimate.p50,
        "p90": estimate.p90,
        "unknown": estimate.unknown,
        "compared": estimate.forecasts_compared,
        "features": estimate.features,
    }
