"""Gauges of the product itself: the leader, the backlog of each part, and the auditor's findings."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from django.db import connection
from django.utils import timezone
from prometheus_client.core import GaugeMetricFamily, Metric

from accounts.models import AuditFinding, Cluster
from foundation.heartbeat import role_health
from scheduler.live.published import leads
from scheduler.models import Lease

# In seconds: the age of the oldest note that no batch has read, and of the oldest decision that was not pushed.
_LAGS: Final = """
    SELECT cluster.name,
        coalesce((
            SELECT extract(epoch FROM now() - min(noted_at)) FROM scheduler_change WHERE cluster_id = cluster.id
        ), 0)::float8,
        coalesce((
            SELECT extract(epoch FROM now() - min(updated_at)) FROM queues_workload
            WHERE cluster_id = cluster.id AND push_sequence > pushed_sequence
        ), 0)::float8,
        (SELECT count(*) FROM queues_workload WHERE cluster_id = cluster.id AND push_sequence > pushed_sequence),
        (
            SELECT count(*) FROM queues_workload
            WHERE cluster_id = cluster.id AND push_error <> '' AND status <> 'Finished'
        )
    FROM accounts_cluster AS cluster ORDER BY cluster.name
"""


def engine_families() -> Iterator[Metric]:
    """Yield every gauge of the product itself."""
    yield from _leaders()
    yield from _roles()
    yield _audits()
    yield from _lags()


def _leaders() -> Iterator[Metric]:
    alive = GaugeMetricFamily("kueueweb_scheduler_leads", "1 while a scheduler leads.", labels=["cluster"])
    epochs = GaugeMetricFamily(
        "kueueweb_scheduler_epoch", "Increases with each change of the leader.", labels=["cluster"]
    )
    ages = GaugeMetricFamily(
        "kueueweb_scheduler_last_run_age_seconds",
        "Seconds since the scheduler's last successful run.",
        labels=["cluster"],
    )
    held_off = GaugeMetricFamily(
        "kueueweb_held_off",
        (
            "1 while a Kueue decides or another kueueweb pushes in the cluster, so that this installation "
            "writes nothing."
        ),
        labels=["cluster", "by"],
    )
    leases = {lease.cluster_id: lease for lease in Lease.objects.all()}
    for cluster in Cluster.objects.order_by("name"):
        lease = leases.get(cluster.pk)
        alive.add_metric([cluster.name], leads(lease))
        epochs.add_metric([cluster.name], lease.epoch if lease else 0)
        if lease is not None and lease.renewed_at is not None:
            ages.add_metric([cluster.name], (timezone.now() - lease.renewed_at).total_seconds())
        held_off.add_metric([cluster.name, "kueue"], cluster.kueue_is_alive)
        held_off.add_metric([cluster.name, "kueueweb"], bool(cluster.lease_holder))
    yield from (alive, epochs, ages, held_off)


def _roles() -> Iterator[Metric]:
    alive = GaugeMetricFamily(
        "kueueweb_role_alive", "1 while a process of the role sends heartbeats.", labels=["cluster", "role"]
    )
    clocks = GaugeMetricFamily(
        "kueueweb_role_clock_ahead_seconds",
        "How far the most wrong clock of a living process of the role is ahead of that of Redis; negative if behind.",
        labels=["cluster", "role"],
    )
    clusters = list(Cluster.objects.order_by("name").values_list("name", flat=True))
    for found in role_health(clusters, time.time()):
        # A process without a cluster serves all clusters.
        for cluster in [found.cluster] if found.cluster else clusters:
            alive.add_metric([cluster, found.role], found.alive)
            if found.clock_ahead_seconds is not None:
                clocks.add_metric([cluster, found.role], found.clock_ahead_seconds)
    yield from (alive, clocks)


def _audits() -> Metric:
    wrong = GaugeMetricFamily("kueueweb_audit_violations", "Violated accounting rules.", labels=["cluster", "check"])
    found = AuditFinding.objects.filter(confirmed=True).order_by().values_list("cluster__name", "check_name")
    for (cluster, check), count in sorted(Counter(found).items()):
        wrong.add_metric([cluster, check], count)
    return wrong


def _lags() -> Iterator[Metric]:
    names = {
        "kueueweb_queue_lag_seconds": "Age of the oldest change that the scheduler has not read yet.",
        "kueueweb_push_lag_seconds": "Age of the oldest decision that has not been written to the cluster yet.",
        "kueueweb_unpushed_workloads": "Workloads with a decision that has not been written to the cluster yet.",
        "kueueweb_push_errors": "Workloads whose last decision the cluster refused.",
    }
    families = [GaugeMetricFamily(name, text, labels=["cluster"]) for name, text in names.items()]
    with connection.cursor() as cursor:
        cursor.execute(_LAGS)
        for cluster, *values in cursor.fetchall():
            for family, value in zip(families, values, strict=True):
                family.add_metric([cluster], value)
    yield from families
