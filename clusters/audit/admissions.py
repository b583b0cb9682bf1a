"""Rules on an admission's references: its ClusterQueue, its flavors, its slices, and its pushed decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from typing import Final

from accounts.models import Cluster
from clusters.audit.violations import Check, Violation, namespace_of, query


def _references(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for key, kind, name in query(
        """
        SELECT workload.namespace || '/' || workload.name, 'ClusterQueue', workload.cluster_queue_name
        FROM queues_workload AS workload
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
            AND NOT EXISTS (SELECT FROM queues_clusterqueue AS queue
                WHERE queue.cluster_id = workload.cluster_id AND queue.name = workload.cluster_queue_name)
        UNION
        SELECT workload.namespace || '/' || workload.name, 'ResourceFlavor', flavor.value
        FROM queues_workload AS workload JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id
        CROSS JOIN jsonb_each_text(pod_set.flavors) AS flavor
        WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
            AND NOT EXISTS (SELECT FROM queues_resourceflavor AS found
                WHERE found.cluster_id = workload.cluster_id AND found.name = flavor.value)
        ORDER BY 1, 2, 3
        """,
        [cluster.pk, cluster.pk],
    ):
        said = f"it holds quota of the {kind} {name!r}, which does not exist"
        yield Violation(Check.REFERENCES, f"{key} {kind}/{name}", said, namespace_of(key))


def _misplaced_slices(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, node, uuid, key, problem in query(
        """
        SELECT slice.id, node.name, slice.device_uuid, workload.namespace || '/' || workload.name, CASE
            WHEN slice.device_uuid <> device.uuid THEN 'is of the device ' || device.uuid
            WHEN device.node_id <> slice.node_id THEN 'is of a device of another node'
            WHEN node.cluster_id <> workload.cluster_id OR slice.cluster_id <> workload.cluster_id
                THEN 'is in another cluster'
            WHEN pod_set.id IS NULL THEN 'is of the pod set ' || slice.pod_set || ', which does not exist'
            WHEN pod_set.nodes ->> slice.replica <> node.name
                THEN 'is of a pod on ' || (pod_set.nodes ->> slice.replica)
            WHEN slice.replica >= jsonb_array_length(pod_set.nodes)
                THEN 'is of pod ' || slice.replica || ', which has no node'
            END
        FROM gpus_deviceallocation AS slice JOIN gpus_node AS node ON node.id = slice.node_id
        JOIN gpus_device AS device ON device.id = slice.device_id
        JOIN queues_workload AS workload ON workload.id = slice.workload_id
        LEFT JOIN queues_podset AS pod_set
            ON pod_set.workload_id = slice.workload_id AND pod_set.name = slice.pod_set
        WHERE slice.cluster_id = %s AND slice.source = 'decided'
            AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        ORDER BY slice.id
        """,
        [cluster.pk],
    ):
        if problem is not None:
            said = f"the slice of workload {key} {problem}"
            yield Violation(Check.SLICES, f"{node}/{uuid}#{pk}", said, namespace_of(key), node)


def _told_too_much(cluster: Cluster, now: datetime) -> Iterator[Violation]:
    for pk, key, ahead in query(
        """
        SELECT id, namespace || '/' || name, pushed_sequence - push_sequence FROM queues_workload
        WHERE cluster_id = %s AND pushed_sequence > push_sequence AND status <> 'Finished' ORDER BY id
        """,
        [cluster.pk],
    ):
        said = f"{ahead} more decisions have been pushed to the cluster than were made"
        yield Violation(Check.TOLD, key, said, namespace_of(key), key=pk)


RULES: Final[Sequence[Callable[[Cluster, datetime], Iterator[Violation]]]] = (
    _references, _misplaced_slices, _told_too_much,
)  # fmt: skip
