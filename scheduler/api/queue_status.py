"""The numbers of queues and cohorts: the scheduler's own while it lives, else computed from rows by the same core."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from accounts.models import Cluster
from queues.models import LocalQueue
from scheduler.live.published import read_published
from scheduler.live.publisher import cluster_queue_numbers, cohort_numbers
from scheduler.store import objects
from scheduler.store.configuration import read_configuration
from scheduling.model.vocabulary import ConditionStatus, ConditionType, LocalQueueReason, StopPolicy
from scheduling.model.workload import Admission, Condition, PodSet, PodSetAssignment, Workload
from scheduling.world import World

_USAGE: Final = """
    SELECT workload.cluster_queue_name, pod_set.flavors ->> usage.key, usage.key, sum(usage.value::numeric)::bigint
    FROM queues_workload AS workload
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.cluster_id = %s AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3
"""
_COUNTS: Final = """
    SELECT cluster_queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL AND active),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished' GROUP BY 1
"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Entries by name, as the live stream has them. `source` is `live`, or `rows` while no scheduler leads; `time` is
    when they were taken."""

    source: str
    time: datetime | str
    cluster_queues: Mapping[str, Any] = field(default_factory=dict)
    cohorts: Mapping[str, Any] = field(default_factory=dict)


def read_numbers(cluster: Cluster) -> Numbers:
    """The numbers of a cluster now."""
    return _live(cluster) or _computed(cluster)


def _live(cluster: Cluster) -> Numbers | None:
    published = read_published(cluster)
    if published is None:
        return None
    return Numbers("live", published.time, published.data["cluster_queues"], published.data["cohorts"])


def _computed(cluster: Cluster) -> Numbers:
    world = World(read_configuration(cluster.configuration))
    for flavor in objects.read_objects("resourceflavor", cluster.pk).values():
        world.set_resource_flavor(flavor)
    for topology in objects.read_objects("topology", cluster.pk).values():
        world.set_topology(topology)
    for check in objects.read_objects("admissioncheck", cluster.pk).values():
        world.set_admission_check(check)
    for cohort in objects.read_objects("cohort", cluster.pk).values():
        world.set_cohort(cohort)
    for queue in objects.read_objects("clusterqueue", cluster.pk).values():
        world.set_cluster_queue(queue)
    for workload in _usage(cluster):
        world.set_workload(workload, 0.0)
    counts = _counts(cluster)
    queues = {
        name: cluster_queue_numbers(world.cluster_queue_status(name)) | counts.get(name, _NO_WORKLOADS)
        for name in world.cluster_queue_names()
    }
    cohorts = {name: cohort_numbers(world.cohort_status(name)) for name in world.cohort_names()}
    return Numbers("rows", timezone.now(), queues, cohorts)


def _usage(cluster: Cluster) -> list[Workload]:
    """All that is charged to each ClusterQueue, as one workload that holds it."""
    held: dict[str, dict[str, dict[str, int]]] = defaultdict(lambda: defaultdict(dict))
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, [cluster.pk])
        for queue, flavor, resource, amount in cursor.fetchall():
            held[queue][flavor][resource] = amount
    reserved = {ConditionType.QUOTA_RESERVED: Condition(ConditionType.QUOTA_RESERVED, ConditionStatus.TRUE)}
    return [
        Workload(
            namespace="",
            name=queue,
            uid=queue,
            queue_name="",
            pod_sets=tuple(PodSet(flavor) for flavor in flavors),
            conditions=reserved,
            admission=Admission(
                queue,
                tuple(
                    PodSetAssignment(flavor, 1, dict.fromkeys(amounts, flavor), amounts)
                    for flavor, amounts in flavors.items()
                ),
            ),
        )
        for queue, flavors in held.items()
    ]


_NO_WORKLOADS: Final = {"pending": 0, "inadmissible": 0, "reserving": 0, "admitted": 0}


def _counts(cluster: Cluster) -> dict[str, dict[str, int]]:
    """Who waits and who holds quota, by ClusterQueue. The rows do not say which of them are inadmissible."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [cluster.pk])
        return {
            queue: {"pending": pending, "inadmissible": 0, "reserving": reserving, "admitted": admitted}
            for queue, pending, reserving, admitted in cursor.fetchall()
        }


def local_queue_reason(row: LocalQueue, numbers: Numbers) -> tuple[bool, str, str]:
    """Kueue's rule: stopped, or its ClusterQueue is missing or inactive."""
    name = row.cluster_queue_name
    if row.stop_policy != StopPolicy.NONE:
        return False, LocalQueueReason.STOPPED, "LocalQueue is stopped"
    if name not in numbers.cluster_queues:
        return False, LocalQueueReason.CLUSTER_QUEUE_DOES_NOT_EXIST, f"ClusterQueue {name} doesn't exist"
    if not numbers.cluster_queues[name]["active"]:
        return False, LocalQueueReason.CLUSTER_QUEUE_IS_INACTIVE, f"ClusterQueue {name} is inactive"
    return True, LocalQueueReason.READY, "Can submit new workloads to ClusterQueue"
