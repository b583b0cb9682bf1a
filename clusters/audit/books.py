"""Rules on rows alone: quota, counters, slices, nodes, and pushed decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from accounts.models import Cluster
from clusters.audit.violations import Check, Violation, namespace_of, query
from gpus.services.counters import miscounts
from gpus.vendors import VENDORS
from scheduling.devices.requests.requests import device_resource_names
from scheduling.model.quantity import format_amount

_DEVICES: Final = device_resource_names(VENDORS)
_PATIENCE: Final = timedelta(seconds=60)
"""The age from which an unfinished step counts as stuck."""


def _quota(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """Usage is the sum over pod sets of workloads that hold quota: each of them is charged, and no other is."""
    for key, pod_set, reserved, charged in query(
        """
        SELECT workload.namespace || '/' || workload.name, pod_set.name, workload.quota_reserved_at IS NOT NULL,
            pod_set.admitted_count IS NOT NULL
        FROM queues_podset AS pod_set JOIN queues_workload AS workload ON workload.id = pod_set.workload_id
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished'
            AND ((workload.quota_reserved_at IS NOT NULL) <> (pod_set.admitted_count IS NOT NULL)
                OR workload.quota_reserved_at IS NOT NULL
                    AND NOT workload.has_variants
                    AND pod_set.flavors <> '{}' AND pod_set.resource_usage = '{}' AND pod_set.admitted_count > 0)
        ORDER BY workload.id, pod_set.position
        """,
        [cluster.pk],
    ):
        said = "holds quota" if reserved else "holds no quota"
        has = "is charged" if charged else "is charged nothing"
        yield Violation(
            Check.QUOTA, f"{key}/{pod_set}", f"the workload {said}, but its pod set {has}", namespace_of(key)
        )


def _counters(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for miscount in miscounts(cluster.pk):
        subject = f"{miscount.node}/{miscount.uuid}"
        yield Violation(Check.COUNTERS, subject, miscount.message, node=miscount.node, key=miscount.device_id)


def _slices(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, node, uuid, key, status in query(
        """
        SELECT slice.id, node.name, slice.device_uuid, workload.namespace || '/' || workload.name, workload.status
        FROM gpus_deviceallocation AS slice JOIN gpus_node AS node ON node.id = slice.node_id
        JOIN queues_workload AS workload ON workload.id = slice.workload_id
        WHERE slice.cluster_id = %s AND slice.source = 'decided' AND workload.updated_at < %s
            AND (workload.status = 'Finished' OR workload.quota_reserved_at IS NULL)
        ORDER BY slice.id
        """,
        [cluster.pk, now - _PATIENCE],
    ):
        said = f"a slice of {uuid} is held for workload {key}, which is {status} and holds no quota"
        yield Violation(Check.SLICES, f"{node}/{uuid}#{pk}", said, namespace_of(key), node, pk)


def _nodes(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """`_counters` checks devices. Foreign usage, and later usage, is not counted here."""
    for name, resource, held, allocatable in query(
        """
        WITH placed AS (
            SELECT place.node, pod_set.requests || '{"pods": 1}' AS requests, count(*) AS pods
            FROM queues_workload AS workload JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id
            CROSS JOIN jsonb_array_elements_text(pod_set.nodes) AS place(node)
            WHERE workload.cluster_id = %s AND workload.status <> 'Finished'
                AND workload.quota_reserved_at IS NOT NULL AND place.node IS NOT NULL
            GROUP BY place.node, pod_set.requests
        ), held AS (
            SELECT placed.node, request.key AS resource, sum(placed.pods * request.value::numeric) AS amount
            FROM placed CROSS JOIN jsonb_each_text(placed.requests) AS request
            WHERE request.key <> ALL(%s) GROUP BY placed.node, request.key
        )
        SELECT node.name, held.resource, held.amount, (node.allocatable ->> held.resource)::numeric
        FROM held JOIN gpus_node AS node ON node.cluster_id = %s AND node.name = held.node
        WHERE held.amount > (node.allocatable ->> held.resource)::numeric
        ORDER BY node.name, held.resource
        """,
        [cluster.pk, sorted(_DEVICES), cluster.pk],
    ):
        amounts = f"{format_amount(resource, int(held))} of {format_amount(resource, int(allocatable))}"
        yield Violation(Check.NODES, f"{name}/{resource}", f"{amounts} {resource} are allocated to pods", node=name)


def _told(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    """Find decisions that were not pushed. The subject names the last pushed decision, so a new decision is another
    finding."""
    for pk, key, pushed, missing in query(
        """
        SELECT id, namespace || '/' || name, pushed_sequence, push_sequence - pushed_sequence FROM queues_workload
        WHERE cluster_id = %s AND push_sequence > pushed_sequence AND job_id IS NOT NULL AND updated_at < %s
            AND (push_retry_at IS NULL OR push_retry_at < %s)
        ORDER BY id
        """,
        [cluster.pk, now - _PATIENCE, now - _PATIENCE],
    ):
        said = f"{missing} decisions have not been pushed to the cluster"
        yield Violation(Check.TOLD, f"{key}#{pushed}", said, namespace_of(key), key=pk)


def _ending(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, key, job in query(
        """
        SELECT workload.id, workload.namespace || '/' || workload.name, job.kind || ' ' || job.name
        FROM queues_workload AS workload JOIN queues_job AS job ON job.id = workload.job_id
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
            AND workload.deletion_requested_at IS NULL AND job.deletion_requested_at < %s
            AND job.kind <> 'PodGroup' AND NOT EXISTS (SELECT FROM queues_pod AS pod
                WHERE pod.workload_id = workload.id AND pod.phase NOT IN ('Succeeded', 'Failed'))
        ORDER BY workload.id
        """,
        [cluster.pk, now - _PATIENCE],
    ):
        yield Violation(Check.ENDING, key, f"it holds quota, but its {job} was withdrawn", namespace_of(key), key=pk)


RULES: Final[Sequence[Callable[[Cluster, datetime], Iterator[Violation]]]] = (
    _quota, _counters, _slices, _nodes, _told, _ending,
)  # fmt: skip
