"""Counters and histograms: which stored counts each family sums up, and over which of their labels.

Every count of a workload carries (ClusterQueue, namespace, LocalQueue, priority class), and evictions (reason, cause)
after these, so Kueue's family of ClusterQueues and that of LocalQueues are two sums of one count.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import accumulate
from typing import Final

from django.db import connection
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric

from scheduler.store.counts import ATTEMPT_BOUNDS, LABELS_OF_THERE, QUEUES_OF_COUNTS

_CLUSTER_QUEUE: Final = {"cluster_queue": 0, "priority_class": 3}
_LOCAL_QUEUE: Final = {"name": 2, "namespace": 1, "priority_class": 3}
_NAMES_OF_QUEUES: Final = frozenset({"cluster_queue", "preempting_cluster_queue", "name"})
_EVICTION: Final = {"reason": 4, "underlying_cause": 5}

STEP_BOUNDS: Final = (1.0, 2.5, *(5.0 * 2**power for power in range(14)))
"""Upper bounds, in seconds, of the buckets that the triggers count (migration `metric_counts`); a family may show fewer
of them.
"""
_CREATION_BOUNDS: Final = tuple(0.01 * 2**power for power in range(11))


@dataclass(frozen=True, slots=True)
class CountedFamily:
    """A counter, or with `bounds` a histogram: the stored count that it shows, and the names of its labels."""

    name: str
    documentation: str
    metric: str
    labels: Mapping[str, int]
    bounds: Sequence[float] = ()


def _both(
    name: str, documentation: str, metric: str, extra: Mapping[str, int] | None = None, bounds: int = 0, local: int = 0
) -> tuple[CountedFamily, CountedFamily]:
    """Kueue's family of ClusterQueues and that of LocalQueues, with that many buckets."""
    extra = extra or {}
    return (
        CountedFamily(name, documentation, metric, {**_CLUSTER_QUEUE, **extra}, STEP_BOUNDS[:bounds]),
        CountedFamily(
            name.replace("kueue_", "kueue_local_queue_", 1),
            documentation,
            metric,
            {**_LOCAL_QUEUE, **extra},
            STEP_BOUNDS[: local or bounds],
        ),
    )


FAMILIES: Final[tuple[CountedFamily, ...]] = (
    CountedFamily("kueue_admission_attempts_total", "Scheduling cycles by result.", "attempt", {"result": 0}),
    CountedFamily(
        "kueue_admission_attempt_duration_seconds",
        "How long a scheduling cycle took.",
        "attempt",
        {"result": 0},
        ATTEMPT_BOUNDS,
    ),
    *_both("kueue_quota_reserved_workloads_total", "Reservations of quota.", "quota_reserved"),
    *_both(
        "kueue_quota_reserved_wait_time_seconds",
        "Seconds from queueing to the reservation of quota.",
        "quota_reserved",
        bounds=14,
    ),
    *_both("kueue_admitted_workloads_total", "Admissions.", "admitted"),
    *_both("kueue_admission_wait_time_seconds", "Seconds from queueing to admission.", "admitted", bounds=16, local=14),
    *_both(
        "kueue_admission_checks_wait_time_seconds",
        "Seconds from the reservation of quota to admission, for workloads with admission checks.",
        "checks_passed",
        bounds=14,
    ),
    *_both("kueue_ready_wait_time_seconds", "Seconds from queueing to ready pods.", "ready", bounds=14),
    *_both(
        "kueue_admitted_until_ready_wait_time_seconds",
        "Seconds from admission to ready pods.",
        "ready_after_admission",
        bounds=14,
    ),
    *_both("kueue_finished_workloads_total", "Workloads that finished.", "finished"),
    *_both("kueue_execution_time_seconds", "Total run time of a finished workload.", "executed", bounds=16),
    *_both("kueue_evicted_workloads_total", "Evictions.", "evicted", _EVICTION),
    CountedFamily(
        "kueue_evicted_workloads_once_total",
        "Workloads evicted for the first time, by reason and cause.",
        "evicted_once",
        _CLUSTER_QUEUE | _EVICTION,
    ),
    CountedFamily(
        "kueue_preempted_workloads_total",
        "Workloads that were preempted, by the ClusterQueue that preempted them.",
        "preempted",
        {"preempting_cluster_queue": 0, "reason": 1},
    ),
    CountedFamily(
        "kueue_workload_eviction_latency_seconds",
        "Seconds from an eviction to the release of the quota.",
        "released",
        {"cluster_queue": 0, "reason": 4},
        STEP_BOUNDS[:14],
    ),
    CountedFamily(
        "kueue_pods_ready_to_evicted_time_seconds",
        "Seconds from ready pods to an eviction.",
        "evicted_when_ready",
        {"cluster_queue": 0} | _EVICTION,
        STEP_BOUNDS[:14],
    ),
    CountedFamily(
        "kueue_replaced_workload_slices_total",
        "Workload slices of elastic jobs that a newer slice replaced.",
        "slice_replaced",
        {"cluster_queue": 0},
    ),
    CountedFamily(
        "kueue_workload_creation_latency_seconds",
        "Seconds from a job's creation to that of its workload.",
        "created",
        {"job_kind": 0},
        _CREATION_BOUNDS,
    ),
    CountedFamily(
        "kueueweb_refused_batches_total",
        "Batches of decisions that were discarded because of a concurrent change.",
        "batch_refused",
        {},
    ),
)

_SUMS: Final = """
    SELECT cluster.name, counted.metric, LABELS_OF_THERE AS there, counted.bucket,
        sum(counted.count)::bigint, sum(round(counted.total::numeric, 6))
    FROM scheduler_metriccount AS counted JOIN accounts_cluster AS cluster ON cluster.id = counted.cluster_id
        QUEUES_OF_COUNTS
    GROUP BY 1, 2, 3, 4
""".replace("LABELS_OF_THERE", LABELS_OF_THERE).replace("QUEUES_OF_COUNTS", QUEUES_OF_COUNTS)


@dataclass(frozen=True, slots=True)
class Count:
    """A sum of stored counts. `seconds` is exact to the microsecond, whatever the order in which rows were summed: a
    counter that falls by a rounding error counts as a restart in Prometheus."""

    cluster: str
    labels: Sequence[str]
    bucket: int
    count: int
    seconds: Decimal


Counts = Mapping[str, Sequence[Count]]


def read_counts() -> Counts:
    """Read the stored counts by their metric, in one statement, so that a scrape never sees a half-finished merge."""
    counts: dict[str, list[Count]] = defaultdict(list)
    with connection.cursor() as cursor:
        cursor.execute(_SUMS)
        for cluster, metric, labels, bucket, count, seconds in cursor.fetchall():
            if labels is not None:
                counts[metric].append(Count(cluster, labels, bucket, count, seconds))
    return counts


def counted_families(counts: Counts) -> Iterator[Metric]:
    """Yield every counter and histogram."""
    for family in FAMILIES:
        rows = [row for row in counts.get(family.metric, ()) if _names_its_queue(family, row)]
        yield _histogram(family, rows) if family.bounds else _counter(family, rows)


def _names_its_queue(family: CountedFamily, row: Count) -> bool:
    return all(row.labels[index] for name, index in family.labels.items() if name in _NAMES_OF_QUEUES)


def _labels(family: CountedFamily, row: Count) -> tuple[str, ...]:
    return (row.cluster, *(row.labels[index] for index in family.labels.values()))


def _counter(family: CountedFamily, rows: Iterable[Count]) -> Metric:
    metric = CounterMetricFamily(family.name, family.documentation, labels=("cluster", *family.labels))
    sums: dict[tuple[str, ...], int] = defaultdict(int)
    for row in rows:
        sums[_labels(family, row)] += row.count
    for labels, count in sorted(sums.items()):
        metric.add_metric(labels, count)
    return metric


def _histogram(family: CountedFamily, rows: Iterable[Count]) -> Metric:
    metric = HistogramMetricFamily(family.name, family.documentation, labels=("cluster", *family.labels))
    sums: dict[tuple[str, ...], list[int]] = {}
    seconds: dict[tuple[str, ...], Decimal] = defaultdict(Decimal)
    for row in rows:
        labels = _labels(family, row)
        buckets = sums.setdefault(labels, [0] * (len(family.bounds) + 1))
        buckets[min(row.bucket, len(family.bounds))] += row.count
        seconds[labels] += row.seconds
    for labels, buckets in sorted(sums.items()):
        names = [*map(_bound, family.bounds), "+Inf"]
        metric.add_metric(labels, list(zip(names, accumulate(buckets), strict=True)), float(seconds[labels]))
    return metric


def _bound(bound: float) -> str:
    return f"{round(bound, 6):g}" if bound != int(bound) else str(int(bound))
