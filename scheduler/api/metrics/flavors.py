"""Gauges of flavors: the sums of their quotas, and the capacity of their nodes. They are kueueweb's own, because Kueue
has no metrics of nodes.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from accounts.models import Cluster
from queues.models import ResourceFlavor
from scheduler.store.flavor_capacities import capacities

_LABELS = ("cluster", "flavor", "resource")


def flavor_families() -> Iterator[Metric]:
    promised = GaugeMetricFamily("kueueweb_flavor_promised", "Sum of nominal quotas, base units.", labels=_LABELS)
    allocatable = GaugeMetricFamily("kueueweb_flavor_allocatable", "Capacity of its nodes, base units.", labels=_LABELS)
    exceeded = GaugeMetricFamily("kueueweb_flavor_exceeded", "1 while quotas exceed the capacity.", labels=_LABELS)
    for cluster in Cluster.objects.order_by("name"):
        found = capacities(cluster, list(ResourceFlavor.objects.filter(cluster=cluster).order_by("name")))
        for flavor, resources in found.items():
            for each in resources:
                labels = (cluster.name, flavor, each.resource)
                promised.add_metric(labels, each.promised)
                allocatable.add_metric(labels, each.allocatable)
                exceeded.add_metric(labels, int(each.is_exceeded))
    yield from (promised, allocatable, exceeded)
