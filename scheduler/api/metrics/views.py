"""`/metrics` in Prometheus' text format. Kueue's and HAMi's labels, with `cluster` added.

It covers the whole installation: counts and rows are in the database, so any web process gives the same answer, and
Kueue's label `replica_role` is standalone.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Final

from django.conf import settings
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.registry import Collector
from prometheus_client.samples import Sample
from rest_framework.exceptions import PermissionDenied
from rest_framework.permissions import IsAuthenticated
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.services.access import access_of
from scheduler.api.metrics.chosen import ChosenMetrics
from scheduler.api.metrics.counts import counted_families, read_counts
from scheduler.api.metrics.devices import device_families
from scheduler.api.metrics.engine import engine_families
from scheduler.api.metrics.flavors import flavor_families
from scheduler.api.metrics.queues import queue_families, read_queue_facts

_REPLICA_ROLE: Final = {"replica_role": "standalone"}


class MetricsView(APIView):
    """`/metrics`, for users who may see everything: give Prometheus a token of scope `metrics`."""

    permission_classes = [IsAuthenticated]

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Return the current samples of all families."""
        if not access_of(request.user).reads_metrics:
            raise PermissionDenied("Metrics are for accounts that have a role in all namespaces.")
        registry = CollectorRegistry()
        registry.register(_Families())
        return HttpResponse(generate_latest(registry), content_type=CONTENT_TYPE_LATEST)


class _Families(Collector):
    def collect(self) -> Iterator[Metric]:
        counts, chosen = read_counts(), ChosenMetrics()
        families = (*counted_families(counts), *queue_families(read_queue_facts(counts)), _build_info())
        shown = (_with_role(chosen.shown(family)) for family in families)
        # Kueue's exporter does not name a family without samples.
        yield from (family for family in shown if family.samples or not family.name.startswith("kueue_"))
        yield from engine_families()
        yield from device_families()
        yield from flavor_families()


def _with_role(metric: Metric) -> Metric:
    if metric.name.startswith("kueue_"):
        metric.samples = [_sample(sample) for sample in metric.samples]
    return metric


def _sample(sample: Sample) -> Sample:
    return sample._replace(labels={**sample.labels, **_REPLICA_ROLE})


def _build_info() -> Metric:
    """Kueue's labels; it is no program of Go, and its version is the package's."""
    info = GaugeMetricFamily(
        "kueue_build_info",
        "1, with the version as labels.",
        labels=["git_version", "git_commit", "build_date", "go_version", "compiler", "platform"],
    )
    system = f"{platform.system().lower()}/{platform.machine()}"
    info.add_metric([settings.RELEASE, "", "", "", platform.python_implementation(), system], 1)
    return info
