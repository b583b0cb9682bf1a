"""The numbers of queues and cohorts: the scheduler's own while it lives, else computed from rows by the same core."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from accounts.models import Cluster
from foundation.shown_past import Past, current_past
from queues.models import LocalQueue
from queues.services.admission_rows import CHARGED_USAGE
from scheduler.live.published import published_of
from scheduler.live.publisher import cluster_queue_numbers, cohort_numbers
from scheduler.store import objects
from scheduler.store.configuration import cluster_configuration
from scheduling.model.vocabulary import ConditionStatus, ConditionType, LocalQueueReason, StopPolicy
from scheduling.model.workload import Admission, Condition, PodSet, PodSetAssignment, Workload
from scheduling.world import World

NO_FIGURES: Final = "none"
"""The source of a checkpoint's numbers if none could be made of its rows."""
_USAGE: Final = """
    SELECT workload.cluster_id, workload.cluster_queue_name, pod_set.flavors ->> usage.key, usage.key,
        sum(CHARGED_USAGE)::bigint
    FROM queues_workload AS workload
        JOIN queues_podset AS pod_set ON pod_set.workload_id = workload.id,
        jsonb_each_text(pod_set.resource_usage) AS usage
    WHERE workload.cluster_id = ANY (%s) AND workload.status <> 'Finished' AND workload.quota_reserved_at IS NOT NULL
        AND pod_set.flavors ? usage.key
    GROUP BY 1, 2, 3, 4
""".replace("CHARGED_USAGE", CHARGED_USAGE)
_COUNTS: Final = """
    SELECT cluster_id, cluster_queue_name,
        count(*) FILTER (WHERE quota_reserved_at IS NULL AND active),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL),
        count(*) FILTER (WHERE quota_reserved_at IS NOT NULL AND admitted_at IS NOT NULL)
    FROM queues_workload WHERE cluster_id = ANY (%s) AND status <> 'Finished' AND parent_name = '' GROUP BY 1, 2
"""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Entries by name, as in the live stream. `source` is `live`, or `rows` while no scheduler leads; of the past also
    `none`: the numbers are not known. `time` is when they were taken.
    """

    source: str
    time: datetime | str
    cluster_queues: Mapping[str, Any] = field(default_factory=dict)
    cohorts: Mapping[str, Any] = field(default_factory=dict)


def read_numbers(cluster: Cluster) -> Numbers:
    """Read the numbers of a cluster now."""
    return numbers_of([cluster])[cluster.pk]


def numbers_of(clusters: Sequence[Cluster]) -> dict[int, Numbers]:
    """Return the numbers of clusters by their keys, with as many queries for several clusters as for one. While past
    rows are shown, the numbers are those of that checkpoint."""
    past = current_past()
    if past is not None:
        return {past.cluster_id: _numbers_then(past, clusters)}
    found = {
        pk: Numbers("live", published.time, published.data["cluster_queues"], published.data["cohorts"])
        for pk, published in published_of(clusters).items()
    }
    return found | numbers_of_rows([cluster for cluster in clusters if cluster.pk not in found])


def _numbers_then(past: Past, clusters: Sequence[Cluster]) -> Numbers:
    if past.figures is None:
        cluster = copy(next(found for found in clusters if found.pk == past.cluster_id))
        for name, value in past.settings.items():
            setattr(cluster, name, value)
        return replace(numbers_of_rows([cluster])[past.cluster_id], time=past.taken_at)
    return Numbers(**{name: past.figures[name] for name in ("source", "time", "cluster_queues", "cohorts")})


_SET_BY: Final[Mapping[str, Callable[[World, Any], object]]] = {
    "resourceflavor": World.set_resource_flavor,
    "topology": World.set_topology,
    "admissioncheck": World.set_admission_check,
    "cohort": lambda world, cohort: world.set_cohort(replace(cohort, sharing_policy=None)),
    "clusterqueue": World.set_cluster_queue,
}
"""How a World loads each kind, in this order. Deserved quotas of sharing policies depend on all pending workloads,
which this World does not have.
"""


def numbers_of_rows(clusters: Sequence[Cluster]) -> dict[int, Numbers]:
    """Return the numbers of clusters by their keys, computed from the rows."""
    if not clusters:
        return {}
    worlds = {cluster.pk: World(cluster_configuration(cluster)) for cluster in clusters}
    for kind, set_in in _SET_BY.items():
        for pk, values in objects.read_objects_of(kind, list(worlds)).items():
            for value in values:
                set_in(worlds[pk], value)
    for pk, workloads in _usage(list(worlds)).items():
        for workload in workloads:
            worlds[pk].set_workload(workload, 0.0)
    counts = _counts(list(worlds))
    return {pk: _numbers_in(world, counts[pk]) for pk, world in worlds.items()}


def _numbers_in(world: World, counts: Mapping[str, Mapping[str, int]]) -> Numbers:
    queues = {
        name: {**cluster_queue_numbers(world.cluster_queue_status(name)), **counts.get(name, _NO_WORKLOADS)}
        for name in world.cluster_queue_names()
    }
    cohorts = {name: cohort_numbers(world.cohort_status(name)) for name in world.cohort_names()}
    return Numbers("rows", timezone.now(), queues, cohorts)


_Held = defaultdict[str, defaultdict[str, dict[str, int]]]
"""ClusterQueue -> flavor -> resource -> amount."""


def _usage(cluster_ids: list[int]) -> dict[int, list[Workload]]:
    """By cluster, all that is charged to each ClusterQueue, as one workload that holds it."""
    held: dict[int, _Held] = {pk: defaultdict(lambda: defaultdict(dict)) for pk in cluster_ids}
    with connection.cursor() as cursor:
        cursor.execute(_USAGE, [cluster_ids])
        for cluster, queue, flavor, resource, amount in cursor.fetchall():
            held[cluster][queue][flavor][resource] = amount
    return {pk: _holders(queues) for pk, queues in held.items()}


def _holders(held: _Held) -> list[Workload]:
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


_PENDING: Final = "Pending"
_NO_WORKLOADS: Final = {"pending": 0, "inadmissible": 0, "reserving": 0, "admitted": 0}


def _counts(cluster_ids: list[int]) -> dict[int, dict[str, dict[str, int]]]:
    """Count pending and reserving workloads by cluster and ClusterQueue. Rows do not record which are inadmissible."""
    found: dict[int, dict[str, dict[str, int]]] = {pk: {} for pk in cluster_ids}
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, [cluster_ids])
        for cluster, queue, pending, reserving, admitted in cursor.fetchall():
            found[cluster][queue] = {
                "pending": pending, "inadmissible": 0, "reserving": reserving, "admitted": admitted,
            }  # fmt: skip
    return found


def local_queue_reason(row: LocalQueue, numbers: Numbers) -> tuple[bool, str, str]:
    """Return the reason by Kueue's rule: the LocalQueue is stopped, or its ClusterQueue is missing or inactive."""
    name = row.cluster_queue_name
    if row.stop_policy != StopPolicy.NONE:
        return False, LocalQueueReason.STOPPED, "LocalQueue is stopped"
    if numbers.source == NO_FIGURES:
        return False, _PENDING, "No figures are kept of this moment"
    if name not in numbers.cluster_queues:
        return False, LocalQueueReason.CLUSTER_QUEUE_DOES_NOT_EXIST, f"ClusterQueue {name} doesn't exist"
    if not numbers.cluster_queues[name]["active"]:
        return False, LocalQueueReason.CLUSTER_QUEUE_IS_INACTIVE, f"ClusterQueue {name} is inactive"
    return True, LocalQueueReason.READY, "Can submit new workloads to ClusterQueue"
