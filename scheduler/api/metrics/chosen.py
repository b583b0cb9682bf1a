"""The metrics that the Configuration of a cluster chooses, and the labels that users add to them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import orjson
from django.db import connection
from prometheus_client.core import Metric
from prometheus_client.samples import Sample

from accounts.kinds.feature_gates import LOCAL_QUEUE_METRICS, METRIC_OF_CREATION, METRICS_OF_COHORTS, is_on
from accounts.kinds.metrics_settings import CustomLabel, SourceKind, custom_labels
from accounts.models import Cluster
from queues.models import ClusterQueue, Cohort, LocalQueue
from scheduling.model.selectors import LabelSelector

_LOCAL: Final = "kueue_local_queue_"
_COHORT: Final = "kueue_cohort_"
_OF_COHORTS: Final = (_COHORT, "kueue_cluster_queue_info")
_OF_CREATION: Final = "kueue_workload_creation_latency_seconds"
_OF_RESOURCES: Final = (
    "kueue_cluster_queue_resource_", "kueue_cluster_queue_nominal_quota", "kueue_cluster_queue_borrowing_limit",
    "kueue_cluster_queue_lending_limit",
)  # fmt: skip
_RUNNING: Final = ("kueue_admitted_active_workloads", "kueue_local_queue_admitted_active_workloads")
"""The families in which workloads' own labels make several series."""
_RUNNING_WORKLOADS: Final = """
    SELECT cluster_id, cluster_queue_name, namespace, queue_name, labels::text, annotations::text, count(*)
    FROM queues_workload
    WHERE status <> 'Finished' AND quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL
        AND cluster_id = ANY(%s) AND parent_name = ''
    GROUP BY 1, 2, 3, 4, 5, 6
"""

_Marks = tuple[Mapping[str, str], Mapping[str, str]]
"""The labels and the annotations of an object."""
_Source = tuple[SourceKind, str, str, str]
"""An object by its kind, cluster, namespace and name."""
_NO_MARKS: Final[_Marks] = ({}, {})


class ChosenMetrics:
    """Kueue's families as the Configurations request them, read once per scrape."""

    def __init__(self) -> None:
        clusters = list(Cluster.objects.all())
        self._clusters = {cluster.name: _Wanted(cluster.configuration) for cluster in clusters}
        self._local_queues = {
            (cluster, namespace, name): labels
            for cluster, namespace, name, labels in LocalQueue.objects.values_list(
                "cluster__name", "namespace", "name", "labels"
            )
        }
        labelled = [cluster for cluster in clusters if self._clusters[cluster.name].labels]
        self._marks = _marks(labelled)
        self._running = _running([each for each in labelled if self._clusters[each.name].of(SourceKind.WORKLOAD)])

    def shown(self, metric: Metric) -> Metric:
        """Return the family with the samples that are wanted, each with its labels."""
        if metric.name.startswith("kueue_"):
            metric.samples = [shown for sample in metric.samples for shown in self._samples(metric.name, sample)]
        return metric

    def _samples(self, family: str, sample: Sample) -> Iterator[Sample]:
        cluster = sample.labels.get("cluster", "")
        wanted = self._clusters.get(cluster)
        if wanted is None:
            yield sample
            return
        if not wanted.shows(family, self._local_queues.get(_place(sample)) if family.startswith(_LOCAL) else None):
            return
        if not wanted.labels:
            yield sample
            return
        source = _source(family, sample)
        own = {label.name: label.value(*self._marks.get(source, _NO_MARKS)) for label in wanted.of(source[0])}
        of_workloads = wanted.of(SourceKind.WORKLOAD)
        labelled = sample._replace(labels={**sample.labels, **own})
        if family in _RUNNING and of_workloads:
            yield from self._by_workload(labelled, source, of_workloads)
        else:
            yield labelled

    def _by_workload(self, sample: Sample, source: _Source, labels: Sequence[CustomLabel]) -> Iterator[Sample]:
        """Yield a series for each value that running workloads have."""
        counts: dict[tuple[str, ...], int] = defaultdict(int)
        for marks, count in self._running.get(source, ()):
            counts[tuple(label.value(*marks) for label in labels)] += count
        names = [label.name for label in labels]
        for values, count in sorted(counts.items()) or [(("",) * len(names), 0)]:
            own = dict(zip(names, values, strict=True))
            yield sample._replace(labels={**sample.labels, **own}, value=float(count))


class _Wanted:
    """The choice of metrics of one Configuration."""

    def __init__(self, configuration: Mapping[str, Any]) -> None:
        metrics = configuration.get("metrics") or {}
        chosen = metrics.get("localQueueMetrics")
        self._local = is_on(configuration, LOCAL_QUEUE_METRICS) and (chosen is None or chosen.get("enable") is True)
        selector = (chosen or {}).get("localQueueSelector")
        self._selector = None if selector is None else LabelSelector.from_manifest(selector)
        self._cohorts = is_on(configuration, METRICS_OF_COHORTS)
        self._creation = is_on(configuration, METRIC_OF_CREATION)
        self._resources = metrics.get("enableClusterQueueResources") is not False
        self.labels = tuple(custom_labels(configuration))

    def of(self, kind: SourceKind) -> tuple[CustomLabel, ...]:
        return tuple(label for label in self.labels if label.kind is kind)

    def shows(self, family: str, local_queue: Mapping[str, str] | None) -> bool:
        """Return whether a sample is wanted; `local_queue` are the labels of its LocalQueue, None without a
        LocalQueue."""
        if family.startswith(_LOCAL):
            return self._local and (
                self._selector is None or (local_queue is not None and self._selector.matches(local_queue))
            )
        if family.startswith(_OF_COHORTS):
            return self._cohorts
        if family.startswith(_OF_RESOURCES):
            return self._resources
        return self._creation or family != _OF_CREATION


def _place(sample: Sample) -> tuple[str, str, str]:
    labels = sample.labels
    return labels.get("cluster", ""), labels.get("namespace", ""), labels.get("name", "")


def _source(family: str, sample: Sample) -> _Source:
    """Return the object that a sample is about."""
    labels, cluster = sample.labels, sample.labels["cluster"]
    if family.startswith(_LOCAL):
        return SourceKind.LOCAL_QUEUE, *_place(sample)
    if family.startswith(_COHORT):
        return SourceKind.COHORT, cluster, "", labels.get("cohort", "")
    queue = labels.get("cluster_queue") or labels.get("preempting_cluster_queue", "")
    return SourceKind.CLUSTER_QUEUE, cluster, "", queue


def _marks(clusters: Sequence[Cluster]) -> dict[_Source, _Marks]:
    """Return the labels and annotations of queues and cohorts."""
    found: dict[_Source, _Marks] = {}
    if not clusters:
        return found
    fields = ("cluster__name", "name", "labels", "annotations")
    for kind, rows in (
        (SourceKind.CLUSTER_QUEUE, ClusterQueue.objects.filter(cluster__in=clusters)),
        (SourceKind.COHORT, Cohort.objects.filter(cluster__in=clusters)),
    ):
        for cluster, name, *marks in rows.values_list(*fields):
            found[kind, cluster, "", name] = (marks[0], marks[1])
    local_queues = LocalQueue.objects.filter(cluster__in=clusters)
    for namespace, cluster, name, *marks in local_queues.values_list("namespace", *fields):
        found[SourceKind.LOCAL_QUEUE, cluster, namespace, name] = (marks[0], marks[1])
    return found


def _running(clusters: Sequence[Cluster]) -> dict[_Source, list[tuple[_Marks, int]]]:
    """By queue: the labels and annotations of the workloads that run, and how many have them."""
    found: dict[_Source, list[tuple[_Marks, int]]] = defaultdict(list)
    if not clusters:
        return found
    names = {cluster.pk: cluster.name for cluster in clusters}
    with connection.cursor() as cursor:
        cursor.execute(_RUNNING_WORKLOADS, [list(names)])
        for pk, queue, namespace, local_queue, labelled, annotated, count in cursor.fetchall():
            marks = (orjson.loads(labelled), orjson.loads(annotated))
            found[SourceKind.CLUSTER_QUEUE, names[pk], "", queue].append((marks, count))
            found[SourceKind.LOCAL_QUEUE, names[pk], namespace, local_queue].append((marks, count))
    return found
