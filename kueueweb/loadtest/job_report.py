"""The figures of a run of Jobs: how fast they started, and what each cost the API server and the processor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, Final

from kueueweb.loadtest.api_server import RequestKind, ServerCounts
from kueueweb.loadtest.job_runner import JobRun
from kueueweb.loadtest.shape import Shape
from kueueweb.loadtest.shape_jobs import JOBS

_LISTED: Final = 12
_OWN: Final = ("POST", JOBS.plural)
_LONG: Final = ("WATCH", "CONNECT")
"""Verbs of requests that last, which are counted when they end."""
_LATE: Final = 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """Times in seconds; `None` where it is not known.

    * waits: from the request that creates a Job to its (last) start, sorted.
    * requests_per_job: of all clients but the load test.
    * processor: milliseconds a Job, by process.
    """

    jobs: int
    failed: int
    stops: int
    wall_seconds: float
    starts_per_second: float | None
    waits: list[float]
    requests_per_job: Mapping[RequestKind, float] | None
    processor: Mapping[str, float] = field(default_factory=dict)

    def wait(self, part: float) -> float | None:
        """Return the wait that this part of the Jobs did not exceed."""
        return self.waits[min(len(self.waits) - 1, int(len(self.waits) * part))] if self.waits else None

    def as_json(self) -> dict[str, Any]:
        """Return the figures with their names, for other programs."""
        requests = self.requests_per_job
        return {
            "jobs": self.jobs,
            "failed": self.failed,
            "stops": self.stops,
            "wallSeconds": round(self.wall_seconds, 2),
            "startsPerSecond": None if self.starts_per_second is None else round(self.starts_per_second, 2),
            "medianSecondsToStart": self.wait(0.5),
            "lateSecondsToStart": self.wait(_LATE),
            "requestsPerJob": None if requests is None else round(sum(requests.values()), 2),
            "requests": None
            if requests is None
            else {" ".join(kind): round(count, 3) for kind, count in requests.items()},
            "processorMilliseconds": {name: round(taken, 2) for name, taken in self.processor.items()},
        }


def figures(run: JobRun, counts: ServerCounts | None, seconds: Mapping[str, float]) -> Figures:
    """Work out the figures of a run.

    * counts: of the API server, during the run.
    * seconds: of processor, by process, during the run.
    """
    lives = list(run.lives.values())
    started = [life.started_at for life in lives if life.started_at is not None]
    spread = max(started) - run.began_at if started else 0.0
    taken = dict(seconds)
    if counts is not None and counts.processor_seconds is not None:
        taken["API server"] = counts.processor_seconds
    return Figures(
        jobs=len(lives),
        failed=sum(life.failed for life in lives),
        stops=sum(life.stops for life in lives),
        wall_seconds=run.ended_at - run.began_at,
        starts_per_second=len(started) / spread if spread else None,
        waits=sorted(life.started_at - life.created_at for life in lives if life.started_at is not None),
        requests_per_job=None if counts is None else _others(counts.requests, len(lives)),
        processor={name: 1000 * each / len(lives) for name, each in taken.items()},
    )


def _others(requests: Mapping[RequestKind, int], jobs: int) -> dict[RequestKind, float]:
    """Return the requests a Job of all clients but the load test, the most frequent first."""
    found = Counter({kind: count for kind, count in requests.items() if kind[0] not in _LONG})
    found[_OWN] -= jobs
    return {kind: count / jobs for kind, count in found.most_common() if count > 0}


def job_lines(shape: Shape, run: JobRun, found: Figures) -> Iterator[str]:
    """Yield the report of `manage.py loadtest --cluster`."""
    yield f"{found.jobs} Jobs, {found.failed} failed, {found.stops} times one was stopped after its start"
    yield _line("wall time, s", found.wall_seconds)
    yield _line("Jobs started a second", found.starts_per_second)
    for index, entry in enumerate(shape.sets):
        waits = [
            life.started_at - life.created_at
            for life in run.lives.values()
            if life.arrival.set_index == index and life.started_at is not None
        ]
        yield _line(f"creation to start, {entry.name}, median, s", median(waits) if waits else None)
    yield _line("creation to start, all, 95 %, s", found.wait(_LATE))
    yield ""
    yield from _request_lines(found)
    yield ""
    yield f"{'processor':40}{'ms a Job':>12}"
    for name, taken in found.processor.items():
        yield _line(name, taken)
    if not found.processor:
        yield "  not known: name processes of this machine with --process NAME=PID"


def _request_lines(found: Figures) -> Iterator[str]:
    requests = found.requests_per_job
    if requests is None:
        yield "requests to the API server: not known, because this account may not read its /metrics"
        return
    yield f"{'requests to the API server':40}{'a Job':>12}"
    for kind, count in [*requests.items()][:_LISTED]:
        yield _line(" ".join(kind), count)
    yield _line("all but the creation of the Job", sum(requests.values()))


def _line(label: str, value: float | None) -> str:
    return f"{label:40}" + (f"{'-':>12}" if value is None else f"{value:12.2f}")
