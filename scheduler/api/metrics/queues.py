"""Gauges of queues and cohorts, under Kueue's names: from the scheduler's numbers, and from rows where these suffice.

Amounts are in whole units (cpu in cores, memory in bytes). A limit that is not set is +Inf, and an infinite share is
NaN, as in Kueue.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import orjson
from django.db import connection
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from redis import RedisError

from accounts.models import Cluster
from foundation.redis_client import redis_client
from queues.models import LocalQueue
from queues.services.admission_rows import CHARGED_USAGE
from scheduler.api.metrics.counts import Counts
from scheduler.api.queue_status import Numbers, local_queue_reason, read_numbers
from scheduler.live.gauges import gauges_key
from scheduling.model.vocabulary import ClusterQueueReason, LocalQueueReason

_WORKLOADS: Final = """
    SELECT cluster.name, workload.cluster_queue_name, workload.namespace, workload.queue_name,
        count(*) FILTER (WHERE status = 'Finished'),
        count(*) FILTER (WHERE status <> 'Finished' AND quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE status <> 'Finished' AND quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload AS workload JOIN accounts_cluster AS cluster ON cluster.id = workload.cluster_id
    WHERE workload.parent_name = ''
    GROUP BY 1, 2, 3, 4
"""
_UNADMITTED: Final = """
    SELECT cluster.name, workload.cluster_queue_name, workload.namespace, workload.queue_name, workload.reason, count(*)
    FROM queues_workload AS workload JOIN accounts_cluster AS cluster ON cluster.id = workload.cluster_id
    WHERE workload.status <> 'Finished' AND (workload.quota_reserved_at IS NULL OR workload.admitted_at IS NULL)
        AND workload.parent_name = ''
    GROUP BY 1, 2, 3, 4, 5
"""
_HELD: Final = """
    SELECT cluster.name, workload.cluster_queue_name, workload.namespace, workload.queue_name,
        pod_set.flavors ->> usage.key, usage.key, sum(CHARGED_USAGE)::bigint,
        coalesce(sum(CHARGED_USAGE) FILTER (WHERE workload.admitted_at IS NOT NULL), 0)::bigint
    FROM queues_workload AS workload
        JOIN accounts_cluster AS cluster ON cluster.id = workload.cluster_id
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3, 4, 5, 6
""".replace("CHARGED_USAGE", CHARGED_USAGE)
_WAITING: Final = """
    SELECT cluster.name, workload.cluster_queue_name, request.key, sum(request.value::numeric * pod_set.count)
    FROM queues_workload AS workload
        JOIN accounts_cluster AS cluster ON cluster.id = workload.cluster_id
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.requests) AS request
    WHERE workload.status <> 'Finished' AND workload.quota_reserved_at IS NULL AND workload.active
        AND workload.parent_name = ''
    GROUP BY 1, 2, 3
"""

_Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The input of the gauges of queues, read once per scrape."""

    numbers: Mapping[str, Numbers]
    gauges: Mapping[str, Mapping[str, Any]]
    """Cluster -> the leader's counts (`scheduler.live.gauges`); absent without a leader."""
    local_queues: Sequence[LocalQueue]
    counts: Counts
    workloads: _Rows = field(default=())
    unadmitted: _Rows = field(default=())
    held: _Rows = field(default=())
    waiting: _Rows = field(default=())


def read_queue_facts(counts: Counts) -> QueueFacts:
    """Read the numbers of every cluster now."""
    clusters = list(Cluster.objects.all())
    numbers = {cluster.name: read_numbers(cluster) for cluster in clusters}
    with connection.cursor() as cursor:
        rows = []
        for statement in (_WORKLOADS, _UNADMITTED, _HELD, _WAITING):
            cursor.execute(statement)
            rows.append(cursor.fetchall())
    local_queues = list(LocalQueue.objects.select_related("cluster").order_by("cluster", "namespace", "name"))
    return QueueFacts(numbers, _leaders_gauges(numbers), local_queues, counts, *rows)


def _leaders_gauges(numbers: Mapping[str, Numbers]) -> dict[str, Mapping[str, Any]]:
    live = [cluster for cluster, found in numbers.items() if found.source == "live"]
    if not live:
        return {}
    try:
        kept = redis_client().mget([gauges_key(cluster) for cluster in live])
    except RedisError:
        return {}
    return {cluster: orjson.loads(each) for cluster, each in zip(live, kept, strict=True) if each is not None}


def queue_families(facts: QueueFacts) -> Iterator[Metric]:
    """Yield every gauge of queues and cohorts."""
    yield from _pending(facts)
    yield from _workload_gauges(facts)
    yield from _unadmitted(facts)
    yield from _statuses(facts)
    yield from _cells(facts)
    yield from _held(facts)
    yield from _cohorts(facts)
    yield from _hierarchy(facts)


def _gauge(name: str, documentation: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, documentation, labels=("cluster", *labels))


def _entries(facts: QueueFacts, part: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for cluster, found in facts.numbers.items():
        for name, entry in getattr(found, part).items():
            yield cluster, name, entry


def _pending(facts: QueueFacts) -> Iterator[Metric]:
    pending = _gauge("kueue_pending_workloads", "Workloads that wait.", "cluster_queue", "status")
    for cluster, name, entry in _entries(facts, "cluster_queues"):
        pending.add_metric([cluster, name, "active"], entry["pending"])
        pending.add_metric([cluster, name, "inadmissible"], entry["inadmissible"])
    yield pending
    hashes = _gauge(
        "kueue_pending_scheduling_hashes",
        "Scheduling equivalence classes of pending workloads.",
        "cluster_queue",
        "status",
    )
    for cluster, queue, counted in _of_there(facts, "hashes"):
        for status, count in zip(("active", "inadmissible"), counted, strict=True):
            hashes.add_metric([cluster, queue, status], count)
    yield hashes
    yield _waiting_in_local_queues(facts)
    yield _past_usage(facts)
    yield _preemption_skips(facts)


def _waiting_in_local_queues(facts: QueueFacts) -> Metric:
    """Count pending workloads as the leader does: 0 in a LocalQueue whose ClusterQueue does not exist."""
    family = _gauge("kueue_local_queue_pending_workloads", "Workloads that wait.", "name", "namespace", "status")
    counts: dict[tuple[str, str], Sequence[int]] = {
        (row.cluster.name, row.key): (0, 0) for row in facts.local_queues if row.cluster.name in facts.gauges
    }
    for cluster, found in facts.gauges.items():
        for by_local_queue in found["local_queues"].values():
            counts |= {(cluster, key): counted for key, counted in by_local_queue.items()}
    for (cluster, key), counted in counts.items():
        namespace, _, name = key.partition("/")
        for status, count in zip(("active", "inadmissible"), counted, strict=True):
            family.add_metric([cluster, name, namespace, status], count)
    return family


def _past_usage(facts: QueueFacts) -> Metric:
    family = _gauge(
        "kueue_local_queue_admission_fair_sharing_usage",
        "Past usage, which orders the LocalQueue.",
        "name",
        "namespace",
        "cluster_queue",
    )
    led_to = {(row.cluster.name, row.key): row.cluster_queue_name for row in facts.local_queues}
    for cluster, found in facts.gauges.items():
        for key, value in found["fair_sharing"].items():
            namespace, _, name = key.partition("/")
            labels = [cluster, name, namespace, led_to.get((cluster, key), "")]
            # JSON has no infinity, the share of a queue of weight 0.
            family.add_metric(labels, math.nan if value is None else value)
    return family


def _preemption_skips(facts: QueueFacts) -> Metric:
    family = _gauge(
        "kueue_admission_cycle_preemption_skips",
        (
            "Preemptions that the last cycle with any skipped, because another workload had taken the "
            "victims or the quota."
        ),
        "cluster_queue",
    )
    for cluster, queue, count in _of_there(facts, "preemption_skips"):
        family.add_metric([cluster, queue], count)
    return family


def _of_there(facts: QueueFacts, part: str) -> Iterator[tuple[str, str, Any]]:
    """Yield a part of the leader's gauges, without ClusterQueues that have been deleted since."""
    for cluster, found in facts.gauges.items():
        there = facts.numbers[cluster].cluster_queues
        yield from ((cluster, queue, value) for queue, value in found[part].items() if queue in there)


def _workload_gauges(facts: QueueFacts) -> Iterator[Metric]:
    families = (
        (
            "kueue_finished_workloads",
            "kueue_local_queue_finished_workloads",
            "Finished workloads that have not been deleted.",
        ),
        (
            "kueue_reserving_active_workloads",
            "kueue_local_queue_reserving_active_workloads",
            "Workloads that hold quota.",
        ),
        ("kueue_admitted_active_workloads", "kueue_local_queue_admitted_active_workloads", "Workloads that run."),
    )
    there = {(cluster, name) for cluster, name, _ in _entries(facts, "cluster_queues")}
    known = [
        (row.cluster.name, row.namespace, row.name)
        for row in facts.local_queues
        if (row.cluster.name, row.cluster_queue_name) in there
    ]
    for position, (name, local_name, text) in enumerate(families):
        by_queue: Counter[tuple[str, str]] = Counter()
        by_local_queue: Counter[tuple[str, str, str]] = Counter(dict.fromkeys(known, 0))
        for cluster, queue, namespace, local_queue, *numbers in facts.workloads:
            by_queue[cluster, queue] += numbers[position]
            if (cluster, queue) in there or name == "kueue_finished_workloads":
                by_local_queue[cluster, namespace, local_queue] += numbers[position]
        family = _gauge(name, text, "cluster_queue")
        for cluster, queue, _ in _entries(facts, "cluster_queues"):
            family.add_metric([cluster, queue], by_queue[cluster, queue])
        yield family
        family = _gauge(local_name, text, "name", "namespace")
        for (cluster, namespace, local_queue), count in sorted(by_local_queue.items()):
            family.add_metric([cluster, local_queue, namespace], count)
        yield family


def _unadmitted(facts: QueueFacts) -> Iterator[Metric]:
    text = "Workloads that are not admitted, by reason."
    queues = _gauge("kueue_unadmitted_workloads", text, "cluster_queue", "reason", "underlying_cause")
    local = _gauge(
        "kueue_local_queue_unadmitted_workloads",
        text,
        "name",
        "namespace",
        "cluster_queue",
        "reason",
        "underlying_cause",
    )
    sums: Counter[tuple[str, ...]] = Counter()
    for cluster, queue, namespace, local_queue, reason, count in facts.unadmitted:
        if queue and queue not in facts.numbers[cluster].cluster_queues:
            continue
        sums[cluster, queue, reason, ""] += count
        local.add_metric([cluster, local_queue, namespace, queue, reason, ""], count)
    for labels, count in sorted(sums.items()):
        queues.add_metric(labels, count)
    yield from (queues, local)


def _statuses(facts: QueueFacts) -> Iterator[Metric]:
    queues = _gauge("kueue_cluster_queue_status", "1 for the present status.", "cluster_queue", "status")
    for cluster, name, entry in _entries(facts, "cluster_queues"):
        terminating = entry["reason"] == ClusterQueueReason.TERMINATING
        status = "terminating" if terminating else "active" if entry["active"] else "pending"
        for each in ("pending", "active", "terminating"):
            queues.add_metric([cluster, name, each], each == status)
    local = _gauge("kueue_local_queue_status", "1 for the present activity.", "name", "namespace", "active")
    for row in facts.local_queues:
        reason = local_queue_reason(row, facts.numbers[row.cluster.name])[1]
        for each, is_so in (("True", True), ("False", False), ("Unknown", None)):
            active = reason == LocalQueueReason.READY
            local.add_metric([row.cluster.name, row.name, row.namespace, each], active is is_so)
    yield from (queues, local)


def _cells(facts: QueueFacts) -> Iterator[Metric]:
    labels = ("cohort", "cluster_queue", "flavor", "resource")
    families = {
        "used": _gauge("kueue_cluster_queue_resource_reservation", "Reserved quota.", *labels),
        "nominal": _gauge("kueue_cluster_queue_nominal_quota", "The queue's own quota.", *labels),
        "borrowing_limit": _gauge("kueue_cluster_queue_borrowing_limit", "Its borrowing limit.", *labels),
        "lending_limit": _gauge("kueue_cluster_queue_lending_limit", "Its lending limit.", *labels),
    }
    share = _gauge(
        "kueue_cluster_queue_weighted_share", "Dominant resource share over its weight.", "cluster_queue", "cohort"
    )
    for cluster, name, entry in _entries(facts, "cluster_queues"):
        share.add_metric([cluster, name, entry["cohort"]], _share(entry["weighted_share"]))
        for cell in entry["usage"]:
            values = [cluster, entry["cohort"], name, cell["flavor"], cell["resource"]]
            for part, family in families.items():
                family.add_metric(values, _units(cell["resource"], cell[part]))
    for cluster, found in facts.gauges.items():
        # Kueue never clears this family.
        for name in found["gone"]:
            if name not in facts.numbers[cluster].cluster_queues:
                share.add_metric([cluster, name, ""], 0.0)
    yield share
    yield from families.values()


def _held(facts: QueueFacts) -> Iterator[Metric]:
    usage = _gauge(
        "kueue_cluster_queue_resource_usage",
        "Usage of admitted workloads.",
        *("cohort", "cluster_queue", "flavor", "resource"),
    )
    pending = _gauge(
        "kueue_cluster_queue_resource_pending", "Requests of pending workloads.", "cluster_queue", "resource"
    )
    labels = ("name", "namespace", "flavor", "resource")
    local_held = _gauge("kueue_local_queue_resource_reservation", "Reserved quota.", *labels)
    local_used = _gauge("kueue_local_queue_resource_usage", "Usage of admitted workloads.", *labels)
    sums: Counter[tuple[str, ...]] = Counter()
    waiting: Counter[tuple[str, ...]] = Counter()
    local: dict[tuple[str, ...], tuple[int, int]] = _unused(facts)
    for cluster, queue, namespace, local_queue, flavor, resource, held, used in facts.held:
        sums[cluster, queue, flavor, resource] += used
        before = local.get((cluster, local_queue, namespace, flavor, resource), (0, 0))
        local[cluster, local_queue, namespace, flavor, resource] = (before[0] + held, before[1] + used)
    for cluster, name, entry in _entries(facts, "cluster_queues"):
        for cell in entry["usage"]:
            used = sums[cluster, name, cell["flavor"], cell["resource"]]
            values = [cluster, entry["cohort"], name, cell["flavor"], cell["resource"]]
            usage.add_metric(values, _units(cell["resource"], used))
            waiting[cluster, name, cell["resource"]] += 0
    for cluster, queue, resource, amount in facts.waiting:
        if queue and queue not in facts.numbers[cluster].cluster_queues:
            continue
        waiting[cluster, queue, resource] += int(amount)
    for key, amount in sorted(waiting.items()):
        pending.add_metric(key, _units(key[-1], amount))
    for key, (held, used) in sorted(local.items()):
        local_held.add_metric(key, _units(key[-1], held))
        local_used.add_metric(key, _units(key[-1], used))
    yield from (usage, pending, local_held, local_used)


def _unused(facts: QueueFacts) -> dict[tuple[str, ...], tuple[int, int]]:
    """Return the cells of each LocalQueue, which has a number from its first moment."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for row in facts.local_queues:
        cluster = row.cluster.name
        entry = facts.numbers[cluster].cluster_queues.get(row.cluster_queue_name) or {"usage": ()}
        for cell in entry["usage"]:
            found[cluster, row.name, row.namespace, cell["flavor"], cell["resource"]] = (0, 0)
    return found


def _cohorts(facts: QueueFacts) -> Iterator[Metric]:
    labels = ("cohort", "flavor", "resource")
    share = _gauge("kueue_cohort_weighted_share", "Dominant resource share over its weight.", "cohort")
    quota = _gauge("kueue_cohort_subtree_quota", "Quota of the whole subtree.", *labels)
    held = _gauge("kueue_cohort_subtree_resource_reservations", "Usage of the whole subtree.", *labels)
    for cluster, name, entry in _entries(facts, "cohorts"):
        share.add_metric([cluster, name], _share(entry["weighted_share"]))
        for cell in entry["usage"]:
            values = [cluster, name, cell["flavor"], cell["resource"]]
            quota.add_metric(values, _units(cell["resource"], cell["subtree_quota"]))
            held.add_metric(values, _units(cell["resource"], cell["used"]))
    yield from (share, quota, held)


def _hierarchy(facts: QueueFacts) -> Iterator[Metric]:
    """Yield the cohort tree, and the sums over it. Counts of a queue move with it to another cohort."""
    cohort_info = _gauge(
        "kueue_cohort_info", "1; relates a cohort to its ancestors.", "cohort", "parent_cohort", "root_cohort"
    )
    queue_info = _gauge(
        "kueue_cluster_queue_info",
        "1; relates a queue to its cohorts.",
        "cluster_queue",
        "parent_cohort",
        "root_cohort",
    )
    active = _gauge("kueue_cohort_subtree_admitted_active_workloads", "Workloads that run in the subtree.", "cohort")
    above: dict[tuple[str, str], tuple[str, ...]] = {}
    running: Counter[tuple[str, str]] = Counter()
    for cluster, name, entry in _entries(facts, "cohorts"):
        path = _path(facts.numbers[cluster].cohorts, name)
        running[cluster, name] += 0
        cohort_info.add_metric([cluster, name, entry["parent"], path[-1]], 1)
    for cluster, name, entry in _entries(facts, "cluster_queues"):
        path = _path(facts.numbers[cluster].cohorts, entry["cohort"])
        above[cluster, name] = path
        queue_info.add_metric([cluster, name, entry["cohort"], path[-1] if path else ""], 1)
        for cohort in path:
            running[cluster, cohort] += entry["admitted"]
    for labels, count in sorted(running.items()):
        active.add_metric(labels, count)
    yield from (cohort_info, queue_info, active, _cohort_admissions(facts, above))


def _path(cohorts: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the cohort and its ancestors, the nearest first. Of a cycle, which admits nothing, each cohort is listed
    once."""
    path: list[str] = []
    while name and name not in path:
        path.append(name)
        name = cohorts[name]["parent"] if name in cohorts else ""
    return tuple(path)


def _cohort_admissions(facts: QueueFacts, above: Mapping[tuple[str, str], Sequence[str]]) -> Metric:
    family = CounterMetricFamily(
        "kueue_cohort_subtree_admitted_workloads_total",
        "Admissions below.",
        labels=("cluster", "cohort", "priority_class"),
    )
    sums: Counter[tuple[str, str, str]] = Counter()
    for row in facts.counts.get("admitted", ()):
        for cohort in above.get((row.cluster, row.labels[0]), ()):
            sums[row.cluster, cohort, row.labels[3]] += row.count
    for labels, count in sorted(sums.items()):
        family.add_metric(labels, count)
    return family


def _share(share: float | str) -> float:
    return math.nan if share == "Infinity" else float(share)


def _units(resource: str, amount: int | None) -> float:
    if amount is None:
        return math.inf
    return amount / 1000 if resource == "cpu" else float(amount)
