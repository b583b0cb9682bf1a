"""The statements of a batch; each handles any number of rows, which it gets as one JSON text.

As arrays, each value would be escaped on its own, in Python: that took a third of the time of writing a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import orjson

from foundation.postgresql.joined_statements import JoinedStatements
from gpus.services.counters import recount
from queues.services.admission_rows import why, write_check_states, write_topology_assignment
from scheduler.store.batch import Batch, WorkloadWrite
from scheduler.store.placements import HeldSlice, held_slices, placed_nodes
from scheduler.store.workloads import (
    MAX_EVENT_LENGTH,
    moment,
    shortened,
    write_conditions,
)
from scheduling.model.vocabulary import ConditionStatus, ConditionType
from scheduling.model.workload import Workload

_UPDATE_WORKLOADS: Final = """
UPDATE queues_workload w SET
    status = v.status, reason = v.reason, message = v.message, conditions = v.conditions,
    cluster_queue_name = v.cluster_queue_name, admission_check_states = v.check_states,
    quota_reserved_at = v.quota_reserved_at, admitted_at = v.admitted_at, evicted_at = v.evicted_at,
    pods_stopped_at = CASE WHEN v.evicted_at IS NULL THEN NULL ELSE w.pods_stopped_at END,
    pods_ready_at = CASE WHEN v.admitted_at IS NULL THEN NULL ELSE w.pods_ready_at END,
    requeue_count = v.requeue_count, requeue_at = v.requeue_at, last_preempted_at = v.last_preempted_at,
    requeue_requested_by =
        CASE WHEN v.quota_reserved_at IS NULL OR v.eviction_counts IS NOT NULL THEN '' ELSE w.requeue_requested_by END,
    requeue_reason =
        CASE WHEN v.quota_reserved_at IS NULL OR v.eviction_counts IS NOT NULL THEN '' ELSE w.requeue_reason END,
    requeue_message =
        CASE WHEN v.quota_reserved_at IS NULL OR v.eviction_counts IS NOT NULL THEN '' ELSE w.requeue_message END,
    active = v.active, gate_opened_at = v.gate_opened_at, unhealthy_nodes = v.unhealthy_nodes,
    accumulated_execution_seconds = coalesce(v.accumulated, w.accumulated_execution_seconds),
    eviction_counts = coalesce(v.eviction_counts, w.eviction_counts),
    push_sequence = w.push_sequence + v.push, updated_at = now()
FROM json_to_recordset(%s) AS v(id bigint, status text, reason text, message text, conditions jsonb,
    cluster_queue_name text, check_states jsonb, quota_reserved_at timestamptz, admitted_at timestamptz,
    evicted_at timestamptz, requeue_count int, requeue_at timestamptz, last_preempted_at timestamptz, active boolean,
    gate_opened_at timestamptz, unhealthy_nodes jsonb, accumulated int, eviction_counts jsonb, push int)
WHERE w.id = v.id
"""


def write_workloads(statements: JoinedStatements, writes: Sequence[WorkloadWrite]) -> None:
    if writes:
        statements.execute(_UPDATE_WORKLOADS, [_json([_workload_values(write) for write in writes])])


def _workload_values(write: WorkloadWrite) -> dict[str, Any]:
    workload = write.workload
    reason, message = why(workload)
    requeue = workload.requeue_state
    return {
        "id": write.id,
        "status": workload.status.value,
        "reason": reason,
        "message": message,
        "conditions": write_conditions(workload.conditions),
        "cluster_queue_name": workload.admission.cluster_queue if workload.admission else write.cluster_queue,
        "check_states": write_check_states(workload.admission_checks),
        "quota_reserved_at": _since(workload, ConditionType.QUOTA_RESERVED),
        "admitted_at": _since(workload, ConditionType.ADMITTED),
        "evicted_at": _since(workload, ConditionType.EVICTED),
        "requeue_count": requeue.count if requeue else 0,
        "requeue_at": moment(requeue.requeue_at) if requeue and requeue.requeue_at is not None else None,
        "last_preempted_at": None if workload.last_preempted_at is None else moment(workload.last_preempted_at),
        "active": workload.active and not write.deactivate,
        "gate_opened_at": None if workload.gate_opened_at is None else moment(workload.gate_opened_at),
        "unhealthy_nodes": list(workload.unhealthy_nodes),
        "accumulated": write.accumulated_seconds,
        "eviction_counts": write.counted_evictions,
        "push": int(write.push),
    }


def _since(workload: Workload, type_: ConditionType) -> datetime | None:
    condition = workload.condition(type_)
    if condition is None or condition.status is not ConditionStatus.TRUE:
        return None
    return moment(condition.last_transition_time)


_UPDATE_POD_SETS: Final = """
UPDATE queues_podset p SET admitted_count = v.admitted_count, flavors = v.flavors,
    resource_usage = v.resource_usage, topology_assignment = v.topology_assignment, nodes = v.nodes
FROM json_to_recordset(%s) AS v(workload_id bigint, name text, admitted_count int, flavors jsonb, resource_usage jsonb,
    topology_assignment jsonb, nodes jsonb)
WHERE p.workload_id = v.workload_id AND p.name = v.name
"""

_CLEAR_POD_SETS: Final = """
UPDATE queues_podset
SET admitted_count = NULL, flavors = '{}', resource_usage = '{}', topology_assignment = NULL, nodes = '[]'
WHERE workload_id = ANY(%s) AND admitted_count IS NOT NULL
"""


def write_pod_sets(statements: JoinedStatements, writes: Sequence[WorkloadWrite]) -> None:
    rows: list[dict[str, Any]] = []
    cleared: list[int] = []
    for write in writes:
        if write.workload.admission is None:
            cleared.append(write.id)
            continue
        rows += [
            {
                "workload_id": write.id,
                "name": assignment.name,
                "admitted_count": assignment.count,
                "flavors": dict(assignment.flavors),
                "resource_usage": dict(assignment.resource_usage),
                "topology_assignment": write_topology_assignment(assignment),
                "nodes": placed_nodes(write.workload, assignment.name),
            }
            for assignment in write.workload.admission.pod_set_assignments
        ]
    if rows:
        statements.execute(_UPDATE_POD_SETS, [_json(rows)])
    if cleared:
        statements.execute(_CLEAR_POD_SETS, [cleared])


_INSERT_SLICES: Final = """
INSERT INTO gpus_deviceallocation (cluster_id, node_id, device_id, device_uuid, source, workload_id, pod_set, replica,
    container, container_index, namespace, pod_name, pod_uid, memory_mib, cores_percent, slots, mig_instance,
    qos_policy, app_class, malformed, created_at)
SELECT %s, v.node_id, v.device_id, v.device_uuid, 'decided', v.workload_id, v.pod_set, v.replica, v.container,
    v.container_index, v.namespace, '', '', v.memory_mib, v.cores_percent, v.slots, v.mig_instance, v.qos_policy,
    v.app_class, '', now()
FROM json_to_recordset(%s) AS v(node_id bigint, device_id bigint, device_uuid text, workload_id bigint, pod_set text,
    replica int, container text, container_index int, namespace text, memory_mib bigint, cores_percent int, slots int,
    mig_instance jsonb, qos_policy text, app_class text)
"""


def write_devices(statements: JoinedStatements, batch: Batch) -> None:
    """Delete released slices and insert decided ones. Counters are computed from the rows that are stored then."""
    touched = {device.id for device in batch.devices.values()}
    released = (
        [write.id for write in batch.workloads if write.releases_devices] + batch.released_ids + batch.deleted_ids
    )
    if released:
        freed = statements.rows(
            "DELETE FROM gpus_deviceallocation WHERE workload_id = ANY(%s) AND source = 'decided' RETURNING device_id",
            [released],
        )
        touched |= {device_id for (device_id,) in freed}
    rows = [
        _slice_values(batch, write, held)
        for write in batch.workloads
        if write.reserves_devices
        for held in held_slices(write.workload)
    ]
    if rows:
        statements.execute(_INSERT_SLICES, [batch.cluster_id, _json(rows)])
    if touched:
        statements.send()
        recount(touched)


def _slice_values(batch: Batch, write: WorkloadWrite, held: HeldSlice) -> dict[str, Any]:
    part = held.slice
    device = batch.devices[part.node, part.uuid]
    mig = part.mig
    return {
        "node_id": device.node_id,
        "device_id": device.id,
        "device_uuid": part.uuid,
        "workload_id": write.id,
        "pod_set": held.pod_set,
        "replica": held.replica,
        "container": held.container,
        "container_index": held.container_index,
        "namespace": write.workload.namespace,
        "memory_mib": part.memory_mib,
        "cores_percent": part.cores_percent,
        "slots": part.slots,
        "mig_instance": (
            {"profile": mig.profile, "start": mig.placement.start, "size": mig.placement.size} if mig else None
        ),
        "qos_policy": part.qos_policy,
        "app_class": part.app_class,
    }


_INSERT_EVENTS: Final = """
INSERT INTO queues_workloadevent (cluster_id, workload_uid, namespace, workload_name, at, type, reason, message, actor)
SELECT %s, v.*
FROM json_to_recordset(%s) AS v(uid uuid, namespace text, name text, at timestamptz, type text, reason text,
    message text, actor text)
"""

_INSERT_DECISIONS: Final = """
INSERT INTO scheduler_decision (cluster_name, epoch, decided_at, cycle, action, namespace, workload_name, workload_uid,
    cluster_queue_name, reason, message, detail)
SELECT %s, %s, v.*
FROM json_to_recordset(%s) AS v(at timestamptz, cycle bigint, action text, namespace text, name text, uid uuid,
    cluster_queue text, reason text, message text, detail jsonb)
"""

_INSERT_CYCLES: Final = """
INSERT INTO scheduler_schedulingcycle
    (cluster_id, epoch, number, started_at, duration_seconds, heads, admitted, preempted, inadmissible)
SELECT %s, %s, * FROM unnest(%s::bigint[], %s::timestamptz[], %s::float8[], %s::int[], %s::int[], %s::int[], %s::int[])
"""


def write_log(statements: JoinedStatements, batch: Batch) -> None:
    events = [
        {
            "uid": event.workload.uid,
            "namespace": event.workload.namespace,
            "name": event.workload.name,
            "at": moment(event.at),
            "type": event.type,
            "reason": event.reason,
            "message": shortened(event.message, MAX_EVENT_LENGTH),
            "actor": event.actor,
        }
        for event in batch.events
    ]
    if events:
        statements.execute(_INSERT_EVENTS, [batch.cluster_id, _json(events)])
    decisions = [
        {
            "at": moment(decision.at),
            "cycle": decision.cycle,
            "action": decision.action,
            "namespace": decision.workload.namespace,
            "name": decision.workload.name,
            "uid": decision.workload.uid,
            "cluster_queue": decision.cluster_queue,
            "reason": decision.reason,
            "message": decision.message,
            "detail": decision.detail,
        }
        for decision in batch.decisions
    ]
    if decisions:
        statements.execute(_INSERT_DECISIONS, [batch.cluster_name, batch.epoch, _json(decisions)])
    cycles = [
        (c.number, moment(c.started_at), c.duration_seconds, c.heads, c.admitted, c.preempted, c.inadmissible)
        for c in batch.cycles
    ]
    if cycles:
        statements.execute(_INSERT_CYCLES, [batch.cluster_id, batch.epoch, *_columns(cycles)])
    if batch.consumed:
        statements.execute(
            "UPDATE queues_localqueue q SET admission_fair_sharing = v.consumed::jsonb "
            "FROM unnest(%s::bigint[], %s::text[]) AS v(id, consumed) WHERE q.id = v.id",
            _columns([(id_, _json(consumed)) for id_, consumed in batch.consumed]),
        )


def delete_workloads(statements: JoinedStatements, ids: Sequence[int]) -> None:
    if ids:
        statements.execute("DELETE FROM queues_podset WHERE workload_id = ANY(%s)", [list(ids)])
        statements.execute("DELETE FROM queues_pod WHERE workload_id = ANY(%s)", [list(ids)])
        statements.execute("DELETE FROM queues_workload WHERE id = ANY(%s)", [list(ids)])


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
