"""The figures of a run and Kueue's, with the conditions of both."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from statistics import fmean
from typing import Final

from kueueweb.loadtest.runner import Run
from kueueweb.loadtest.shape import Shape
from scheduling.model.pod import read_quantities
from scheduling.model.quantity import to_amount

_CONDITIONS: Final = (
    "",
    "The two figures are not directly comparable:",
    "  kueueweb  this machine; up to 1,000 workloads a request over REST, rows in PostgreSQL; no Kubernetes is in it",
    "  Kueue     as published for its own scalability tests; every workload is written to and watched in a real API",
    "            server, one request each, its client held at 50 requests a second, burst 100 (that test's default;",
    "            Kueue's own is 300/500 since 0.19)",
    "  floor     what the work itself needs: requests x run time / quota, or the last creation if that is later",
    "Wall time runs from the first creation to the last finish, time to admission from creation to the last admission;",
    "an eviction costs Kueue a round trip to the API server and kueueweb none.",
)


def wall_seconds(run: Run) -> float:
    """Return the seconds from the first creation to the last finish."""
    return run.ended_at - run.began_at


def mean_seconds_to_admission(shape: Shape, run: Run) -> dict[str, float]:
    """Return the mean time, per class, from creation to the (last) admission."""
    waits: dict[str, list[float]] = defaultdict(list)
    for life in run.lives.values():
        if life.admitted_at is not None:
            waits[shape.sets[life.arrival.set_index].name].append(life.admitted_at - life.created_at)
    return {name: fmean(found) for name, found in waits.items()}


def mean_usage_percent(shape: Shape, run: Run) -> float:
    """Return the mean quota in use over the run, as a share of nominal quota; earlier quota of a preempted workload is
    not counted."""
    used = 0.0
    scale = to_amount(shape.resource, read_quantities({shape.resource: "1"})[shape.resource])
    for life in run.lives.values():
        entry = shape.sets[life.arrival.set_index]
        amount = to_amount(shape.resource, read_quantities({shape.resource: entry.request})[shape.resource]) / scale
        if life.admitted_at is not None and life.finished_at is not None:
            used += entry.pods * amount * (life.finished_at - life.admitted_at)
    return 100 * used / (shape.nominal_total * wall_seconds(run))


def lines(shape: Shape, run: Run) -> Iterator[str]:
    kueue = shape.kueue
    yield f"{'':34}{'kueueweb':>12}{'Kueue':>12}{'floor':>12}"
    yield _line("wall time, s", wall_seconds(run), kueue.get("wallSeconds"), shape.floor_seconds)
    theirs = kueue.get("meanSecondsToAdmission") or {}
    for name, mean in sorted(mean_seconds_to_admission(shape, run).items()):
        yield _line(f"to admission, {name}, s", mean, theirs.get(name))
    yield _line("mean usage of nominal quota, %", mean_usage_percent(shape, run), kueue.get("meanUsagePercent"))
    admitted = sum(life.admitted_at is not None for life in run.lives.values())
    yield f"{admitted} of {shape.workload_count} workloads were admitted and finished"
    yield from _CONDITIONS


def processor_lines(shape: Shape, taken: Mapping[str, float]) -> Iterator[str]:
    """Return a line with the seconds of processor time for each process; empty if the processes are not ours."""
    if not taken:
        return
    yield ""
    yield f"{'processor of our own processes':34}{'seconds':>12}{'ms/workload':>14}"
    for name, seconds in [*taken.items(), ("all", sum(taken.values()))]:
        yield f"{name:34}{seconds:12.1f}{1000 * seconds / shape.workload_count:14.2f}"


def _line(label: str, ours: float, kueues: float | None, floor: float | None = None) -> str:
    columns = (f"{ours:12.1f}", _column(kueues), _column(floor))
    return f"{label:34}" + "".join(columns)


def _column(value: float | None) -> str:
    return f"{'-':>12}" if value is None else f"{value:12.1f}"
