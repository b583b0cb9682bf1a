"""Fairness: the use of each ClusterQueue against its quota, how long it was below while workloads waited, and which
queues held the difference."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from django.utils import timezone
from psycopg import sql

from foundation.time_series import Resolution
from history.services.reports.samples import FINELY_ONCE, HOURS, ONCE, ROLLED
from history.services.reports.table import CLUSTER, MAX_ROWS, Cell, Column, Part, Report, Request, fetch
from history.services.retention import RETENTION
from queues.models import ClusterQueue, Cohort

Matrix = npt.NDArray[np.float64]
HOLDER: Final = "holder"
BY: Final = ("cluster_queue", HOLDER)
DEFAULT_BY: Final = ("cluster_queue",)
OTHERS: Final = "(other queues)"
"""The name of holders that the reader may not see."""
IDLE: Final = "(idle)"
"""The name of the part of a difference that no queue of the tree held."""
_ALONE: Final = "/"
"""The beginning of the root of a queue without a cohort: no name of a cohort has it."""
_WAITING: Final = 0.5
_LEAST: Final = 0.001
"""The least part of a difference that is listed."""
_FINE: Final = timedelta(days=2)
"""The longest period that is computed in steps of five minutes; longer ones take an hour."""

_STEP: Final = sql.SQL("extract(epoch FROM date_bin(%(step)s * interval '1 second', sample.at, 'epoch'))::bigint")
# Sums over samples are unit-hours.
_QUOTA: Final = sql.SQL(
    """
    WITH {rolled}
    SELECT subject.cluster_id, subject.name, subject.resource, {step}, coalesce({nominal}, 0), {used}
    FROM history_quotasample AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
        CROSS JOIN rolled
    WHERE subject.cluster_id = ANY (%(clusters)s) AND subject.scope = 'cluster_queue' AND {once}
    GROUP BY 1, 2, 3, 4
    """
)
_WAITS: Final = sql.SQL(
    """
    WITH {rolled}
    SELECT subject.cluster_id, subject.name, {step}, 15 * sum(sample.samples),
        sum(sample.pending)::float8 / sum(sample.samples)
    FROM history_workloadsample AS sample JOIN history_subject AS subject ON subject.id = sample.subject_id
        CROSS JOIN rolled
    WHERE subject.cluster_id = ANY (%(clusters)s) AND subject.scope = 'cluster_queue' AND subject.kind = '' AND {once}
    GROUP BY 1, 2, 3
    """
)
_COLUMNS: Final = (
    Column("cluster_queue", "ClusterQueue"),
    Column("resource", "Resource"),
)
_OF_QUEUES: Final = (
    Column("missing_hours", "Shortfall while workloads waited", "hours"),
    Column("below_seconds", "Time below quota", "seconds"),
    Column("used_percent", "Used of quota", "percent"),
    Column("entitled_hours", "Quota", "hours"),
    Column("used_hours", "Used", "hours"),
)
_OF_HOLDERS: Final = (
    Column(HOLDER, "Held by"),
    Column("held_hours", "Held of the shortfall", "hours"),
    Column("held_percent", "Share of the shortfall", "percent"),
)


@dataclass(frozen=True, slots=True)
class _Tree:
    """A resource in a tree of cohorts: for each queue and step, the unit-hours of quota and use, the seconds that were
    looked at, and whether workloads waited."""

    part: Part
    resource: str
    queues: tuple[str, ...]
    entitled: Matrix
    used: Matrix
    seconds: Matrix
    waits: Matrix
    lends: bool
    """Whether its queues can hold what another one misses."""

    @property
    def missing(self) -> Matrix:
        """The shortfall below the quota, while workloads waited."""
        return np.where(self.waits > 0, np.maximum(0.0, self.entitled - self.used), 0.0)

    def held(self) -> Matrix:
        """By queue and holder, the part of the shortfall that the holder had beyond its own quota. In each step, the
        queues above their quota hold it in proportion to their excess, and no more than that."""
        missing, excess = self.missing, np.maximum(0.0, self.used - self.entitled)
        if not self.lends:
            return np.zeros((len(self.queues), len(self.queues)))
        most = np.maximum(missing.sum(axis=0), excess.sum(axis=0))
        return (missing / np.where(most > 0, most, 1.0)) @ excess.T


def fairness(request: Request) -> Report:
    """Report, for each queue and resource, the unit-hours of its nominal quota and of its use, and the shortfall while
    workloads waited. The shortfall is grouped by holder: the queues of the tree that held it. The current tree of
    cohorts counts. A queue that waits for another resource counts as waiting, too."""
    several, by_holder = request.is_of_several, HOLDER in request.by
    of_tree = _holder_rows if by_holder else _queue_rows
    found = [row for tree in _trees(request) for row in of_tree(tree)]
    place = len(_COLUMNS) + 1  # the hours that are missing, after the cluster
    if by_holder:
        missing: dict[tuple[Cell, ...], float] = defaultdict(float)
        for row in found:
            missing[tuple(row[:place])] += float(row[place + 1] or 0)
        found.sort(key=lambda row: (-missing[tuple(row[:place])], row[:place], -float(row[place + 1] or 0), row[place]))
    else:
        found.sort(key=lambda row: (-float(row[place] or 0), row[:place]))
    values = _OF_HOLDERS if by_holder else _OF_QUEUES
    columns = [*([Column(CLUSTER, "Cluster")] if several else []), *_COLUMNS, *values]
    return Report(columns, [row if several else row[1:] for row in found[:MAX_ROWS]])


def _queue_rows(tree: _Tree) -> Iterator[list[Any]]:
    missing, unit = tree.missing, _per_unit(tree.resource)
    below = np.where(missing > 0, tree.seconds, 0.0).sum(axis=1)
    entitled, used = tree.entitled.sum(axis=1), tree.used.sum(axis=1)
    for number, queue in enumerate(tree.queues):
        if tree.part.sees_queue(queue) and entitled[number] + used[number] > 0:
            yield [
                tree.part.cluster_name,
                queue,
                tree.resource,
                round(float(missing[number].sum()) / unit, 4),
                round(float(below[number])),
                round(100 * float(used[number] / entitled[number]), 1) if entitled[number] else None,
                round(float(entitled[number]) / unit, 4),
                round(float(used[number]) / unit, 4),
            ]


def _holder_rows(tree: _Tree) -> Iterator[list[Any]]:
    unit, held = _per_unit(tree.resource), tree.held()
    for number, missing in enumerate(tree.missing.sum(axis=1)):
        if missing <= 0 or not tree.part.sees_queue(tree.queues[number]):
            continue
        parts: dict[str, float] = defaultdict(float)
        for holder, hours in zip(tree.queues, held[number], strict=True):
            parts[holder if tree.part.sees_queue(holder) else OTHERS] += float(hours)
        parts[IDLE] = float(missing) - sum(parts.values())
        for holder, hours in parts.items():
            if hours > _LEAST * missing:
                percent = round(100 * hours / float(missing), 1)
                yield [
                    tree.part.cluster_name, tree.queues[number], tree.resource, holder, round(hours / unit, 4), percent,
                ]  # fmt: skip


def _per_unit(resource: str) -> int:
    """Base units to one core, one GiB, one of anything else."""
    if resource == "cpu":
        return 1000
    in_bytes = resource in ("memory", "ephemeral-storage", "storage") or resource.startswith("hugepages-")
    return 2**30 if in_bytes else 1


_Cells = dict[tuple[str, int], tuple[float, float]]
"""Queue and step -> quota and use."""


def _trees(request: Request) -> Iterator[_Tree]:
    """Yield each resource of each tree of cohorts; a queue without a cohort is a tree of its own."""
    statement, parameters = _within(request)
    waits = {(pk, queue, at): found for pk, queue, at, *found in fetch(statement(_WAITS), parameters)}
    roots = {part.cluster_id: _roots(part.cluster_id) for part in request.parts}
    cells: dict[tuple[int, str, str], _Cells] = defaultdict(dict)
    for pk, queue, resource, at, entitled, used in fetch(statement(_QUOTA), parameters):
        if (pk, queue, at) in waits:
            root = roots[pk].get(queue) or f"{_ALONE}{queue}"
            cells[pk, root, resource][queue, at] = entitled, used
    parts = {part.cluster_id: part for part in request.parts}
    for (pk, root, resource), found in cells.items():
        queues, steps = (tuple(sorted(set(names))) for names in zip(*found, strict=True))
        row, column = ({name: place for place, name in enumerate(names)} for names in (queues, steps))
        entitled, used, seconds, waiting = (np.zeros((len(queues), len(steps))) for _ in range(4))
        for (queue, at), (quota, use) in found.items():
            place = row[queue], column[at]
            entitled[place], used[place] = quota, use
            seconds[place], pending = waits[pk, queue, at]
            # Half a workload or more waited on average.
            waiting[place] = pending >= _WAITING
        lends = not root.startswith(_ALONE)
        yield _Tree(parts[pk], resource, queues, entitled, used, seconds, waiting, lends)


def _within(request: Request) -> tuple[Callable[[sql.SQL], sql.Composed], dict[str, Any]]:
    """Complete a statement for the period, in steps of five minutes or an hour; and its parameters."""
    kept = timezone.now() - request.since < RETENTION[Resolution.MINUTES]
    fine = kept and request.until - request.since <= _FINE
    step = Resolution.MINUTES if fine else Resolution.HOUR
    pieces = {
        "rolled": ROLLED.format(table=sql.SQL("history_quotasample")),
        "step": _STEP,
        "nominal": HOURS.format(sql.SQL("nominal")),
        "used": HOURS.format(sql.SQL("used")),
        "once": (FINELY_ONCE if fine else ONCE).format(since=sql.SQL("%(since)s")),
    }
    return lambda statement: statement.format(**pieces), request.parameters() | {"step": int(step)}


def _roots(cluster_id: int) -> dict[str, str]:
    """Return the root of each queue's tree of cohorts; empty for a queue without a cohort."""
    parents = dict(Cohort.objects.filter(cluster=cluster_id).values_list("name", "parent_name"))
    queues = ClusterQueue.objects.filter(cluster=cluster_id).values_list("name", "cohort_name")
    return {name: _root(cohort, parents) for name, cohort in queues}


def _root(cohort: str, parents: Mapping[str, str]) -> str:
    seen: set[str] = set()
    while parents.get(cohort) and cohort not in seen:
        seen.add(cohort)
        cohort = parents[cohort]
    return cohort
