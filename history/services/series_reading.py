"""Series for charts: aligned to a grid of steps, means for amounts, null for steps without samples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db import connection
from psycopg import sql

from foundation.time_series import Resolution, start_of
from history.models import Count, CountSample, DeviceSample, QuotaSample, Scope, WorkloadSample
from history.services.retention import RETENTION
from history.services.waits import percentile

MAX_POINTS: Final = 1_500
MAX_SERIES: Final = 300

WORKLOAD_METRICS: Final = ("pending", "pending_peak", "held", "reserving", "admitted", "share")
QUOTA_METRICS: Final = ("nominal", "ceiling", "used", "used_peak", "borrowed", "lent")
DEVICE_METRICS: Final = (
    "devices", "devices_held", "devices_idle", "devices_unmeasured", "devices_stranded", "devices_demanded",
    "memory_mib", "memory_held_mib", "memory_used_mib", "cores_percent", "cores_held_percent", "cores_used_percent",
)  # fmt: skip
EVENT_METRICS: Final = ("started", "ended", "preempted", "evicted")
WAIT_METRICS: Final = {"wait_p50": 0.5, "wait_p90": 0.9}
PENDING_BY_REASON: Final = "pending_by_reason"
METRICS: Final = (
    *WORKLOAD_METRICS, PENDING_BY_REASON, *EVENT_METRICS, *WAIT_METRICS, *QUOTA_METRICS, *DEVICE_METRICS,
)  # fmt: skip
_PEAKS: Final = frozenset({"pending_peak", "used_peak"})


class TooFine(ValueError):
    """A step that is shorter than the interval of the samples of that age. `smallest`: the finest step, in seconds."""

    def __init__(self, smallest: int) -> None:
        super().__init__(f"values of that age are kept in steps of {smallest} s")
        self.smallest = smallest


class TooMany(ValueError):
    """The answer would have more points than it may."""


@dataclass(frozen=True, slots=True)
class Window:
    """The period and its step; both ends are multiples of the step."""

    since: datetime
    until: datetime
    step: int

    @property
    def times(self) -> list[int]:
        """The starts of the steps, in seconds since the epoch."""
        return list(range(int(self.since.timestamp()), int(self.until.timestamp()), self.step))


@dataclass(frozen=True, slots=True)
class Selection:
    """The requested series. `names` None selects all; `together` adds them up to one. Empty filters take everything."""

    scope: Scope
    names: Collection[str] | None
    metrics: Collection[str]
    flavor: str = ""
    resource: str = ""
    together: bool = False


@dataclass(frozen=True, slots=True)
class Line:
    """One series: a value for each step, None where nothing is known."""

    metric: str
    name: str
    values: Sequence[float | None]
    flavor: str = ""
    resource: str = ""
    detail: str = ""


def window(since: datetime, until: datetime, step: int | None, now: datetime) -> Window:
    """Return the grid; without a step, the shortest stored one that yields at most some hundreds of points.

    Raises `TooFine` or `TooMany`.
    """
    step = _step(since, until, now) if step is None else step
    smallest = next(
        (found for found in Resolution if now - since <= RETENTION[found] + timedelta(hours=1)), Resolution.HOUR
    )
    if step < smallest:
        raise TooFine(int(smallest))
    start, end = start_of(since.astimezone(UTC), step), start_of(until.astimezone(UTC), step)
    end = end if end >= until else end + timedelta(seconds=step)
    if (end - start).total_seconds() / step > MAX_POINTS:
        raise TooMany(f"more than {MAX_POINTS} steps")
    return Window(start, end, step)


_STEPS: Final = (15, 60, 300, 900, 3_600, 10_800, 21_600, 86_400)
_POINTS: Final = 400


def _step(since: datetime, until: datetime, now: datetime) -> int:
    seconds = (until - since).total_seconds()
    kept = next((found for found in Resolution if now - since <= RETENTION[found]), Resolution.HOUR)
    return next((step for step in _STEPS if step >= kept and seconds / step <= _POINTS), _STEPS[-1])


class _Row(NamedTuple):
    name: str
    flavor: str
    resource: str
    kind: str
    detail: str
    at: int
    samples: int
    sums: tuple[float | None, ...]


_SUMS: Final = sql.SQL(
    """
    SELECT {name}, subject.flavor, subject.resource, subject.kind, subject.detail,
        extract(epoch FROM date_bin(make_interval(secs => %(step)s), sample.at, 'epoch'::timestamptz))::bigint,
        sum(sample.samples){values}
    FROM {table} AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
    WHERE subject.cluster_id = %(cluster_id)s AND subject.scope = %(scope)s
        AND (%(names)s::text[] IS NULL OR subject.name = ANY (%(names)s))
        AND subject.kind = ANY (%(kinds)s)
        AND (%(flavor)s = '' OR subject.flavor = %(flavor)s)
        AND (%(resource)s = '' OR subject.resource = %(resource)s)
        AND ({pieces})
    GROUP BY 1, 2, 3, 4, 5, 6
    LIMIT %(limit)s
    """
)
_NEWEST: Final = """
    SELECT step, (
        SELECT max(sample.at) FROM history_workloadsample AS sample
        WHERE sample.subject_id = subject.id AND sample.resolution = step
    )
    FROM history_subject AS subject, unnest(%s::int[]) AS step
    WHERE subject.cluster_id = %s AND subject.scope = 'cluster' AND subject.kind = ''
        AND subject.flavor = '' AND subject.resource = ''
"""


@dataclass(slots=True)
class Reader:
    """Reads the series of one cluster within one window: a query for each table that the metrics need, and two more."""

    cluster_id: int
    window: Window
    _pieces: sql.Composed = field(init=False)

    def __post_init__(self) -> None:
        self._pieces = sql.SQL(" OR ").join(
            sql.SQL("(sample.resolution = {} AND sample.at >= {} AND sample.at < {})").format(
                sql.Literal(int(resolution)), sql.Literal(since.isoformat()), sql.Literal(until.isoformat())
            )
            for resolution, since, until in self._parts()
        )

    def lines(self, selection: Selection) -> list[Line]:
        """Return every series that is selected, by metric and name. Raises `TooMany`."""
        asked = set(selection.metrics)
        looked = self._looked(selection)
        found: list[Line] = []
        for metrics, read in (
            (set(WORKLOAD_METRICS), self._workloads),
            (set(QUOTA_METRICS), self._quota),
            (set(DEVICE_METRICS), self._devices),
            ({PENDING_BY_REASON, *EVENT_METRICS, *WAIT_METRICS}, self._counts),
        ):
            if asked & metrics:
                found += read(selection, sorted(asked & metrics, key=METRICS.index), looked)
        if len(found) > MAX_SERIES:
            raise TooMany(f"more than {MAX_SERIES} series")
        return sorted(found, key=lambda line: (METRICS.index(line.metric), line.name, line.flavor, line.resource))

    def _parts(self) -> Iterator[tuple[Resolution, datetime, datetime]]:
        """Yield the resolution for each part of the period: the coarsest that the step allows as far as it reaches,
        then finer ones."""
        usable = [resolution for resolution in Resolution if self.window.step % resolution == 0]
        with connection.cursor() as cursor:
            cursor.execute(_NEWEST, [[int(resolution) for resolution in usable], self.cluster_id])
            newest = dict(cursor.fetchall())
        since = self.window.since
        for resolution in reversed(usable):
            last = newest.get(int(resolution))
            until = self.window.until if resolution is Resolution.RAW else since
            if last is not None and resolution is not Resolution.RAW:
                until = min(self.window.until, last + timedelta(seconds=resolution))
            if until > since or resolution is Resolution.RAW:
                yield resolution, since, until
                since = max(since, until)

    def _rows(
        self,
        model: type[WorkloadSample | QuotaSample | CountSample | DeviceSample],
        selection: Selection,
        columns: Sequence[str],
        kinds: Sequence[str] = ("",),
        *,
        cells: bool = True,
    ) -> list[_Row]:
        limit = MAX_POINTS * MAX_SERIES
        values = sql.SQL("").join(
            sql.SQL(", {}(sample.{})::float8").format(sql.SQL("max" if name in _PEAKS else "sum"), sql.Identifier(name))
            for name in columns
        )
        statement = _SUMS.format(
            name=sql.SQL("'' AS name" if selection.together else "subject.name"),
            values=values,
            table=sql.Identifier(model._meta.db_table),
            pieces=self._pieces,
        )
        parameters: dict[str, Any] = {
            "step": self.window.step,
            "cluster_id": self.cluster_id,
            "scope": selection.scope.value,
            "names": None if selection.names is None else list(selection.names),
            "kinds": list(kinds),
            "flavor": selection.flavor if cells else "",
            "resource": selection.resource if cells else "",
            "limit": limit + 1,
        }
        with connection.cursor() as cursor:
            cursor.execute(statement, parameters)
            rows = [_row(row) for row in cursor.fetchall()]
        if len(rows) > limit:
            raise TooMany(f"more than {limit} values")
        return rows

    def _looked(self, selection: Selection) -> _Looked:
        """name -> step -> number of samples, which distinguishes a gap from a zero."""
        if selection.together or selection.scope is Scope.USER:
            whole = Selection(Scope.CLUSTER, None, ())
            steps = {row.at: row.samples for row in self._rows(WorkloadSample, whole, ())}
            names = [""] if selection.together else self._names_of_users(selection)
            return dict.fromkeys(names, steps)
        looked: dict[str, dict[int, int]] = defaultdict(dict)
        for row in self._rows(WorkloadSample, selection, (), cells=False):
            looked[row.name][row.at] = row.samples
        return looked

    def _names_of_users(self, selection: Selection) -> list[str]:
        return sorted({row.name for row in self._rows(DeviceSample, selection, (), cells=False)})

    def _workloads(self, selection: Selection, metrics: Sequence[str], looked: _Looked) -> Iterator[Line]:
        rows = {(row.name, row.at): row for row in self._rows(WorkloadSample, selection, metrics, cells=False)}
        for place, metric in enumerate(metrics):
            for name, steps in looked.items():
                yield self._line(metric, name, steps, _value(rows, name, place, metric in _PEAKS))

    def _quota(self, selection: Selection, metrics: Sequence[str], looked: _Looked) -> Iterator[Line]:
        cells: dict[tuple[str, str, str], dict[int, _Row]] = defaultdict(dict)
        for row in self._rows(QuotaSample, selection, metrics):
            cells[row.name, row.flavor, row.resource][row.at] = row
        # A namespace has a row only while it uses something; a queue always has.
        sparse = selection.together or selection.scope is Scope.NAMESPACE
        for place, metric in enumerate(metrics):
            for (name, flavor, resource), rows in cells.items():
                if sparse and metric not in {"used", "used_peak"}:
                    continue
                value = _cell_value(rows, place, peak=metric in _PEAKS, sparse=sparse)
                yield self._line(metric, name, looked.get(name, {}), value, flavor, resource)

    def _devices(self, selection: Selection, metrics: Sequence[str], looked: _Looked) -> Iterator[Line]:
        sums: dict[str, dict[int, list[float | None]]] = defaultdict(dict)
        for row in self._rows(DeviceSample, selection, metrics):
            before = sums[row.name].get(row.at)
            sums[row.name][row.at] = list(row.sums) if before is None else [*map(_plus, before, row.sums)]
        for place, metric in enumerate(metrics):
            nothing = 0.0 if metric in {"devices_held", "devices_idle", "devices_unmeasured"} else None
            for name, rows in sums.items():
                yield self._line(metric, name, looked.get(name, {}), _mean(rows, place, nothing))

    def _counts(self, selection: Selection, metrics: Sequence[str], looked: _Looked) -> Iterator[Line]:
        wanted = {PENDING_BY_REASON: Count.PENDING, **{name: Count(name) for name in EVENT_METRICS}}
        kinds = {wanted.get(metric, Count.WAIT).value for metric in metrics}
        rows = self._rows(CountSample, selection, ("total",), sorted(kinds), cells=False)
        totals: dict[tuple[str, str, str], dict[int, float]] = defaultdict(dict)
        for row in rows:
            totals[row.kind, row.name, row.detail][row.at] = row.sums[0] or 0.0
        for metric in metrics:
            if metric == PENDING_BY_REASON:
                yield from self._reasons(totals, looked)
            else:
                for name, steps in looked.items():
                    value = _wait(totals, name, metric) if metric in WAIT_METRICS else _events(totals, name, metric)
                    yield self._line(metric, name, steps, value)

    def _reasons(self, totals: _Totals, looked: _Looked) -> Iterator[Line]:
        for (kind, name, reason), counts in sorted(totals.items()):
            if kind == Count.PENDING:
                steps = looked.get(name, {})
                value = _per_sample(counts)
                yield self._line(PENDING_BY_REASON, name, steps, value, detail=reason)

    def _line(
        self,
        metric: str,
        name: str,
        steps: Mapping[int, int],
        value: Callable[[int, int], float | None],
        flavor: str = "",
        resource: str = "",
        detail: str = "",
    ) -> Line:
        values = [value(at, steps[at]) if at in steps else None for at in self.window.times]
        return Line(metric, name, values, flavor, resource, detail)


def _row(row: Sequence[Any]) -> _Row:
    name, flavor, resource, kind, detail, at, samples, *sums = row
    return _Row(name, flavor, resource, kind, detail, int(at), int(samples), tuple(sums))


_Looked = Mapping[str, Mapping[int, int]]
_Totals = Mapping[tuple[str, str, str], Mapping[int, float]]
_Value = Callable[[int, int], float | None]
"""The value of a series in a step, from the number of samples taken in it."""


def _value(rows: Mapping[tuple[str, int], _Row], name: str, place: int, peak: bool) -> _Value:
    def value(at: int, samples: int) -> float | None:
        found = rows[name, at].sums[place] if (name, at) in rows else None
        return found if found is None or peak else found / samples

    return value


def _cell_value(rows: Mapping[int, _Row], place: int, *, peak: bool, sparse: bool) -> _Value:
    def value(at: int, samples: int) -> float | None:
        row = rows.get(at)
        if row is None:
            return 0.0 if sparse else None
        found = row.sums[place]
        return found if found is None or peak else found / (samples if sparse else row.samples)

    return value


def _mean(rows: Mapping[int, Sequence[float | None]], place: int, nothing: float | None) -> _Value:
    def value(at: int, samples: int) -> float | None:
        found = rows[at][place] if at in rows else None
        return nothing if found is None else found / samples

    return value


def _per_sample(counts: Mapping[int, float]) -> _Value:
    return lambda at, samples: counts.get(at, 0.0) / samples


def _events(totals: _Totals, name: str, metric: str) -> _Value:
    """Return the counts of an event, summed over its details."""
    found = [counts for (kind, of, _), counts in totals.items() if kind == metric and of == name]
    return lambda at, _: sum(counts.get(at, 0.0) for counts in found)


def _wait(totals: _Totals, name: str, metric: str) -> _Value:
    """Return the wait of the workloads that started in the step; None if none started."""
    found = {int(detail): counts for (kind, of, detail), counts in totals.items() if kind == Count.WAIT and of == name}

    def value(at: int, _: int) -> float | None:
        here = {bucket: counts[at] for bucket, counts in found.items() if at in counts}
        return percentile(here, WAIT_METRICS[metric])

    return value


def _plus(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def unit_of(metric: str) -> str:
    """Return the unit of a metric, for texts and axes."""
    if metric in WAIT_METRICS:
        return "seconds"
    if metric in QUOTA_METRICS:
        return "base units"
    if metric.endswith("_mib"):
        return "MiB"
    if metric.endswith("_percent"):
        return "percent of a device"
    if metric == "share":
        return "thousandths"
    return "devices" if metric.startswith("devices") else "per step" if metric in EVENT_METRICS else "workloads"
