"""/metrics in Prometheus' text format: Kueue's names where Kueue has them, with the label `cluster` added.

Amounts are in whole units (cpu in cores, memory in bytes). A limit that is not set is +Inf, as in Kueue.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.db.models import F, QuerySet, Sum
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.models import AuditFinding, Cluster
from accounts.services.access import access_of
from gpus.models import Device
from scheduler.api.queue_status import Numbers, leads, read_numbers
from scheduler.models import Lease

_QUEUE: Final = ("cluster", "cluster_queue")
_CELL: Final = ("cluster", "cohort", "cluster_queue", "flavor", "resource")
_COHORT_CELL: Final = ("cluster", "cohort", "flavor", "resource")
_DEVICES: Final = ("cluster", "node", "type")


class MetricsView(APIView):
    """`/metrics`, for who may see everything: give Prometheus a token of an account with a role in all namespaces."""

    permission_classes = [IsAuthenticated]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """The gauges as they are now."""
        if not access_of(request.user).sees_everything:
            raise PermissionDenied("Metrics are for accounts that have a role in all namespaces.")
        registry = CollectorRegistry()
        registry.register(_Gauges())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Gauges(Collector):
    def collect(self) -> Iterator[Metric]:
        """One family after the other."""
        numbers = {cluster.name: read_numbers(cluster) for cluster in Cluster.objects.all()}
        yield from _schedulers()
        yield from _audits()
        yield from _queues(numbers)
        yield from _cells(numbers)
        yield from _cohorts(numbers)
        yield from _devices()


def _schedulers() -> Iterator[Metric]:
    alive = GaugeMetricFamily("kueueweb_scheduler_leads", "1 while a scheduler leads.", labels=["cluster"])
    leases = {lease.cluster_id: lease for lease in Lease.objects.all()}
    for cluster in Cluster.objects.all():
        alive.add_metric([cluster.name], float(leads(leases.get(cluster.pk))))
    yield alive


def _audits() -> Iterator[Metric]:
    wrong = GaugeMetricFamily(
        "kueueweb_audit_violations", "Rules of the books that do not hold.", labels=["cluster", "check"]
    )
    found = AuditFinding.objects.filter(confirmed=True).order_by().values_list("cluster__name", "check_name")
    for (cluster, check), count in sorted(Counter(found).items()):
        wrong.add_metric([cluster, check], count)
    yield wrong


def _queues(numbers: Mapping[str, Numbers]) -> Iterator[Metric]:
    pending = GaugeMetricFamily("kueue_pending_workloads", "Workloads that wait.", labels=[*_QUEUE, "status"])
    reserving = GaugeMetricFamily("kueue_reserving_active_workloads", "Workloads that hold quota.", labels=_QUEUE)
    admitted = GaugeMetricFamily("kueue_admitted_active_workloads", "Workloads that run.", labels=_QUEUE)
    share = GaugeMetricFamily("kueue_cluster_queue_weighted_share", "Dominant resource share.", labels=_QUEUE)
    for cluster, name, entry in _entries(numbers, "cluster_queues"):
        pending.add_metric([cluster, name, "active"], entry["pending"])
        pending.add_metric([cluster, name, "inadmissible"], entry["inadmissible"])
        reserving.add_metric([cluster, name], entry["reserving"])
        admitted.add_metric([cluster, name], entry["admitted"])
        share.add_metric([cluster, name], float(entry["weighted_share"]))
    yield from (pending, reserving, admitted, share)


def _cells(numbers: Mapping[str, Numbers]) -> Iterator[Metric]:
    families = {
        "used": GaugeMetricFamily("kueue_cluster_queue_resource_reservation", "Quota that is held.", labels=_CELL),
        "nominal": GaugeMetricFamily("kueue_cluster_queue_nominal_quota", "Quota of its own.", labels=_CELL),
        "borrowing_limit": GaugeMetricFamily("kueue_cluster_queue_borrowing_limit", "May borrow.", labels=_CELL),
        "lending_limit": GaugeMetricFamily("kueue_cluster_queue_lending_limit", "May lend.", labels=_CELL),
    }
    for cluster, name, entry in _entries(numbers, "cluster_queues"):
        for cell in entry["usage"]:
            labels = [cluster, entry["cohort"], name, cell["flavor"], cell["resource"]]
            for field, family in families.items():
                family.add_metric(labels, _units(cell["resource"], cell[field]))
    yield from families.values()


def _cohorts(numbers: Mapping[str, Numbers]) -> Iterator[Metric]:
    share = GaugeMetricFamily("kueue_cohort_weighted_share", "Dominant resource share.", labels=["cluster", "cohort"])
    quota = GaugeMetricFamily("kueue_cohort_subtree_quota", "Quota of all below.", labels=_COHORT_CELL)
    held = GaugeMetricFamily("kueue_cohort_subtree_resource_reservations", "Held below.", labels=_COHORT_CELL)
    for cluster, name, entry in _entries(numbers, "cohorts"):
        share.add_metric([cluster, name], float(entry["weighted_share"]))
        for cell in entry["usage"]:
            labels = [cluster, name, cell["flavor"], cell["resource"]]
            quota.add_metric(labels, _units(cell["resource"], cell["subtree_quota"]))
            held.add_metric(labels, _units(cell["resource"], cell["used"]))
    yield from (share, quota, held)


def _devices() -> Iterator[Metric]:
    amounts = {"slots": "Slices.", "memory_mib": "Memory in MiB.", "cores_percent": "Cores in percent."}
    sums = {f"total_{amount}": Sum(amount) for amount in amounts}
    sums |= {f"total_used_{amount}": Sum(F(f"used_{amount}") + F(f"external_{amount}")) for amount in amounts}
    rows: QuerySet[Any, Any] = Device.objects.order_by().values("node__cluster__name", "node__name", "type")
    grouped = list(rows.annotate(**sums))
    for amount, text in amounts.items():
        for prefix, words in (("", "There is."), ("used_", "Is held.")):
            family = GaugeMetricFamily(f"kueueweb_device_{prefix}{amount}", f"{text} {words}", labels=_DEVICES)
            for row in grouped:
                labels = [row["node__cluster__name"], row["node__name"], row["type"]]
                family.add_metric(labels, row[f"total_{prefix}{amount}"])
            yield family


def _entries(numbers: Mapping[str, Numbers], part: str) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for cluster, found in numbers.items():
        for name, entry in getattr(found, part).items():
            yield cluster, name, entry


def _units(resource: str, amount: int | None) -> float:
    if amount is None:
        return math.inf
    return amount / 1000 if resource == "cpu" else float(amount)
