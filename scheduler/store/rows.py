"""The statements of a batch; each handles any number of rows."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import orjson

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
    status = v.status, reason = v.reason, message = v.message, conditions = v.conditions::jsonb,
    cluster_queue_name = v.cluster_queue_name, admission_check_states = v.check_states::jsonb,
    quota_reserved_at = v.quota_reserved_at, admitted_at = v.admitted_at, evicted_at = v.evicted_at,
    pods_stopped_at = CASE WHEN v.evicted_at IS NULL THEN NULL ELSE w.pods_stopped_at END,
    pods_ready_at = CASE WHEN v.admitted_at IS NULL THEN NULL ELSE w.pods_ready_at END,
    requeue_count = v.requeue_count, requeue_at = v.requeue_at, last_preempted_at = v.last_preempted_at,
    requeue_requested_by =
        CASE WHEN v.quota_reserved_at IS NULL OR v.eviction_counts IS NOT NULL THEN '' ELSE w.requeue_requested_by END,
    active = v.active, unhealthy_nodes = v.unhealthy_nodes::jsonb,
    accumulated_execution_seconds = coalesce(v.accumulated, w.accumulated_execution_seconds),
    eviction_counts = coalesce(v.eviction_counts::jsonb, w.eviction_counts),
    push_sequence = w.push_sequence + v.push, updated_at = now()
FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::text[], %s::timestamptz[],
    %s::timestamptz[], %s::timestamptz[], %s::int[], %s::timestamptz[], %s::timestamptz[], %s::boolean[], %s::text[],
    %s::int[], %s::text[], %s::int[])
    AS v(id, status, reason, message, conditions, cluster_queue_name, check_states, quota_reserved_at, admitted_at,
    evicted_at, requeue_count, requeue_at, last_preempted_at, active, unhealthy_nodes, accumulated, eviction_counts,
    push)
WHERE w.id = v.id
"""


def write_workloads(cursor: Any, writes: Sequence[WorkloadWrite]) -> None:
    if writes:
        columns = zip(*(_workload_values(write) for write in writes), strict=True)
        cursor.execute(_UPDATE_WORKLOADS, [list(column) for column in columns])


def _workload_values(write: WorkloadWrite) -> tuple[Any, ...]:
    workload = write.workload
    status = workload.status
    reason, message = why(workload)
    requeue = workload.requeue_state
    return (
        write.id,
        status.value,
        reason,
        message,
        _json(write_conditions(workload.conditions)),
        workload.admission.cluster_queue if workload.admission else write.cluster_queue,
        _json(write_check_states(workload.admission_checks)),
        _since(workload, ConditionType.QUOTA_RESERVED),
        _since(workload, ConditionType.ADMITTED),
        _since(workload, ConditionType.EVICTED),
        requeue.count if requeue else 0,
        moment(requeue.requeue_at) if requeue and requeue.requeue_at is not None else None,
        None if workload.last_preempted_at is None else moment(workload.last_preempted_at),
        workload.active and not write.deactivate,
        _json(list(workload.unhealthy_nodes)),
        write.accumulated_seconds,
        None if write.counted_evictions is None else _json(write.counted_evictions),
        int(write.push),
    )


def _since(workload: Workload, type_: ConditionType) -> datetime | None:
    condition = workload.condition(type_)
    if condition is None or condition.status is not ConditionStatus.TRUE:
        return None
    return moment(condition.last_transition_time)


_UPDATE_POD_SETS: Final = """
UPDATE queues_podset p SET admitted_count = v.admitted_count, flavors = v.flavors::jsonb,
    resource_usage = v.resource_usage::jsonb, topology_assignment = v.topology_assignment::jsonb, nodes = v.nodes::jsonb
FROM unnest(%s::bigint[], %s::text[], %s::int[], %s::text[], %s::text[], %s::text[], %s::text[])
    AS v(workload_id, name, admitted_count, flavors, resource_usage, topology_assignment, nodes)
WHERE p.workload_id = v.workload_id AND p.name = v.name
"""

_CLEAR_POD_SETS: Final = """
UPDATE queues_podset
SET admitted_count = NULL, flavors = '{}', resource_usage = '{}', topology_assignment = NULL, nodes = '[]'
WHERE workload_id = ANY(%s) AND admitted_count IS NOT NULL
"""


def write_pod_sets(cursor: Any, writes: Sequence[WorkloadWrite]) -> None:
    rows: list[tuple[Any, ...]] = []
    cleared: list[int] = []
    for write in writes:
        if write.workload.admission is None:
            cleared.append(write.id)
            continue
        for assignment in write.workload.admission.pod_set_assignments:
            topology = write_topology_assignment(assignment)
            rows.append(
                (
                    write.id,
                    assignment.name,
                    assignment.count,
                    _json(dict(assignment.flavors)),
                    _json(dict(assignment.resource_usage)),
                    None if topology is None else _json(topology),
                    _json(placed_nodes(write.workload, assignment.name)),
                )
            )
    if rows:
        cursor.execute(_UPDATE_POD_SETS, [list(column) for column in zip(*rows, strict=True)])
    if cleared:
        cursor.execute(_CLEAR_POD_SETS, [cleared])


_INSERT_SLICES: Final = """
INSERT INTO gpus_deviceallocation (cluster_id, node_id, device_id, device_uuid, source, workload_id, pod_set, replica,
    container, container_index, namespace, pod_name, pod_uid, memory_mib, cores_percent, slots, mig_instance,
    qos_policy, app_class, malformed, created_at)
SELECT %s, v.node_id, v.device_id, v.device_uuid, 'decided', v.workload_id, v.pod_set, v.replica, v.container,
    v.container_index, v.namespace, '', '', v.memory_mib, v.cores_percent, v.slots, v.mig_instance::jsonb, v.qos_policy,
    v.app_class, '', now()
FROM unnest(%s::bigint[], %s::bigint[], %s::text[], %s::bigint[], %s::text[], %s::int[], %s::text[], %s::int[],
    %s::text[], %s::bigint[], %s::int[], %s::int[], %s::text[], %s::text[], %s::text[])
    AS v(node_id, device_id, device_uuid, workload_id, pod_set, replica, container, container_index, namespace,
    memory_mib, cores_percent, slots, mig_instance, qos_policy, app_class)
"""


def write_devices(cursor: Any, batch: Batch) -> None:
    """Delete released slices and insert decided ones. Counters follow from the rows stored then."""
    touched = {device.id for device in batch.devices.values()}
    released = (
        [write.id for write in batch.workloads if write.releases_devices] + batch.released_ids + batch.deleted_ids
    )
    if released:
        cursor.execute(
            "DELETE FROM gpus_deviceallocation WHERE workload_id = ANY(%s) AND source = 'decided' RETURNING device_id",
            [released],
        )
        touched |= {device_id for (device_id,) in cursor.fetchall()}
    rows = [
        _slice_values(batch, write, held)
        for write in batch.workloads
        if write.reserves_devices
        for held in held_slices(write.workload)
    ]
    if rows:
        columns = [list(column) for column in zip(*rows, strict=True)]
        cursor.execute(_INSERT_SLICES, [batch.cluster_id, *columns])
    recount(touched)


def _slice_values(batch: Batch, write: WorkloadWrite, held: HeldSlice) -> tuple[Any, ...]:
    part = held.slice
    device = batch.devices[part.node, part.uuid]
    mig = part.mig
    return (
        device.node_id,
        device.id,
        part.uuid,
        write.id,
        held.pod_set,
        held.replica,
        held.container,
        held.container_index,
        write.workload.namespace,
        part.memory_mib,
        part.cores_percent,
        part.slots,
        _json({"profile": mig.profile, "start": mig.placement.start, "size": mig.placement.size}) if mig else None,
        part.qos_policy,
        part.app_class,
    )


_INSERT_EVENTS: Final = """
INSERT INTO queues_workloadevent (cluster_id, workload_uid, namespace, workload_name, at, type, reason, message, actor)
SELECT %s, *
FROM unnest(%s::uuid[], %s::text[], %s::text[], %s::timestamptz[], %s::text[], %s::text[], %s::text[], %s::text[])
"""

_INSERT_DECISIONS: Final = """
INSERT INTO scheduler_decision (cluster_name, epoch, decided_at, cycle, action, namespace, workload_name, workload_uid,
    cluster_queue_name, reason, message, detail)
SELECT %s, %s, v.decided_at, v.cycle, v.action, v.namespace, v.workload_name, v.workload_uid, v.cluster_queue_name,
    v.reason, v.message, v.detail::jsonb
FROM unnest(%s::timestamptz[], %s::bigint[], %s::text[], %s::text[], %s::text[], %s::uuid[], %s::text[], %s::text[],
    %s::text[], %s::text[])
    AS v(decided_at, cycle, action, namespace, workload_name, workload_uid, cluster_queue_name, reason, message, detail)
"""

_INSERT_CYCLES: Final = """
INSERT INTO scheduler_schedulingcycle
    (cluster_id, epoch, number, started_at, duration_seconds, heads, admitted, preempted, inadmissible)
SELECT %s, %s, * FROM unnest(%s::bigint[], %s::timestamptz[], %s::float8[], %s::int[], %s::int[], %s::int[], %s::int[])
"""


def write_log(cursor: Any, batch: Batch) -> None:
    events = [
        (
            e.workload.uid,
            e.workload.namespace,
            e.workload.name,
            moment(e.at),
            e.type,
            e.reason,
            shortened(e.message, MAX_EVENT_LENGTH),
            e.actor,
        )
        for e in batch.events
    ]
    if events:
        cursor.execute(_INSERT_EVENTS, [batch.cluster_id, *_columns(events)])
    decisions = [
        (moment(d.at), d.cycle, d.action, d.workload.namespace, d.workload.name, d.workload.uid, d.cluster_queue,
         d.reason, d.message, _json(d.detail))
        for d in batch.decisions
    ]  # fmt: skip
    if decisions:
        cursor.execute(_INSERT_DECISIONS, [batch.cluster_name, batch.epoch, *_columns(decisions)])
    cycles = [
        (c.number, moment(c.started_at), c.duration_seconds, c.heads, c.admitted, c.preempted, c.inadmissible)
        for c in batch.cycles
    ]
    if cycles:
        cursor.execute(_INSERT_CYCLES, [batch.cluster_id, batch.epoch, *_columns(cycles)])
    if batch.consumed:
        cursor.execute(
            "UPDATE queues_localqueue q SET admission_fair_sharing = v.consumed::jsonb "
            "FROM unnest(%s::bigint[], %s::text[]) AS v(id, consumed) WHERE q.id = v.id",
            _columns([(id_, _json(consumed)) for id_, consumed in batch.consumed]),
        )


def delete_workloads(cursor: Any, ids: Sequence[int]) -> None:
    if ids:
        cursor.execute("DELETE FROM queues_podset WHERE workload_id = ANY(%s)", [list(ids)])
        cursor.execute("DELETE FROM queues_pod WHERE workload_id = ANY(%s)", [list(ids)])
        cursor.execute("DELETE FROM queues_workload WHERE id = ANY(%s)", [list(ids)])


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
