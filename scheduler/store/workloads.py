"""Converts workload rows to and from the workloads of the rules.

Rows are read by plain SQL: one query for the rows with their pod sets, one for their slices. Templates repeat across
workloads, so a parsed one is cached by its text.
"""

from __future__ import annotations

import json
import logging
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Final

import orjson
from django.db import connection

from queues.services.admission_rows import read_check_state, read_conditions, read_topology_assignment
from scheduler.store.placements import SLICES, StoredSlice, left_over, read_placement, stored_slice
from scheduling.lifecycle.conditions import VARIANT_GATE
from scheduling.lifecycle.context import EvictionRequest
from scheduling.model.placement import PodPlacement
from scheduling.model.pod import PodTemplate
from scheduling.model.times import rfc3339
from scheduling.model.topology import TopologyRequest
from scheduling.model.vocabulary import ConditionType, EvictionReason
from scheduling.model.workload import JOB_GATE, Admission, Condition, PodSet, PodSetAssignment, RequeueState, Workload

_log = logging.getLogger(__name__)

ADMISSION_GATES = "kueue.x-k8s.io/admission-gated-by"
PRIORITY_BOOST = "kueue.x-k8s.io/priority-boost"
NICE = "kueueweb.io/nice"
REPLACES = "kueue.x-k8s.io/workload-slice-replacement-for"
MAX_EVENT_LENGTH: Final = 1024
_MAX_CONDITION_LENGTH: Final = 32_768
ELASTIC_JOB = "kueue.x-k8s.io/elastic-job"
ALLOWED_FLAVORS = "kueue.x-k8s.io/workload-allowed-resource-flavors"

_WHOLE_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,10}", re.ASCII)
_WORKLOADS = """
SELECT w.id, w.generation, w.namespace, w.name, w.uid::text, w.queue_name, w.priority, w.active, w.created_at,
    w.conditions::text, w.cluster_queue_name, w.requeue_count, w.requeue_at, w.admission_check_states::text,
    w.maximum_execution_seconds, w.annotations::text, w.preemption_gates::text, w.unhealthy_nodes::text,
    w.never_preempt, w.last_preempted_at, w.pods_stopped_at, w.finished_at IS NOT NULL, w.quota_reserved_at IS NOT NULL,
    (SELECT json_agg(json_build_array(p.name, p.count, p.min_count, p.template::text, p.topology_request,
        p.reclaimable_count, p.admitted_count, p.flavors, p.resource_usage, p.topology_assignment, p.nodes)
        ORDER BY p.position)
     FROM queues_podset p WHERE p.workload_id = w.id)::text,
    w.deletion_requested_at IS NOT NULL, w.job_id IS NOT NULL, w.accumulated_execution_seconds, w.eviction_counts::text,
    EXISTS (SELECT FROM queues_job j WHERE j.id = w.job_id AND j.kind = 'Pod' AND j.found_in_cluster),
    w.requeue_requested_by, w.on_hold, w.requeue_reason, w.requeue_message, w.parent_name, w.gate_opened_at,
    w.submitted_by, w.waits_for::text, w.user_groups::text
FROM queues_workload w
WHERE {condition}
ORDER BY w.id
"""
# A leader may end between a workload's end and the release of its slices. The next leader must still read the
# workload.
_CONCERNED = """w.id IN (
    SELECT id FROM queues_workload WHERE cluster_id = %s AND status <> 'Finished'
    UNION SELECT workload_id FROM gpus_deviceallocation WHERE cluster_id = %s AND source = 'decided'
)"""
_ALL = f"w.cluster_id = %s AND {_CONCERNED}"
# After a flood the statistics are outdated. The planner then uses the cluster's index and reads every workload of the
# cluster, so the condition on the cluster is written in a form that no index supports. Finished workloads without
# slices are skipped: the leader has nothing to release for them.
_THESE = """w.id = ANY(%s) AND w.cluster_id + 0 = %s AND (w.finished_at IS NULL OR EXISTS (
    SELECT FROM gpus_deviceallocation AS slice WHERE slice.workload_id = w.id AND slice.source = 'decided'
))"""


@dataclass(frozen=True, slots=True)
class StoredWorkload:
    """A workload as stored: the rules' object, the row's id and generation, and fields that only the engine reads."""

    id: int
    generation: int
    workload: Workload
    pods_stopped: bool
    deletion_requested: bool
    has_job: bool
    accumulated_seconds: int
    eviction_counts: Sequence[Mapping[str, Any]]
    eviction_request: EvictionRequest | None
    on_hold: str
    elastic: bool = False
    left_over: tuple[PodPlacement, ...] = ()
    """Removed replicas of an elastic job whose slices are still stored."""


def read_workloads(cluster_id: int, ids: Sequence[int] | None = None) -> list[StoredWorkload]:
    """Read the unfinished workloads of a cluster and the finished ones that still hold slices, or only those with these
    ids."""
    with connection.cursor() as cursor:
        if ids is None:
            cursor.execute(_WORKLOADS.format(condition=_ALL), [cluster_id] * 3)
        else:
            cursor.execute(_WORKLOADS.format(condition=_THESE), [list(ids), cluster_id])
        rows = cursor.fetchall()
        holding = [row[0] for row in rows if row[22]]
        slices: dict[int, list[StoredSlice]] = defaultdict(list)
        if holding:
            cursor.execute(SLICES, [holding])
            for workload_id, *fields in cursor.fetchall():
                slices[workload_id].append(stored_slice(fields, _loads(fields[9]) if fields[9] else None))
    return [_stored(row, tuple(slices.get(row[0], ()))) for row in rows]


def _stored(row: tuple[Any, ...], slices: Sequence[StoredSlice]) -> StoredWorkload:
    annotations = _loads(row[15])
    stored_sets = orjson.loads(row[23]) if row[23] else []
    pod_sets = tuple(_pod_set(fields) for fields in stored_sets)
    nodes = {fields[0]: fields[10] for fields in stored_sets if fields[10]}
    workload = Workload(
        namespace=row[2],
        name=row[3],
        uid=row[4],
        queue_name=row[5],
        pod_sets=pod_sets,
        priority=row[6],
        priority_boost=_number(annotations.get(PRIORITY_BOOST)),
        active=row[7],
        created_at=row[8].timestamp(),
        conditions=read_conditions(_loads(row[9])),
        admission=_admission(row[10], stored_sets) if row[22] else None,
        requeue_state=RequeueState(row[11], seconds(row[12])) if row[11] or row[12] else None,
        reclaimable_pods={fields[0]: fields[5] for fields in stored_sets if fields[5]},
        admission_checks=tuple(read_check_state(fields) for fields in _loads(row[13])),
        maximum_execution_time_seconds=row[14],
        admission_gates=(*_words(annotations.get(ADMISSION_GATES)), *(JOB_GATE + name for name in _loads(row[36]))),
        closed_preemption_gates=tuple(name for name in _loads(row[16]) if row[34] is None or name != VARIANT_GATE),
        unhealthy_nodes=tuple(_loads(row[17])),
        replaces=annotations.get(REPLACES),
        allowed_flavors=_words(annotations.get(ALLOWED_FLAVORS)),
        never_reclaimed=row[18],
        last_preempted_at=seconds(row[19]),
        placement=read_placement(row[2], pod_sets, nodes, slices) if row[22] else None,
        single_pod=row[28],
        nice=_number(annotations.get(NICE)),
        parent=f"{row[2]}/{row[33]}" if row[33] else "",
        gate_opened_at=seconds(row[34]),
        submitted_by=row[35],
        user_groups=tuple(_loads(row[37])),
        executed_seconds=row[26],
    )
    if row[22] != workload.is_true(ConditionType.QUOTA_RESERVED) and not row[21]:
        _log.error(
            "workload %s: the time of its reservation contradicts its conditions; it is decided again", workload.key
        )
    elif not row[22] and any(fields[6] is not None for fields in stored_sets):
        _log.error("workload %s: it is charged but holds no quota; it is decided again", workload.key)
    return StoredWorkload(
        id=row[0],
        generation=row[1],
        workload=workload,
        pods_stopped=row[20] is not None,
        deletion_requested=row[24],
        has_job=row[25],
        accumulated_seconds=row[26],
        eviction_counts=_loads(row[27]),
        eviction_request=_eviction_request(row[29], row[31], row[32]),
        on_hold=row[30],
        elastic=annotations.get(ELASTIC_JOB) == "true",
        left_over=left_over(nodes, slices) if row[22] else (),
    )


def _eviction_request(actor: str, reason: str, message: str) -> EvictionRequest | None:
    if not actor:
        return None
    return EvictionRequest(actor, EvictionReason(reason or EvictionReason.REQUEUE_REQUESTED), message)


def _loads(text: str) -> Any:
    return orjson.loads(text) if len(text) > 2 else ({} if text == "{}" else [])


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip()) if text else ()


def _number(text: str | None) -> int:
    """Return a number in an annotation. A number that the webhook would have refused is ignored."""
    return int(text) if text and _WHOLE_NUMBER.fullmatch(text) else 0


@lru_cache(maxsize=4096)
def _template(text: str) -> PodTemplate:
    return PodTemplate.from_manifest(json.loads(text))


@lru_cache(maxsize=65536)
def _plain_pod_set(name: str, count: int, min_count: int | None, template: str) -> PodSet:
    """Workloads with equal pod sets share one PodSet, and with it everything that the rules cache about it."""
    return PodSet(name=name, count=count, min_count=min_count, template=_template(template))


def _pod_set(fields: list[Any]) -> PodSet:
    if not fields[4]:
        return _plain_pod_set(fields[0], fields[1], fields[2], fields[3])
    return PodSet(
        name=fields[0],
        count=fields[1],
        min_count=fields[2],
        template=_template(fields[3]),
        topology_request=TopologyRequest.from_manifest(fields[4]),
    )


def _admission(cluster_queue: str, pod_sets: list[list[Any]]) -> Admission:
    return Admission(
        cluster_queue,
        tuple(
            PodSetAssignment(
                name=fields[0],
                count=fields[1] if fields[6] is None else fields[6],
                flavors=fields[7],
                resource_usage=fields[8],
                topology_assignment=read_topology_assignment(fields[9]),
                delayed_topology_request=(fields[9] or {}).get("delayed", ""),
            )
            for fields in pod_sets
        ),
    )


def shortened(text: str, max_length: int) -> str:
    """Return the text, cut to the length that Kubernetes keeps, with a mark if it was cut."""
    return text if len(text) <= max_length else text[: max_length - 1] + "…"


def write_conditions(conditions: Mapping[ConditionType, Condition]) -> list[dict[str, str]]:
    """Conditions in Kubernetes' form."""
    return [
        {
            "type": condition.type.value,
            "status": condition.status.value,
            "reason": str(condition.reason),
            "message": shortened(condition.message, _MAX_CONDITION_LENGTH),
            "lastTransitionTime": rfc3339(condition.last_transition_time),
        }
        for condition in conditions.values()
    ]


def seconds(time: datetime | None) -> float | None:
    """Seconds since the epoch."""
    return None if time is None else time.timestamp()


def moment(time: float) -> datetime:
    """Return the aware time of seconds since the epoch."""
    return datetime.fromtimestamp(time, UTC)
