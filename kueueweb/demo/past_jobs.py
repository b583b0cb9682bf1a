"""The jobs of the days before the demo began. Pure, given a random generator. Times are seconds since the epoch."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from kueueweb.demo.arrivals import Arrivals
from kueueweb.demo.jobs import OVERFLOW, Tenant
from simulation.environment import FAIL, RUN_SECONDS

DAYS: Final = 10
STRETCH: Final = 12.0
"""How many seconds of the past a second of the cluster's time takes: jobs run for up to half a day and arrive as much
more rarely, so that ten days are some thousands of jobs, and the tenants' shares swing once a day."""
LIVE_SECONDS: Final = 420.0
"""The last part of the past goes as fast as the demo itself, so that estimates know how long jobs run in it."""
_QUIET_HOURS: Final = 0.6
_BUSY_HOURS: Final = 1.3
_WEEKEND: Final = 0.7


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job that arrived at a time, as its tenant submitted it. `failing` is its chance to fail."""

    at: float
    tenant: Tenant
    manifest: dict[str, Any]
    run_seconds: float
    failing: float


def past_jobs(fleet: str, until: float, days: int, time_scale: float, chance: random.Random) -> Iterator[PastJob]:
    """Yield the jobs of the last days in the order of their arrival. `time_scale` is the demo's. No job arrives in the
    last second, because each one ends after it began and before `until`."""
    arrivals = Arrivals(fleet, chance)
    begin = at = until - days * 86_400.0
    while True:
        is_live = at >= until - LIVE_SECONDS
        stretch = 1.0 / time_scale if is_live else STRETCH
        at += arrivals.pause_seconds() * stretch / (1.0 if is_live else busyness(at))
        if at >= until - 1:
            return
        stretch = 1.0 / time_scale if at >= until - LIVE_SECONDS else STRETCH
        tenant, manifest = arrivals.job((at - begin) / STRETCH)
        if tenant is OVERFLOW:
            continue  # the history is that of the first cluster
        annotations = manifest["spec"]["template"]["metadata"]["annotations"]
        yield PastJob(at, tenant, manifest, float(annotations[RUN_SECONDS]) * stretch, float(annotations[FAIL]))


def busyness(at: float) -> float:
    """Return how many jobs arrive at a time, as a multiple of the mean: fewer at night and at weekends (UTC)."""
    moment = datetime.fromtimestamp(at, UTC)
    hours = _BUSY_HOURS if 7 <= moment.hour < 19 else _QUIET_HOURS
    return hours * (_WEEKEND if moment.weekday() >= 5 else 1.0)
